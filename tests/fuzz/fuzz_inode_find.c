// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file by its name among a guest's inodes, in which the input changes words. An input is triples: two bytes that
 * choose a word in the super blocks, inodes, names or page tables, and one that says what it becomes: the place of
 * another such word, or a number.
 */
#include <stdlib.h>

#include "../support/fake_inodes.h"
#include "fuzz_target.h"

#define READS_MAX 20000u /* then, no more memory can be read: lists that never end would take all of the time */

static struct fake_guest fake;

static bool limited_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	return fake.reads < READS_MAX && fake_memory_read(guest, from, to, bytes);
}

static uint64_t place_of(uint32_t number)
{
	return 0x10000 + number % (0x40000 / 8) * 8;
}

static void memory_change(const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3) {
		const uint64_t at = place_of((uint32_t)(data[0] | data[1] << 8));

		if (data[2] < 0x20)
			fake_write(&fake, at, data[2]);
		else
			fake_write(&fake, at, FAKE_INODES_MEMORY + place_of((uint32_t)(data[2] * 0x101)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"perf-12.map", "no-such-file"};
	static const struct guest_ops ops = {.memory_read = limited_read};
	struct page_walk walk;

	fake_inodes_init(&fake, &walk);
	fake.guest.ops = &ops;
	memory_change(data, size);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		const char *why = NULL;

		fake.reads = 0;
		if (inode_find(&fake_inode_layout, &walk, names[i], &why) == 0 && !why)
			abort();
	}
	return 0;
}
