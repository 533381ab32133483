// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent in an attached guest, where it is a service: the phases that it tells of, and what processes have mapped,
 * for which it is asked where that is not read in the guest's memory. The conversation goes over the host's end of its
 * virtio-serial port, a socket of QEMU's, or over vsock, where the agent connects. The guest runs on whether there is
 * an agent or not, and so does its recording.
 */
#ifndef VPROF_CLI_AGENT_SERVICE_H
#define VPROF_CLI_AGENT_SERVICE_H

#include <glib.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>

#include "capture/capture.h"

#define AGENT_SERVICE_ERROR agent_service_error_quark()
GQuark agent_service_error_quark(void);
enum agent_service_error {
	AGENT_SERVICE_ERROR_CONNECT, /* nobody listens on the socket, or it may not be used */
	AGENT_SERVICE_ERROR_CID,     /* nobody knows which of the guests that connect by vsock is this one */
};

struct agent_service;

/* Whether that can be listened to; NULL can, nobody asks for it. Error: UNITS_ERROR. */
bool agent_service_check(const char *where, GError **error);

/*
 * `where`: the path of a socket, to which it connects, or "vsock:PORT", where it listens; `guest`: as query-guest. What
 * is told goes to `capture`, which is borrowed. Errors: AGENT_SERVICE_ERROR, AGENT_VSOCK_ERROR, UNITS_ERROR.
 */
struct agent_service *agent_service_new(const char *where, const json_t *guest, struct capture *capture,
                                        GError **error);
void agent_service_free(struct agent_service *service);

/* What to wait for; agent_service_serve takes the same entry after poll(2), also when it was not ready. */
struct pollfd agent_service_poll(const struct agent_service *service);
void agent_service_serve(struct agent_service *service, const struct pollfd *entry);

/*
 * At the recording's end: asks once more for what is mapped, if an answer names samples that were taken before, and
 * waits for it a little; not when `impatience` becomes readable.
 */
void agent_service_finish(struct agent_service *service, int impatience);

/* Says on standard error that no agent has answered, if that is so. */
void agent_service_say_end(const struct agent_service *service);

#endif
