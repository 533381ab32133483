// SPDX-License-Identifier: BSD-2-Clause
#include "linux/unwind_search.h"

#include "guest/x86/frame_x86.h"
#include "linux/x86/code_place.h"
#include "linux/x86/entry_regs.h"
#include "linux/x86/orc_entry.h"

#define FRAMES_MAX 96u
#define STACK_BYTES (UINT64_C(16) << 10)
#define ROOT_BYTES 512u /* a thread's first frame is at most so far from its stack's end */
#define ALIGNMENT 16u   /* of RSP, by the processor, before it pushes (SDM Vol. 3A, 6.14.2) */

#define KERNEL_CS 0x10u /* __KERNEL_CS and __KERNEL_DS of asm/segment.h */
#define KERNEL_SS 0x18u
#define SELECTOR_RPL 3u
/* Of the flags, the processor always has bit 1, and none from bit 22 on. User space's, which Linux may make, have IF.
 */
#define FLAGS_ONE 2u
#define FLAGS_IF 0x200u
#define FLAGS_END 22u

/* What the processor pushes at an interrupt or exception. */
struct pushed {
	uint64_t ip, cs, flags, sp, ss;
};

struct search {
	const struct unwind_config *config;
	const struct unwind_stacks *stacks;
	struct page_walk *memory;
	const struct guest_regs *regs;
	struct code_place place; /* of RIP */
	unsigned steps;          /* left */
	bool switches;           /* a chain led through the code that changes stacks */
	/* The best so far. */
	enum call_link link; /* of the first call; CALL_LINK_NONE: there is none yet */
	bool has_called;     /* a call from there has left its return address below */
	uint64_t rsp, chain; /* `chain`: a hash of its addresses */
	bool ambiguous;
};

/* A chain in the making. */
struct trail {
	struct frame frame;
	struct code_place *place; /* that of RIP, or the one that follows */
	struct code_place caller;
	enum call_link link; /* of the first call */
	uint64_t hash;
	unsigned frames;
};

/* ---- the stacks ---- */

/* Behind the stack that has a byte at `at`; 0: neither. */
static uint64_t end_of(const struct search *search, uint64_t at)
{
	if (at - (search->stacks->task - STACK_BYTES) < STACK_BYTES)
		return search->stacks->task;
	if (search->stacks->interrupt != 0 && at - (search->stacks->interrupt - STACK_BYTES) < STACK_BYTES)
		return search->stacks->interrupt;
	return 0;
}

/* Callers are further up, and what an interrupt's stack was entered from is on the task's. */
static bool goes_up(const struct search *search, uint64_t from, uint64_t to)
{
	uint64_t end = end_of(search, from - 1), end_after = end_of(search, to - 1);

	if (end == 0 || end_after == 0)
		return false;
	return end == end_after ? to > from : end == search->stacks->interrupt;
}

/* ---- one chain ---- */

static bool flags_are_sane(uint64_t flags, uint64_t set)
{
	return (flags & set) && flags >> FLAGS_END == 0;
}

static bool is_of_user(const struct pushed *pushed)
{
	return (pushed->cs & SELECTOR_RPL) == SELECTOR_RPL && (pushed->ss & SELECTOR_RPL) == SELECTOR_RPL &&
	       pushed->ip >> 63 == 0 && flags_are_sane(pushed->flags, FLAGS_IF);
}

/* User space's registers are the last thing on a task's stack. */
static bool is_user_root(const struct search *search, const struct pushed *pushed, uint64_t at)
{
	uint64_t end = at + sizeof(*pushed);

	return is_of_user(pushed) &&
	       (end == search->stacks->task || end + LINUX_X86_FRED_PADDING == search->stacks->task);
}

/* Interrupts of the kernel push on the stack that it uses. */
static bool is_interrupted_kernel(const struct search *search, const struct pushed *pushed, uint64_t at)
{
	uint64_t end = at + sizeof(*pushed);

	return pushed->cs == KERNEL_CS && (pushed->ss == KERNEL_SS || pushed->ss == 0) &&
	       flags_are_sane(pushed->flags, FLAGS_ONE) && pushed->sp - end < ALIGNMENT && end_of(search, at) != 0 &&
	       end_of(search, at) == end_of(search, pushed->sp - 1);
}

static bool is_near_end(const struct search *search, uint64_t sp)
{
	uint64_t end = end_of(search, sp - 1);

	return end != 0 && end - sp <= ROOT_BYTES;
}

enum verdict { GOES_ON, IS_ROOT, IS_NONE };

