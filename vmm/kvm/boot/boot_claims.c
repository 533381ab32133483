// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/boot_claims.h"

#include <inttypes.h>

G_DEFINE_QUARK(vprof_boot_error, boot_error)

static const struct boot_claim *claim_find(const struct boot_claims *claims, uint64_t start, uint64_t bytes)
{
	for (unsigned i = 0; i < claims->n; i++) {
		const struct boot_claim *claim = &claims->claim[i];

		if (start < claim->start + claim->bytes && claim->start < start + bytes)
			return claim;
	}
	return NULL;
}

static void set_outside_error(const struct memory *memory, const char *owner, uint64_t start, uint64_t bytes,
                              GError **error)
{
	g_autofree char *high = NULL;

	if (memory_high_bytes(memory) > 0)
		high = g_strdup_printf(" and 0x%" PRIx64 "..0x%" PRIx64, MEMORY_HIGH_BASE,
		                       MEMORY_HIGH_BASE + memory_high_bytes(memory) - 1);
	g_set_error(error, BOOT_ERROR, BOOT_ERROR_MEMORY,
	            "%s at 0x%" PRIx64 " (%" PRIu64 " bytes) is not all in the guest's memory, 0x0..0x%" PRIx64
	            "%s; give the guest more memory, or link the kernel for another address",
	            owner, start, bytes, memory_low_bytes(memory) - 1, high ? high : "");
}

void *boot_claim(struct boot_claims *claims, const char *owner, uint64_t start, uint64_t bytes, GError **error)
{
	void *memory = memory_at(claims->memory, (gpa_t){start}, bytes);
	if (!memory) {
		set_outside_error(claims->memory, owner, start, bytes, error);
		return NULL;
	}
	const struct boot_claim *other = claim_find(claims, start, bytes);
	if (other) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_MEMORY,
		            "%s at 0x%" PRIx64 "..0x%" PRIx64 " overlaps %s at 0x%" PRIx64 "..0x%" PRIx64, owner, start,
		            start + bytes - 1, other->owner, other->start, other->start + other->bytes - 1);
		return NULL;
	}
	g_assert(claims->n < BOOT_CLAIMS_MAX);
	claims->claim[claims->n++] = (struct boot_claim){.owner = owner, .start = start, .bytes = bytes};
	return memory;
}
