// SPDX-License-Identifier: BSD-2-Clause
/* Events: what the clients of a control server are told without a request. Main thread only. */
#ifndef VPROF_CONTROL_EVENTS_H
#define VPROF_CONTROL_EVENTS_H

#include <jansson.h>
#include <stdint.h>

struct control_server;

#define CONTROL_PHASES_PER_SECOND 100u /* guest-phase events that go out; Linux writes port 0x80 to pass the time */

/* Sends an event to every client that has negotiated. Steals `data`. */
void control_server_event(struct control_server *server, const char *name, json_t *data);

/* The event guest-ended, from guest->end; for guest->on_ended. */
void control_server_guest_ended(struct control_server *server);
/* The guest has started another kernel, which is known (guest->kernel_image). */
void control_server_guest_kernel(struct control_server *server);

/* The event guest-pause, from guest->pause; for guest->on_pause. */
void control_server_guest_pause(struct control_server *server);

/*
 * The event guest-phase; for guest->on_phase. Of more than CONTROL_PHASES_PER_SECOND the rest is dropped, and the next
 * event that goes out has their number in "dropped".
 */
void control_server_guest_phase(struct control_server *server, unsigned vcpu, uint8_t value, uint64_t time_ns);

/* The event samples-lost: from now on rings are checked for lost samples once a second. */
void control_server_watch_lost(struct control_server *server);
void control_server_unwatch_lost(struct control_server *server);

#endif
