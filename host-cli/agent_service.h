// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent in an attached guest, where it is a service: the phases that it tells of, and what processes have mapped,
 * for which it is asked where that is not read in the guest's memory. The conversation goes over the host's end of its
 * virtio-serial port, a socket of QEMU's. The guest runs on whether there is an agent or not, and so does its
 * recording.
 */
#ifndef VPROF_CLI_AGENT_SERVICE_H
#define VPROF_CLI_AGENT_SERVICE_H

#include <glib.h>
#include <poll.h>

#include "run_record.h"

#define AGENT_SERVICE_ERROR agent_service_error_quark()
GQuark agent_service_error_quark(void);
enum agent_service_error {
	AGENT_SERVICE_ERROR_CONNECT, /* nobody listens on the socket, or it may not be used */
};

struct agent_service;

/* Connects to the socket `path`; what is told goes to `capture`, which is borrowed. */
struct agent_service *agent_service_new(const char *path, struct capture *capture, GError **error);
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
