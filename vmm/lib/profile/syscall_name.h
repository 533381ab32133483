// SPDX-License-Identifier: BSD-2-Clause
/*
 * Numbers and names of Linux system calls of this architecture: as the <asm/unistd.h> that we are built with has them,
 * and later ones, up to Linux 6.17.
 */
#ifndef VPROF_PROFILE_SYSCALL_NAME_H
#define VPROF_PROFILE_SYSCALL_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define SYSCALL_NUMBER_MAX 1023u /* Linux is at about 470 in 6.18 */

/* NULL for a number without a name. */
const char *syscall_name(uint64_t number);
bool syscall_number(const char *name, uint32_t *number);

#endif
