// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which virtual machine monitor a process is, and what its guest is called, by the name of its program and its command
 * line. Both are for people to read: a process can name itself and its guest as it likes.
 */
#ifndef VPROF_PROCESS_VMM_NAME_H
#define VPROF_PROCESS_VMM_NAME_H

#include <stddef.h>
#include <sys/types.h>

#define VMM_NAME_MAX 200u /* bytes of each name; the rest is cut off */

struct vmm_name {
	char *vmm;   /* "QEMU", "Firecracker", ...; the name of the program's file if it is no known one, "?" without */
	char *guest; /* from the command line; NULL: it has no name there */
	char *uuid;  /* QEMU's -uuid, which libvirt always gives; NULL */
};

void vmm_name_clear(struct vmm_name *name);

/*
 * program: path of the program's file, NULL if it is not known. arguments: `bytes` of /proc/PID/cmdline, each argument
 * ended by a NUL byte; the last one need not be. The strings have any bytes but NUL.
 */
struct vmm_name vmm_name_parse(const char *program, const char *arguments, size_t bytes);

/* Of a process, by /proc/PID/exe, which needs the rights of ptrace(2), and /proc/PID/cmdline. `proc`: "/proc". */
struct vmm_name vmm_name_read(const char *proc, pid_t pid);

#endif
