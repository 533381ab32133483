// SPDX-License-Identifier: BSD-2-Clause
/*
 * A trap in the place of instructions of the guest, one for each address: INT3 on x86-64, BRK on arm64. The guest may
 * write to that memory, too: what is no longer our trap is left alone.
 */
#ifndef VPROF_KVM_VCPU_PATCH_H
#define VPROF_KVM_VCPU_PATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest_debug.h"

/* The instruction; as long as it is, so much of what it replaces is changed. */
struct patch_trap {
	uint32_t code;
	unsigned bytes; /* 1 or 4 */
};

struct patch {
	gva_t at;
	uint8_t *place; /* in the guest's memory, at a multiple of the trap's bytes */
	uint32_t original;
	unsigned users;
	bool lifted; /* the instruction is back, for a step */
};

/* All under the lock; `all` is changed by the main thread only. */
struct patches {
	pthread_mutex_t lock;
	struct patch_trap trap;
	size_t n;
	struct patch all[GUEST_BREAKPOINTS_MAX];
};

void patches_init(struct patches *patches, const struct patch_trap *trap);
void patches_deinit(struct patches *patches);

/*
 * Adds a user; the first one writes the trap. False: there is one, of the guest or of another address.
 * At most GUEST_BREAKPOINTS_MAX.
 */
bool patches_insert(struct patches *patches, gva_t at, uint8_t *place);
/* Removes a user; the last one restores the instruction. */
void patches_drop(struct patches *patches, gva_t at);

/* Whether there is one at this address, or, by another address, in this place (NULL: none). */
bool patches_cover(struct patches *patches, gva_t at, const uint8_t *place);
/* Whether there is a trap in this place, of ours or of the guest's. */
bool patches_trap(const struct patches *patches, const uint8_t *place);
/* Whether the patch at this address still has its trap. */
bool patches_intact(struct patches *patches, gva_t at);

/* In bytes that were read at `from`: the instructions that patches have replaced, instead of their traps. */
void patches_put_back(struct patches *patches, gva_t from, uint8_t *code, size_t n);

/*
 * For the execution of the instruction while no other vCPU runs: lift restores it, lay writes the trap again unless the
 * patch has been dropped. False: there is no such patch, or it has no trap.
 */
bool patches_lift(struct patches *patches, gva_t at, const uint8_t *place);
void patches_lay(struct patches *patches, gva_t at, const uint8_t *place);

#endif
