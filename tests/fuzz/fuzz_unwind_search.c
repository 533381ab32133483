// SPDX-License-Identifier: BSD-2-Clause
/*
 * The search for a stack pointer on stacks that may hold anything. An input is four words (RIP, RBP, and the ends of
 * the two stacks), and then the memory before the task stack's end, last word last; a word below 4096 stands for a
 * place in the kernel's text.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/fake_calls.h"
#include "../support/fake_guest_memory.h"
#include "fuzz_target.h"
#include "guest/x86/page_tables_x86.h"
#include "linux/os_linux.h"
#include "linux/unwind_search.h"

#define MEMORY UINT64_C(0xffff888000000000)
#define STACK_END UINT64_C(0x8000)
#define STACK_WORDS 2048u

static void stack_fill(struct fake_guest *fake, const uint8_t *data, size_t size)
{
	size_t n = MIN(size / sizeof(uint64_t), STACK_WORDS);

	for (size_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, data + i * sizeof(word), sizeof(word));
		fake_write(fake, STACK_END - (n - i) * sizeof(word), word < 4096 ? FAKE_TEXT + word : word);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fake_guest fake;
	static struct unwind_tables *orc;
	static struct call_sites *sites;
	uint64_t words[4];

	if (size < sizeof(words) || (!orc && !fake_calls_load(&orc, &sites)))
		return 0;
	memcpy(words, data, sizeof(words));
	fake_guest_init(&fake);
	struct guest_regs regs = {
		.rip = FAKE_TEXT + words[0] % 4096, .rbp = words[1], .cr3 = fake_table_new(&fake), .valid = true};

	fake_map(&fake, regs.cr3, 4, MEMORY, 0, 2);
	stack_fill(&fake, data + sizeof(words), size - sizeof(words));
	const struct unwind_config config = {
		.system = &linux_unwinding, .tables = orc, .sites = sites, .depth = UNWIND_DEPTH_MAX};
	const struct unwind_stacks stacks = {
		.task = words[2] ? words[2] : MEMORY + STACK_END,
		.interrupt = words[3],
		.entry = words[1],
		.in_kernel = words[0] >> 63,
	};
	struct page_walk memory;

	page_walk_init(&memory, &fake.guest, regs.cr3, false);
	fake.reads = 0;
	enum unwind_search_result result = unwind_search(&config, &stacks, &memory, &regs);

	if (fake.reads > 100 * UNWIND_SEARCH_STEPS_MAX || (result != UNWIND_SEARCH_FOUND && regs.rsp != 0))
		abort();
	return 0;
}
