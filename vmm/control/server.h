// SPDX-License-Identifier: BSD-2-Clause
/* The control socket's server. Runs on the default GMainContext; main thread only. Protocol: vprof/control.h. */
#ifndef VPROF_CONTROL_SERVER_H
#define VPROF_CONTROL_SERVER_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "sample/session.h"

struct control_server;

struct control_server *control_server_new(struct guest *guest, struct session *session);
/* Disconnects everybody and removes the socket file. */
void control_server_free(struct control_server *server);

/* Listens on a UNIX socket at `path` (mode 0600); only root's and our own uid may connect. */
bool control_server_listen(struct control_server *server, const char *path, GError **error);

/*
 * Serves a connected socket, which the server now owns. When `owner` is true the guest belongs to this client: it ends
 * with GUEST_END_STOPPED when the client goes away.
 */
void control_server_add_client(struct control_server *server, int fd, bool owner);

/* Sends an event to every client that has negotiated. Steals `data`. */
void control_server_event(struct control_server *server, const char *name, json_t *data);

/* Called (once) when a client said `quit`, or the owner went away. */
void control_server_on_quit(struct control_server *server, void (*quit)(void *data), void *data);

/* Waits until what was queued for the clients has gone out, at most timeout_ms. */
void control_server_flush(struct control_server *server, unsigned timeout_ms);

#endif
