// SPDX-License-Identifier: BSD-2-Clause
/* The server of the control socket. Runs on the default GMainContext; main thread only. Protocol: vprof/control.h. */
#ifndef VPROF_CONTROL_SERVER_H
#define VPROF_CONTROL_SERVER_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "control/control_error.h"
#include "control/events.h"
#include "guest/guest.h"
#include "sample/session.h"

struct control_server;

#define CONTROL_CLIENTS_MAX 128u /* connected to the listening socket at once */

/* The caller keeps guest and session, which outlive the server. */
struct control_server *control_server_new(struct guest *guest, struct session *session);
/* Disconnects all clients and removes the socket file. */
void control_server_free(struct control_server *server);

/*
 * Listens on a UNIX socket at `path` (mode 0600); only root's and our own uid may connect. Its folder is made (mode
 * 0700) if it is absent, and must be ours or root's unless we are root. A socket that a dead engine left at `path` is
 * replaced; a socket in use is an error. Call it once for each server. Error: CONTROL_ERROR_LISTEN.
 */
bool control_server_listen(struct control_server *server, const char *path, GError **error);
/* The same on a listening socket, which the server now owns; its file, if it has one, is left alone. */
bool control_server_listen_fd(struct control_server *server, int fd, GError **error);

/*
 * Before either of them: lets other users connect, as a policy file (control/policy.h) says. The socket of
 * control_server_listen then has mode 0666, and a folder that is made for it 0711. Error: CONTROL_ERROR_LISTEN.
 */
bool control_server_load_policy(struct control_server *server, const char *path, GError **error);

/*
 * Serves a connected socket, which the server now owns. When `owner` is true the guest belongs to this client: it
 * holds the control role from the start, and the guest ends with GUEST_END_STOPPED when the client goes away.
 */
void control_server_add_client(struct control_server *server, int fd, bool owner);

/* A line of the guest's console, for the trace; for guest->on_console_line. Any thread. */
void control_server_console_line(struct control_server *server, const char *line);

/*
 * Called from the main loop when a client said `quit` (at_once), or when the owner said so or went away while other
 * clients want to read on (not at_once; it may be called again, at_once, then). The guest has been told to stop by
 * then; the function may free the server.
 */
void control_server_on_quit(struct control_server *server, void (*quit)(void *data, bool at_once), void *data);

/*
 * Whether a client other than the owner holds the control role, waits for an answer, or has not read all of what it
 * reads: samples, rings that it has by descriptor, events of its probes, the trace.
 */
bool control_server_wanted(const struct control_server *server);
/* How long an engine stays for such clients once its guest has ended, at most: the configuration key "linger-ms". */
unsigned control_server_linger_ms(const struct control_server *server);

/* Answers the requests that wait, with what there is. Waits until what was queued for the clients has gone out, at most
 * timeout_ms. */
void control_server_flush(struct control_server *server, unsigned timeout_ms);

#endif
