// SPDX-License-Identifier: BSD-2-Clause
/*
 * INT3 in the place of instructions of the guest, one for each address. The guest shares that memory and may write
 * there, too: a byte that is not ours any more is left alone.
 */
#ifndef VPROF_KVM_PATCH_H
#define VPROF_KVM_PATCH_H

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
 * One user more; the first writes. False: there is an INT3, of the guest's own or of another address for the same byte.
 * At most GUEST_BREAKPOINTS_MAX.
 */
bool patches_insert(struct patches *patches, gva_t at, uint8_t *byte);
/* One user less; the last puts the instruction back. */
void patches_drop(struct patches *patches, gva_t at);

/* Whether there is one at this address, or, by another address, over this byte (NULL: none). */
bool patches_cover(struct patches *patches, gva_t at, const uint8_t *byte);
/* Whether a patch that there is still has its INT3. */
bool patches_intact(struct patches *patches, gva_t at);

/*
 * Around the instruction's execution while no other vCPU runs: puts it back for a while, and takes it out again unless
 * the patch has been dropped since. False: there is no such patch, or it has no INT3.
 */
bool patches_lift(struct patches *patches, gva_t at, const uint8_t *byte);
void patches_lay(struct patches *patches, gva_t at, const uint8_t *byte);

#endif