/* The caller is filled in later. */
static void trail_init(struct trail *trail, struct search *search, uint64_t rsp)
{
	frame_from_registers(search->regs, &trail->frame);
	trail->frame.sp = rsp;
	trail->place = &search->place;
	trail->link = CALL_LINK_DIRECT;
	trail->hash = 0;
	trail->frames = 0;
}

static bool trail_enter(const struct search *search, struct trail *trail, uint64_t address)
{
	trail->place = &trail->caller;
	return code_place_find(search->config, address, trail->place);
}

static enum verdict check_interrupted(struct search *search, struct trail *trail)
{
	struct pushed pushed;

	if (!page_walk_read(search->memory, (gva_t){trail->frame.pushed}, &pushed, sizeof(pushed)))
		return IS_NONE;
	if (trail->frame.user)
		return is_user_root(search, &pushed, trail->frame.pushed) ? IS_ROOT : IS_NONE;
	if (!is_interrupted_kernel(search, &pushed, trail->frame.pushed))
		return IS_NONE;
	return trail_enter(search, trail, pushed.ip) ? GOES_ON : IS_NONE;
}

static enum verdict check_called(struct search *search, struct trail *trail, const struct frame *callee)
{
	const struct call_sites *sites = search->config->sites;
	uint64_t address = trail->frame.ip;

	if (trail->frames > 1 && call_sites_is_init(sites, address) && is_near_end(search, trail->frame.sp))
		return IS_ROOT;
	enum call_link link = code_place_link(search->config, search->memory, address, trail->place);

	if (link == CALL_LINK_NONE || (trail->frames > 1 && !goes_up(search, callee->sp, trail->frame.sp)))
		return IS_NONE;
	if (trail->frames == 1)
		trail->link = link;
	return trail_enter(search, trail, address - 1) ? GOES_ON : IS_NONE;
}

static enum verdict trail_step(struct search *search, struct trail *trail)
{
	const struct unwind_config *config = search->config;
	const struct frame callee = trail->frame;
	enum unwind_end end;

	if (search->steps == 0 || trail->frames++ == FRAMES_MAX)
		return IS_NONE;
	search->steps--;
	trail->hash = (trail->hash ^ callee.ip) * UINT64_C(0x100000001b3);
	if (unwind_orc_step(config, search->memory, &trail->frame, &end) == STEP_DONE)
		return end == UNWIND_END_OF_STACK && (trail->frames == 1 || is_near_end(search, callee.sp)) ? IS_ROOT
		                                                                                            : IS_NONE;
	enum verdict verdict =
		trail->frame.exact ? check_interrupted(search, trail) : check_called(search, trail, &callee);

	if (verdict == GOES_ON && call_sites_switches(config->sites, trail->place->callee.function)) {
		search->switches = true;
		return IS_NONE;
	}
	return verdict;
}

/* ---- all chains ---- */

/* A call that the function has made before is likely to have left its return address where its next one pushes. */
static bool has_called(const struct search *search, uint64_t rsp)
{
	uint64_t below;

	return page_walk_read(search->memory, (gva_t){rsp - sizeof(below)}, &below, sizeof(below)) &&
	       code_place_calls(search->config, search->memory, below, &search->place);
}

static bool is_surer(const struct search *search, enum call_link link, bool called)
{
	return called != search->has_called ? called : link < search->link;
}

static void candidate_add(struct search *search, const struct trail *trail, uint64_t rsp)
{
	const bool called = has_called(search, rsp);

	if (is_surer(search, trail->link, called)) {
		search->has_called = called;
		search->link = trail->link;
		search->rsp = rsp;
		search->chain = trail->hash;
		search->ambiguous = false;
	} else if (called == search->has_called && trail->link == search->link && trail->hash != search->chain) {
		search->ambiguous = true;
	}
}

static void candidate_try(struct search *search, uint64_t rsp)
{
	struct trail trail;
	enum verdict verdict;

	trail_init(&trail, search, rsp);
	do
		verdict = trail_step(search, &trail);
	while (verdict == GOES_ON);
	if (verdict == IS_ROOT)
		candidate_add(search, &trail, rsp);
}

static bool is_code_selector(uint64_t word)
{
	return word == KERNEL_CS || word == 0x33 || word == 0x23; /* __USER_CS, __USER32_CS */
}

/* Whether RSP may be where the rule of RIP then finds the return address, or the saved registers, at word i. */
static bool may_be(struct search *search, const struct orc_entry *entry, const uint64_t *words, size_t i, size_t n)
{
	if (entry->sp_reg == ORC_REG_SP_INDIRECT)
		return true;
	if (entry->type == ORC_CALL)
		return code_place_link(search->config, search->memory, words[i], &search->place) != CALL_LINK_NONE;
	if (entry->type == ORC_REGS_PARTIAL)
		return i + 1 < n && words[i + 1] == KERNEL_CS;
	return i + 1 < n && is_code_selector(words[i + 1]);
}

