// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest's memory and registers in a file: the ELF core that QEMU writes (dump-guest-memory, `virsh dump
 * --memory-only`) of an x86-64 guest. Its program headers of type PT_LOAD say where in the file which guest physical
 * memory is, and its notes "QEMU" have the registers of each vCPU (QEMU, target/i386/arch_dump.c). Nothing in the file
 * is trusted.
 */
#ifndef VPROF_ATTACH_CORE_FILE_H
#define VPROF_ATTACH_CORE_FILE_H

#include "attach/hmp.h"

#define CORE_FILE_ERROR core_file_error_quark()
GQuark core_file_error_quark(void);
enum core_file_error {
	CORE_FILE_ERROR_READ,   /* it cannot be opened or read */
	CORE_FILE_ERROR_FORMAT, /* it is no such core */
};

#define CORE_FILE_RANGES_MAX 4096u
#define CORE_FILE_NOTES_BYTES_MAX (1u << 20)

struct core_range {
	uint64_t gpa, bytes;
	uint64_t offset; /* in the file */
};

struct core_file {
	int fd;
	char *path;
	struct core_range *ranges; /* by gpa; they do not overlap */
	size_t n_ranges;
	struct hmp_registers registers[GUEST_VCPUS_MAX]; /* by vCPU */
	unsigned n_vcpus;
};

struct core_file *core_file_open(const char *path, GError **error);
/* The same of a descriptor, which is taken over, also on failure. `path`: for messages. */
struct core_file *core_file_open_fd(int fd, const char *path, GError **error);
void core_file_free(struct core_file *core); /* NULL is fine */

/* False when any byte of the range is not in the file. Any thread. */
bool core_file_read(const struct core_file *core, gpa_t from, void *to, size_t bytes);

#endif
