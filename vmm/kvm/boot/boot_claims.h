// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guest memory that is in use before the kernel runs. Everything is claimed before it is written, so that a kernel
 * segment that would cover another thing is refused.
 */
#ifndef VPROF_KVM_BOOT_BOOT_CLAIMS_H
#define VPROF_KVM_BOOT_BOOT_CLAIMS_H

#include <glib.h>

#include "kvm/host/memory.h"
#include "lib/symbol/image.h"

#define BOOT_ERROR boot_error_quark()
GQuark boot_error_quark(void);
enum boot_error {
	BOOT_ERROR_MEMORY,   /* a segment or the initramfs does not fit into RAM; the message has both ranges */
	BOOT_ERROR_PROTOCOL, /* PVH asked for, and the image has no entry note */
	BOOT_ERROR_IO,       /* the initramfs cannot be read */
	BOOT_ERROR_RANGE,    /* command line too long, vCPUs out of range */
};

#define BOOT_PAGE_BYTES 0x1000u

/* The loader's own structures, each kernel segment, the initramfs, a host quirk's range. */
#define BOOT_CLAIMS_MAX (IMAGE_SEGMENTS_MAX + 4u)

struct boot_claim {
	const char *owner; /* static text, for messages */
	uint64_t start;
	uint64_t bytes;
};

struct boot_claims {
	const struct memory *memory;
	struct boot_claim claim[BOOT_CLAIMS_MAX];
	unsigned n;
};

/*
 * Takes [start, start + bytes) for `owner` and returns the host memory behind it; NULL and BOOT_ERROR_MEMORY when it
 * is not all RAM or when a part of it is taken. bytes > 0.
 */
void *boot_claim(struct boot_claims *claims, const char *owner, uint64_t start, uint64_t bytes, GError **error);

/* Host memory of one of our own structures, which boot_load has claimed. */
static inline void *boot_structure(const struct memory *memory, uint64_t start, uint64_t bytes)
{
	return memory_at(memory, (gpa_t){start}, bytes);
}

#endif
