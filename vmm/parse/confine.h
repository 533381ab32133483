// SPDX-License-Identifier: BSD-2-Clause
/* How vprof-parse gives up what it does not need: the server once, and each of its children more. */
#ifndef VPROF_PARSE_CONFINE_H
#define VPROF_PARSE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A user id of its own, an empty root, no network, no capability. Started by a user other than root, it stays that
 * user's, in a user namespace where the host allows one. What a host or a container refuses of that is left out, as
 * `vprof doctor` says: the list of system calls below stands without it. False where capabilities cannot be given up.
 */
bool confine_server(void);

/*
 * Limits of time, memory and of what it may write, then a list of system calls: none that opens a file, makes a socket
 * or a process, or reaches another one. False with errno.
 */
bool confine_child(uint64_t input_bytes, uint64_t answer_bytes);

#endif
