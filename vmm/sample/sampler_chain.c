// SPDX-License-Identifier: BSD-2-Clause
/* The call chain of a sample. On the sampler's thread. */
#include <vprof/exit.h>

#include "sample/sampler_priv.h"
#include "stream/statistics.h"

void sampler_chain_count(struct sampler *sampler, uint16_t misc)
{
	_Atomic uint64_t *const statistics[VPROF_CHAIN_END_COUNT] = {
		[VPROF_CHAIN_WHOLE] = &sampler->statistics.chain_end,
		[VPROF_CHAIN_BAD_FRAME] = &sampler->statistics.chain_bad_frame,
		[VPROF_CHAIN_NO_ENTRY] = &sampler->statistics.chain_no_entry,
		[VPROF_CHAIN_DEPTH] = &sampler->statistics.chain_depth,
		[VPROF_CHAIN_UNREADABLE] = &sampler->statistics.chain_unreadable,
		[VPROF_CHAIN_NO_STACK] = &sampler->statistics.chain_no_stack,
		[VPROF_CHAIN_NO_FORM] = &sampler->statistics.chain_no_form,
	};
	const unsigned end = (misc & VPROF_CHAIN_END_MASK) >> VPROF_CHAIN_END_SHIFT;

	if (end == VPROF_CHAIN_UNKNOWN)
		return;
	statistic_add(statistics[end], 1);
	statistic_add(&sampler->statistics.truncated, end != VPROF_CHAIN_WHOLE);
}

/* Why the chain ends, as bits of misc. */
static uint16_t chain_end(enum unwind_end end)
{
	static const uint8_t words[UNWIND_ENDS] = {
		[UNWIND_END_OF_STACK] = VPROF_CHAIN_WHOLE,    [UNWIND_BAD_FRAME] = VPROF_CHAIN_BAD_FRAME,
		[UNWIND_NO_ENTRY] = VPROF_CHAIN_NO_ENTRY,     [UNWIND_DEPTH] = VPROF_CHAIN_DEPTH,
		[UNWIND_UNREADABLE] = VPROF_CHAIN_UNREADABLE, [UNWIND_NO_STACK] = VPROF_CHAIN_NO_STACK,
		[UNWIND_NO_FORM] = VPROF_CHAIN_NO_FORM,
	};

	return (uint16_t)(words[end] << VPROF_CHAIN_END_SHIFT);
}

/* The exit that is being handled, or the host's frames without its PERF_CONTEXT_* words. */
static unsigned chain_fill_host(const struct counter_sample *taken, uint64_t ip,
                                uint64_t chain[SAMPLER_HOST_FRAMES_MAX + 1u])
{
	const size_t room = SAMPLER_HOST_FRAMES_MAX + 1u;
	unsigned n = 0;

	chain[n++] = (uint64_t)PERF_CONTEXT_HV;
	chain[n++] = ip;
	/* The first frame is the ip. A word that is not an address of host code would look like an exit. */
	for (size_t i = 0, seen = 0; i < taken->n_host_chain && n < room; i++) {
		uint64_t word = taken->host_chain[i];

		if (word >= (uint64_t)PERF_CONTEXT_MAX || seen++ == 0)
			continue;
		if (!vprof_exit_is_host(word))
			break;
		chain[n++] = word;
	}
	return n;
}

/* A single frame of the guest. */
static unsigned chain_fill_one(uint16_t misc, uint64_t ip, uint64_t chain[2])
{
	chain[0] = misc == PERF_RECORD_MISC_USER ? (uint64_t)PERF_CONTEXT_USER : (uint64_t)PERF_CONTEXT_KERNEL;
	chain[1] = ip;
	return 2;
}

/* What becomes of searches is counted for each mode. */
static void search_count(struct sampler *sampler, bool user, enum unwind_search_result result)
{
	struct statistics_live *counts = &sampler->statistics;
	_Atomic uint64_t *const statistics[][UNWIND_SEARCH_RESULTS] = {
		{
			[UNWIND_SEARCH_FOUND] = &counts->stack_found,
			[UNWIND_SEARCH_NONE] = &counts->stack_none,
			[UNWIND_SEARCH_AMBIGUOUS] = &counts->stack_ambiguous,
			[UNWIND_SEARCH_SWITCHING] = &counts->stack_switching,
			[UNWIND_SEARCH_NO_TABLE] = &counts->stack_no_table,
			[UNWIND_SEARCH_WORK] = &counts->stack_work,
		},
		{
			[UNWIND_SEARCH_FOUND] = &counts->user_stack_found,
			[UNWIND_SEARCH_NONE] = &counts->user_stack_none,
			[UNWIND_SEARCH_AMBIGUOUS] = &counts->user_stack_ambiguous,
			[UNWIND_SEARCH_SWITCHING] = &counts->user_stack_none, /* there is no such code */
			[UNWIND_SEARCH_NO_TABLE] = &counts->user_stack_no_table,
			[UNWIND_SEARCH_WORK] = &counts->user_stack_work,
		},
	};

	statistic_add(statistics[user][result], 1);
}

