// SPDX-License-Identifier: BSD-2-Clause
/* A struct guest that is nothing but a few hundred KiB of RAM from guest physical 0, and helpers to put page tables in
 * it. */
#ifndef VPROF_TEST_SUPPORT_FAKE_GUEST_MEMORY_H
#define VPROF_TEST_SUPPORT_FAKE_GUEST_MEMORY_H

#include <string.h>

#include "guest/guest.h"

#define FAKE_RAM_BYTES (512u << 10)

struct fake_guest {
	struct guest guest;
	uint8_t ram[FAKE_RAM_BYTES];
	uint64_t next_table; /* where fake_table_new takes its pages from */
	unsigned reads;
};

static inline bool fake_memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	struct fake_guest *fake = (struct fake_guest *)guest;

	fake->reads++;
	if (from.value >= FAKE_RAM_BYTES || bytes > FAKE_RAM_BYTES - from.value)
		return false;
	memcpy(to, fake->ram + from.value, bytes);
	return true;
}

static inline void fake_guest_init(struct fake_guest *fake)
{
	static const struct guest_ops ops = {.memory_read = fake_memory_read};

	memset(fake, 0, sizeof(*fake));
	fake->guest.ops = &ops;
	fake->next_table = 0x10000;
}

static inline void fake_write(struct fake_guest *fake, uint64_t gpa, uint64_t value)
{
	memcpy(fake->ram + gpa, &value, sizeof(value));
}

static inline uint64_t fake_read(struct fake_guest *fake, uint64_t gpa)
{
	uint64_t value;

	memcpy(&value, fake->ram + gpa, sizeof(value));
	return value;
}

static inline uint64_t fake_table_new(struct fake_guest *fake)
{
	uint64_t table = fake->next_table;

	fake->next_table += 4096;
	return table;
}

/*
 * Maps the page of `gva` to `gpa` under `root` with `levels` levels; leaf_level 1: 4 KiB, 2: 2 MiB, 3: 1 GiB. Returns
 * where the leaf entry is.
 */
static inline uint64_t fake_map(struct fake_guest *fake, uint64_t root, unsigned levels, uint64_t gva, uint64_t gpa,
                                unsigned leaf_level)
{
	uint64_t table = root;
	uint64_t at = 0;

	for (unsigned level = levels; level >= leaf_level; level--) {
		at = table + (gva >> (12 + 9 * (level - 1)) & 511) * 8;
		if (level == leaf_level)
			break;
		if (fake_read(fake, at) == 0)
			fake_write(fake, at, fake_table_new(fake) | 7);
		table = fake_read(fake, at) & UINT64_C(0x000ffffffffff000);
	}
	fake_write(fake, at, gpa | 7 | (leaf_level > 1 ? 0x80 : 0));
	return at;
}

#endif
