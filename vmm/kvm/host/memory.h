// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest's RAM: one anonymous mapping, shown to the guest below and, past the hole under 4 GiB, above it.
 *
 *   0 ............ 3 GiB   RAM (up to MEMORY_LOW_MAX)
 *   3 GiB ........ 4 GiB   hole: LAPIC, IOAPIC, KVM's own pages, host quirks' MMIO
 *   4 GiB ........         the rest of RAM
 */
#ifndef VPROF_KVM_HOST_MEMORY_H
#define VPROF_KVM_HOST_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest.h"

#define MEMORY_BYTES_MIN (UINT64_C(128) << 20)
#define MEMORY_BYTES_MAX (UINT64_C(64) << 30)
#define MEMORY_LOW_MAX (UINT64_C(3) << 30)
#define MEMORY_HIGH_BASE (UINT64_C(4) << 30)

struct memory;

/* `bytes`: MEMORY_BYTES_MIN..MAX, a multiple of 2 MiB. Zero; pages are taken when touched. Errors: G_FILE_ERROR. */
struct memory *memory_new(uint64_t bytes, GError **error);
void memory_free(struct memory *memory);

uint64_t memory_bytes(const struct memory *memory);
uint64_t memory_low_bytes(const struct memory *memory);  /* RAM from 0 */
uint64_t memory_high_bytes(const struct memory *memory); /* RAM from MEMORY_HIGH_BASE, may be 0 */

/* Makes it the RAM of a VM (KVM_SET_USER_MEMORY_REGION, slots 0 and 1). */
bool memory_register(const struct memory *memory, int vm_fd, GError **error);

/* Host memory behind [from, from + bytes), or NULL when any of it is not RAM or the range wraps the hole. */
void *memory_at(const struct memory *memory, gpa_t from, uint64_t bytes);

#endif