/* Finds the stack pointer where the route's sample has stacks instead of one. */
static enum unwind_search_result stack_find(struct sampling *sampling, const struct unwind_config *config,
                                            const struct counter_sample *taken)
{
	const bool user = guest_regs_user(&sampling->regs);
	enum unwind_search_result result = UNWIND_SEARCH_NO_TABLE;
	struct page_walk memory;

	if (!taken->stacks)
		return UNWIND_SEARCH_FOUND;
	page_walk_init_regs(&memory, sampling->sampler->guest, &sampling->regs);
	memory.snapshot = taken->snapshot;
	if (user && config->code)
		result = config->system->search_user(config, taken->stacks, &memory, &sampling->regs);
	else if (!user && config->sites)
		result = config->system->search(config, taken->stacks, &memory, &sampling->regs);
	search_count(sampling->sampler, user, result);
	return result;
}

/* What a Python frame needs to get its name into the ring. */
struct naming {
	struct sampling *sampling;
	const struct record_sample *sample;
};

static uint64_t python_hash(const struct python_frame *frame, uint32_t pid)
{
	const uint64_t facts[] = {pid, frame->start, frame->end, frame->name, frame->file, frame->line};
	uint64_t hash = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(facts); i++)
		hash = (hash ^ facts[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 32);
	return hash | 1;
}

/* A code object is told to readers as a mapping of its name. */
static void python_found(const struct python_frame *frame, struct page_walk *memory, void *data)
{
	const struct naming *naming = data;
	struct sampling *sampling = naming->sampling;
	const struct record_sample *sample = naming->sample;
	const uint64_t hash = python_hash(frame, sample->pid);
	uint64_t *slot = &sampling->pythons[(hash >> 32) % SAMPLER_PYTHON_SLOTS];
	char name[PYTHON_NAME_BYTES];

	if (*slot == hash || announcer_room(&sampling->stream.announcer, ANNOUNCE_MAPPINGS, sample->time_ns) == 0)
		return;
	python_frame_name(frame, &sampling->unwind.code->python, memory, name);
	const struct record_id id = {.pid = sample->pid,
	                             .tid = sample->tid,
	                             .time_ns = sample->time_ns,
	                             .cpu = sample->cpu,
	                             .id = sample->id};
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_USER,
		.pid = sample->pid,
		.tid = sample->tid,
		.start = frame->start,
		.bytes = frame->end - frame->start,
		.file_name = {name},
	};

	if (announce_mmap(&sampling->stream.announcer, &mapping, &id))
		*slot = hash;
}

static unsigned chain_fill_guest(struct sampling *sampling, const struct record_sample *sample, uint64_t *chain,
                                 enum unwind_end *end)
{
	const struct counter_sample *taken = sampling->sample;
	struct unwind_config config = sampling->unwind;
	struct naming naming = {sampling, sample};

	config.python_found = python_found;
	config.python_data = &naming;

	if (taken->by_frames)
		config.tables = NULL;
	/* A snapshot may have no more than the frames that frame pointers lead to. */
	if (taken->snapshot && !taken->user_stack)
		config.code = NULL;
	const enum unwind_search_result stack = stack_find(sampling, &config, taken);

	if (stack != UNWIND_SEARCH_FOUND && !guest_regs_user(&sampling->regs)) {
		*end = UNWIND_NO_STACK;
		return chain_fill_one(PERF_RECORD_MISC_KERNEL, guest_regs_ip(&sampling->regs), chain);
	}
	/* User space may have frame pointers; where it has unwind tables, not all of its functions have. */
	if (stack != UNWIND_SEARCH_FOUND)
		config.code = NULL;
	const unsigned n = unwind(&config, sampling->sampler->guest, &sampling->regs, taken->snapshot, chain, end);

	if (stack != UNWIND_SEARCH_FOUND && stack != UNWIND_SEARCH_NO_TABLE && *end == UNWIND_END_OF_STACK)
		*end = UNWIND_NO_STACK;
	return n;
}

void sampler_chain_fill(struct sampling *sampling, struct record_sample *sample, uint64_t chain[SAMPLER_CHAIN_MAX])
{
	const struct counter_sample *taken = sampling->sample;
	bool hypervisor = sample->misc == PERF_RECORD_MISC_HYPERVISOR;
	enum unwind_end end;
	unsigned n = 0;

	if (hypervisor)
		n = chain_fill_host(taken, sample->ip, chain);
	if (sampling->unwinds && guest_regs_real_mode(&sampling->regs)) {
		n += chain_fill_one(PERF_RECORD_MISC_KERNEL, guest_regs_sample_ip(&sampling->regs), chain + n);
		sample->misc |= chain_end(UNWIND_END_OF_STACK);
	} else if (sampling->unwinds && sampling->regs.valid) {
		n += chain_fill_guest(sampling, sample, chain + n, &end);
		sample->misc |= chain_end(end);
	} else if (!sampling->unwinds && !hypervisor) {
		n = chain_fill_one(sample->misc, sample->ip, chain);
	}
	sampler_chain_count(sampling->sampler, sample->misc);
	sample->chain = chain;
	sample->n_chain = n;
}
