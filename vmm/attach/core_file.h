// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest's memory and registers in a file: the ELF core that QEMU writes (dump-guest-memory, `virsh dump
 * --memory-only`) of an x86-64 guest, or the same compressed (kdump_file.h). The program headers of type PT_LOAD of an
 * ELF core say where in the file which guest physical memory is, and notes "QEMU" have the registers of each vCPU
 * (QEMU, target/i386/arch_dump.c). Nothing in the file is trusted.
 */
#ifndef VPROF_ATTACH_CORE_FILE_H
#define VPROF_ATTACH_CORE_FILE_H

#include "attach/dump_bytes.h"
#include "attach/kdump_file.h"
#include "guest/guest.h"

#define CORE_FILE_ERROR core_file_error_quark()
GQuark core_file_error_quark(void);
enum core_file_error {
	CORE_FILE_ERROR_READ,   /* it cannot be opened or read */
	CORE_FILE_ERROR_FORMAT, /* it is no such dump */
};

/* Sets CORE_FILE_ERROR_FORMAT, with a clause: "it is cut off". Returns false. */
bool core_file_fail(GError **error, const char *why);

#define CORE_FILE_RANGES_MAX 4096u
#define CORE_FILE_NOTES_BYTES_MAX (1u << 20)

struct core_range {
	uint64_t gpa, bytes;
	uint64_t offset; /* in the file */
};

struct core_file {
	int fd;
	struct dump_bytes bytes;   /* of it */
	struct kdump_file *kdump;  /* NULL: it is an ELF core */
	struct core_range *ranges; /* of an ELF core, by gpa; they do not overlap */
	size_t n_ranges;
	struct seen_vcpu registers[GUEST_VCPUS_MAX]; /* by vCPU */
	unsigned n_vcpus;
};

/* The registers of a vCPU in a note "QEMU" (x86/core_state.c). False: it is too short, or of another version. */
bool core_state_read(const uint8_t *body, size_t bytes, unsigned vcpu, struct seen_vcpu *registers);

struct core_file *core_file_open(const char *path, GError **error);
/* The same of a descriptor, which is taken over, also on failure. `path`: for messages. */
struct core_file *core_file_open_fd(int fd, const char *path, GError **error);
void core_file_free(struct core_file *core); /* NULL is fine */

uint64_t core_file_memory_bytes(const struct core_file *core);
/* False when any byte of the range is not in the file. Any thread. */
bool core_file_read(const struct core_file *core, gpa_t from, void *to, size_t bytes);

#endif
