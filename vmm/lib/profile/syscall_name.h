// SPDX-License-Identifier: BSD-2-Clause
/* Numbers and names of x86-64 Linux system calls, as the build machine's <asm/unistd_64.h> has them. */
#ifndef VPROF_PROFILE_SYSCALL_NAME_H
#define VPROF_PROFILE_SYSCALL_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define SYSCALL_NUMBER_MAX 1023u /* x86-64 is at about 470 in Linux 6.18 */

/* NULL for a number without a name. */
const char *syscall_name(uint64_t number);
bool syscall_number(const char *name, uint32_t *number);

#endif
