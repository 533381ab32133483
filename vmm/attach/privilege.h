// SPDX-License-Identifier: BSD-2-Clause
/* Giving up what is not needed any more once the guest has been found and its memory opened. */
#ifndef VPROF_ATTACH_PRIVILEGE_H
#define VPROF_ATTACH_PRIVILEGE_H

#include <stdbool.h>

/*
 * Drops every capability of this thread but those that a route still needs (capabilities(7)); without any there is
 * nothing to drop. Before other threads are started, which inherit the rest. False, with errno, when the kernel
 * refuses.
 */
bool privilege_drop(void);

#endif
