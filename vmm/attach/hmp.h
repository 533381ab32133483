// SPDX-License-Identifier: BSD-2-Clause
/*
 * What QEMU's human monitor prints, taken apart. Its text is meant for people and belongs to a process that a guest may
 * have taken over: fields in another form than expected are left out.
 */
#ifndef VPROF_ATTACH_HMP_H
#define VPROF_ATTACH_HMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"

#define HMP_RAM_RANGES_MAX 512u

/* One line of `info mtree -f` that is guest RAM (or ROM, which is RAM that the guest cannot write). */
struct hmp_ram_range {
	uint64_t gpa;
	uint64_t bytes;
	char block[64];  /* the memory region's name */
	uint64_t offset; /* of its first byte in that region */
};

/*
 * The RAM that the vCPUs see, from the flat view of the address space "cpu-memory-0" or "memory" without system
 * management mode; sorted, not overlapping. Returns how many ranges.
 */
size_t hmp_parse_mtree(const char *text, struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX]);

/* "Host virtual address for 0x0 (pc.ram) is 0x7f3027e00000". */
bool hmp_parse_gpa2hva(const char *text, uint64_t *hva);

/* The vCPUs 0..max-1 of `info registers -a`, in the order printed; returns how many were whole. */
size_t hmp_parse_registers(const char *text, struct seen_vcpu *registers, size_t max);

#endif
