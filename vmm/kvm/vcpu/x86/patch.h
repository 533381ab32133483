// SPDX-License-Identifier: BSD-2-Clause
/*
 * INT3 in the place of instructions of the guest, one for each address. The guest may write to that memory, too: a byte
 * that is no longer our INT3 is left alone.
 */
#ifndef VPROF_KVM_VCPU_X86_PATCH_H
#define VPROF_KVM_VCPU_X86_PATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/guest_debug.h"

#define PATCH_INT3 0xccu

struct patch {
	gva_t at;
	uint8_t *byte; /* in the guest's memory */
	uint8_t original;
	unsigned users;
	bool lifted; /* the instruction is back, for a step */
};

/* All under the lock; `all` is changed by the main thread only. */
struct patches {
	pthread_mutex_t lock;
	size_t n;
	struct patch all[GUEST_BREAKPOINTS_MAX];
};

void patches_init(struct patches *patches);
void patches_deinit(struct patches *patches);

/*
 * Adds a user; the first one writes the INT3. False: the byte has one, of the guest or of another address.
 * At most GUEST_BREAKPOINTS_MAX.
 */
bool patches_insert(struct patches *patches, gva_t at, uint8_t *byte);
/* Removes a user; the last one restores the instruction. */
void patches_drop(struct patches *patches, gva_t at);

/* Whether there is one at this address, or, by another address, over this byte (NULL: none). */
bool patches_cover(struct patches *patches, gva_t at, const uint8_t *byte);
/* Whether the patch at this address still has its INT3. */
bool patches_intact(struct patches *patches, gva_t at);

/* In bytes that were read at `from`: the instructions that patches have replaced, instead of their INT3. */
void patches_put_back(struct patches *patches, gva_t from, uint8_t *code, size_t n);

/*
 * For the execution of the instruction while no other vCPU runs: lift restores it, lay writes the INT3 again unless the
 * patch has been dropped. False: there is no such patch, or it has no INT3.
 */
bool patches_lift(struct patches *patches, gva_t at, const uint8_t *byte);
void patches_lay(struct patches *patches, gva_t at, const uint8_t *byte);

#endif
