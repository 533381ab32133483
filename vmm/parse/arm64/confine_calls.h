// SPDX-License-Identifier: BSD-2-Clause
/* What seccomp has of the processor: for confine.c. */
#ifndef VPROF_PARSE_ARM64_CONFINE_CALLS_H
#define VPROF_PARSE_ARM64_CONFINE_CALLS_H

#include <linux/audit.h>
#include <sys/syscall.h>

#define CONFINE_ARCHITECTURE AUDIT_ARCH_AARCH64
/* No system calls that others have replaced. */
#define CONFINE_REFUSED

#endif
