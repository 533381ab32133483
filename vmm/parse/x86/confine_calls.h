// SPDX-License-Identifier: BSD-2-Clause
/* What seccomp has of the processor: for confine.c. */
#ifndef VPROF_PARSE_X86_CONFINE_CALLS_H
#define VPROF_PARSE_X86_CONFINE_CALLS_H

#include <linux/audit.h>
#include <sys/syscall.h>

#define CONFINE_ARCHITECTURE AUDIT_ARCH_X86_64
/* System calls that others have replaced. */
#define CONFINE_REFUSED SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink

#endif
