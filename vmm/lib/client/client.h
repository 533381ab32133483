// SPDX-License-Identifier: BSD-2-Clause
/* A client of the control protocol (vprof/control.h). Blocking calls with a timeout; not thread-safe. */
#ifndef VPROF_CLIENT_CLIENT_H
#define VPROF_CLIENT_CLIENT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#define CLIENT_ERROR client_error_quark()
GQuark client_error_quark(void);
enum client_error {
	CLIENT_ERROR_CONNECT,
	CLIENT_ERROR_PROTOCOL, /* what came is no JSON line, or not what the protocol says */
	CLIENT_ERROR_CLOSED,   /* the engine closed the connection */
	CLIENT_ERROR_TIMEOUT,
	CLIENT_ERROR_REMOTE, /* the engine answered with an error: "CLASS: desc"; client_refused */
};

struct client;

/*
 * Connects to the socket at `path`, reads the greeting and negotiates. A process that began to listen as another user
 * than root and this one is refused (CLIENT_ERROR_CONNECT) before anything of it is read.
 */
struct client *client_connect(const char *path, unsigned timeout_ms, GError **error);
/*
 * The same on a connected socket, which the client now owns. `engine`: its process; while its main thread works, it is
 * waited for up to ten times as long as each timeout says. 0: not known.
 */
struct client *client_new_fd(int fd, pid_t engine, unsigned timeout_ms, GError **error);
void client_free(struct client *client);

/* Whether the engine answered with an error of this class (VPROF_ERROR_*). */
bool client_refused(const GError *error, const char *class);

/* To poll for events, once client_next_event has returned NULL: some may have been read with an answer. */
int client_fd(const struct client *client);
const json_t *client_greeting(const struct client *client); /* the "vprof" object; borrowed */

/*
 * Executes a method. Steals `arguments` (may be NULL). Returns the "return" value (new reference) or NULL. Events that
 * arrive meanwhile are kept for client_next_event. Descriptors that came with the answer go to *fds (*n_fds of them, to
 * be closed by the caller, array by g_free) when fds is not NULL, else they are closed.
 */
json_t *client_execute(struct client *client, const char *method, json_t *arguments, int **fds, size_t *n_fds,
                       unsigned timeout_ms, GError **error);

/*
 * The next event (the whole object; new reference). NULL without error: no event within timeout_ms. NULL with
 * CLIENT_ERROR_CLOSED: the engine is gone.
 */
json_t *client_next_event(struct client *client, unsigned timeout_ms, GError **error);

/*
 * The folder of the engines' sockets: /run/vprof for root, else $XDG_RUNTIME_DIR/vprof, without that variable
 * /tmp/vprof-UID. New string; the folder need not exist.
 */
char *client_runtime_dir(void);

/*
 * False only if certainly no process accepts connections at `path`, as for the socket of a dead engine. Never blocks.
 */
bool client_socket_live(const char *path);

/* The pid of the process that listens on that socket, as this process sees it; 0: none, or unknown. */
int client_socket_holder(const char *path);

struct client_socket {
	char *path;
	bool live;
};

/*
 * The sockets (*.sock) in client_runtime_dir(), sorted by path: an array of struct client_socket that frees its
 * elements, empty when the folder does not exist. Nothing is removed. Error: CLIENT_ERROR_CONNECT, also for a folder of
 * another user than root and this one, or to which every user may write.
 */
GArray *client_list_sockets(GError **error);

#endif
