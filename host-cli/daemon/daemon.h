// SPDX-License-Identifier: BSD-2-Clause
/*
 * `vprof daemon`: the supervisor. It finds the guests of this host, samples each with an engine of its own, sends
 * profiles, and says how it is.
 */
#ifndef VPROF_CLI_DAEMON_DAEMON_H
#define VPROF_CLI_DAEMON_DAEMON_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/daemon_config.h"

#define DAEMON_STATUS_VERSION 1

#define DAEMON_STATUS_ERROR daemon_status_error_quark()
GQuark daemon_status_error_quark(void);
enum daemon_status_error { DAEMON_STATUS_ERROR_NONE }; /* no daemon, or no answer */

/* Runs until a signal. path: of the configuration, as daemon_config_read takes it. Returns the exit status. */
int daemon_run(const char *path);

/* Asks the daemon that serves config->socket for its status; new reference. */
json_t *daemon_status_ask(const struct daemon_config *config, GError **error);
/* Prints it for people. */
void daemon_status_print(const json_t *status, FILE *to);

#endif