/* What the rule adds to RSP before it comes to that word. */
static int64_t distance(const struct orc_entry *entry)
{
	const int64_t ip_in_pt_regs = 128;

	if (entry->sp_reg == ORC_REG_SP_INDIRECT)
		return 0;
	if (entry->type == ORC_CALL)
		return entry->sp_offset - (int64_t)sizeof(uint64_t);
	return entry->sp_offset + (entry->type == ORC_REGS ? ip_in_pt_regs : 0);
}

static void stack_search(struct search *search, const struct orc_entry *entry, uint64_t end)
{
	uint64_t words[UNWIND_SEARCH_STACK_BYTES / sizeof(uint64_t)];
	const size_t n = G_N_ELEMENTS(words);
	uint64_t start = end - sizeof(words);

	if (!page_walk_read(search->memory, (gva_t){start}, words, sizeof(words)))
		return;
	for (size_t i = 0; i < n && search->steps > 0; i++) {
		uint64_t rsp = start + i * sizeof(uint64_t) - (uint64_t)distance(entry);

		if (rsp >= start && rsp <= end && may_be(search, entry, words, i, n))
			candidate_try(search, rsp);
	}
}

/*
 * The first instructions of an entry from user space are on a stack of its own, at whose end the processor has pushed.
 */
static bool entered_from_user(const struct search *search, const struct orc_entry *entry, struct guest_regs *regs)
{
	struct pushed pushed;
	const uint64_t at = search->stacks->entry - sizeof(pushed);

	if (search->stacks->entry == 0 || entry->sp_reg != ORC_REG_SP ||
	    !page_walk_read(search->memory, (gva_t){at}, &pushed, sizeof(pushed)) || !is_of_user(&pushed))
		return false;
	regs->rsp = at - (uint64_t)distance(entry);
	return true;
}

/* The rule of RIP: the kernel's, or its module's. */
static bool entry_find(const struct search *search, struct orc_entry *entry)
{
	const struct unwind_config *config = search->config;
	const struct orc_entry *known = orc_find(config->tables, search->regs->rip);

	if (known)
		*entry = *known;
	return known || (search->place.module &&
	                 module_orc_find(config->modules, config->tables, search->memory, search->regs->rip, entry));
}

static bool needs_rsp(const struct orc_entry *entry)
{
	return entry->type != ORC_END_OF_STACK && (entry->sp_reg == ORC_REG_SP || entry->sp_reg == ORC_REG_SP_INDIRECT);
}

enum unwind_search_result unwind_search(const struct unwind_config *config, const struct unwind_stacks *stacks,
                                        struct page_walk *memory, struct guest_regs *regs)
{
	struct search search = {
		.config = config,
		.stacks = stacks,
		.memory = memory,
		.regs = regs,
		.steps = UNWIND_SEARCH_STEPS_MAX,
		.link = CALL_LINK_NONE,
	};
	struct orc_entry entry, of_retpoline;

	if (!code_place_find(config, regs->rip, &search.place) || !entry_find(&search, &entry) ||
	    entry.type == ORC_UNDEFINED || call_sites_returns(config->sites, search.place.callee.function))
		return UNWIND_SEARCH_NO_TABLE;
	if (call_sites_switches(config->sites, search.place.callee.function))
		return UNWIND_SEARCH_SWITCHING;
	/* Up to 6.2, the entry of a retpoline says that the stack ends there. */
	if (entry.type == ORC_END_OF_STACK && unwind_orc_retpoline(memory, regs->rip, &of_retpoline))
		entry = of_retpoline;
	if (entry.type == ORC_REGS_PARTIAL && !stacks->in_kernel)
		return entered_from_user(&search, &entry, regs) ? UNWIND_SEARCH_FOUND : UNWIND_SEARCH_SWITCHING;
	if (needs_rsp(&entry))
		stack_search(&search, &entry, stacks->interrupt != 0 ? stacks->interrupt : stacks->task);
	else
		candidate_try(&search, 0);
	if (search.steps == 0)
		return UNWIND_SEARCH_WORK;
	if (search.link == CALL_LINK_NONE)
		return search.switches ? UNWIND_SEARCH_SWITCHING : UNWIND_SEARCH_NONE;
	if (search.ambiguous)
		return UNWIND_SEARCH_AMBIGUOUS;
	regs->rsp = search.rsp;
	return UNWIND_SEARCH_FOUND;
}
