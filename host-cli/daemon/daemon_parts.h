// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the processes of the daemon do, each a daemon_child_main, and what they say: the lines of the finder are
 * {"guests": as guest_list has them}; those of the other two are what the status has of them.
 */
#ifndef VPROF_CLI_DAEMON_DAEMON_PARTS_H
#define VPROF_CLI_DAEMON_DAEMON_PARTS_H

#include <jansson.h>
#include <sys/types.h>

#include "daemon/daemon_config.h"

/* Finds guests; data: struct daemon_config. */
int daemon_find(int fd, void *data);

struct daemon_guest_job {
	const struct daemon_config *config;
	const json_t *guest; /* as guest_list has it */
};

/* The recording of the process that samples a guest, in the folder of the socket. New string. */
char *daemon_recording(const struct daemon_config *config, pid_t pid);
#define DAEMON_FINISHED ".old" /* behind that name while it is made into a profile */

/* Samples one guest until it is gone; data: struct daemon_guest_job. */
int daemon_sample(int fd, void *data);

/* Sends what is in the spool; data: struct daemon_config. */
int daemon_send(int fd, void *data);

#endif
