// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent in an attached guest, where it runs as a service. It reports phases, and mapped files if these are not read
 * from guest memory. The connection is the host's end of its virtio-serial port, which is a socket of QEMU, or vsock,
 * where the agent connects. Guest and recording continue with or without an agent.
 */
#ifndef VPROF_CLI_RUN_AGENT_SERVICE_H
#define VPROF_CLI_RUN_AGENT_SERVICE_H

#include <glib.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>

#include "record/recorder.h"

#define AGENT_SERVICE_ERROR agent_service_error_quark()
GQuark agent_service_error_quark(void);
enum agent_service_error {
	AGENT_SERVICE_ERROR_CONNECT, /* the socket has no listener or cannot be used */
	AGENT_SERVICE_ERROR_CID,     /* the guest's vsock address is unknown */
};

struct agent_service;

/* Checks the syntax of `where`. Error: UNITS_ERROR. */
bool agent_service_check(const char *where, GError **error);

/*
 * `where`: the path of a socket to connect to, or "vsock:PORT" to listen on; `guest`: as query-guest. Reports go to
 * `recorder`, which is borrowed. Errors: AGENT_SERVICE_ERROR, AGENT_VSOCK_ERROR, UNITS_ERROR.
 */
struct agent_service *agent_service_new(const char *where, const json_t *guest, struct recorder *recorder,
                                        GError **error);
void agent_service_free(struct agent_service *service);

/* The entry for poll(2); agent_service_serve takes the same entry afterwards, ready or not. */
struct pollfd agent_service_poll(const struct agent_service *service);
void agent_service_serve(struct agent_service *service, const struct pollfd *entry);

/*
 * At the end of the recording: waits briefly, until `impatience` becomes readable at most, for what was marked until
 * now and, if they still resolve earlier samples, for the mappings once more.
 */
void agent_service_finish(struct agent_service *service, int impatience);

/* Prints on standard error if no agent has answered. */
void agent_service_say_end(const struct agent_service *service);

#endif
