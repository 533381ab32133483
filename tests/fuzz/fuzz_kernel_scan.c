// SPDX-License-Identifier: BSD-2-Clause
/*
 * A scan for the page tables of a kernel in hostile memory: the first byte has the number of levels, then eight bytes
 * for each of three pieces of memory that may be read, then changes as in fuzz_changes.h. A scan ends within its look,
 * however often it goes on, and what it finds leads to a table.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/fake_kernel.h"
#include "fuzz_changes.h"
#include "fuzz_target.h"
#include "linux/kernel_scan.h"

#define PIECES 3u
#define LOOK_BYTES (UINT64_C(4) << 20)
#define LOOKS_MAX 4096u /* of a scan: pieces have 64 KiB pages in all */
#define PAGE_BYTES 4096u

static struct fake_guest fake;
static struct os_scan_run pieces[PIECES];

static bool next_piece(void *data G_GNUC_UNUSED, uint64_t from, struct os_scan_run *run)
{
	for (size_t i = 0; i < PIECES; i++)
		if (pieces[i].gpa + pieces[i].bytes > from) {
			*run = pieces[i];
			if (from > run->gpa) {
				run->bytes -= from - run->gpa;
				run->gpa = from;
			}
			return true;
		}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct os_scan scan = {0};
	unsigned looks = 0;

	if (size < 1 + PIECES * 8)
		return 0;
	fake_kernel_make(&fake, FAKE_KERNEL_LINKED, 0x5a);
	for (size_t i = 0; i < PIECES; i++) {
		uint32_t words[2];

		memcpy(words, data + 1 + i * 8, 8);
		pieces[i] = (struct os_scan_run){(uint64_t)words[0] * PAGE_BYTES,
		                                 (uint64_t)(words[1] % 65536) * PAGE_BYTES};
	}
	memory_change(&fake, data + 1 + PIECES * 8, size - 1 - PIECES * 8);
	do {
		struct look look;

		look_init(&look, &fake.guest);
		look.bytes_left = LOOK_BYTES;
		fake.reads = 0;
		const uint64_t top = kernel_tables_scan(&scan, &look, next_piece, NULL, data[0] & 1);

		if (fake.reads > LOOK_BYTES / LOOK_READ_BYTES || ++looks > LOOKS_MAX ||
		    (top != 0 && (top % PAGE_BYTES != 0 || top > FAKE_RAM_BYTES - PAGE_BYTES)))
			abort();
		if (top != 0)
			break;
	} while (scan.from != 0);
	return 0;
}
