// SPDX-License-Identifier: BSD-2-Clause
/* Programs of probes: what they see and change where a probe hits, on the vCPU's thread. */
#include <string.h>

#include "guest/page_walk.h"
#include "lib/record/clock.h"
#include "probe/probe_priv.h"

_Static_assert(1 + VPROF_PROGRAM_SENT_WORDS <= UNWIND_CHAIN_MAX + 128u, "what is sent has room");

/* What is read of the guest is read once it is asked for. */
struct hit {
	struct program_place place; /* first: the argument of its calls */
	struct firing *firing;
	struct probe_vcpu *cpu;
	bool has_tried, has_task; /* `task` */
	bool has_walk, is_announced, has_chain;
	struct task task;
	struct page_walk walk;
	struct record_id id; /* once announced */
	unsigned n_chain;
	uint64_t chain[PROBE_CHAIN_MAX];
};

static struct hit *hit_of(struct program_place *place)
{
	return (struct hit *)place;
}

static const struct task *task_of(struct hit *hit)
{
	const struct probe_set *set = hit->firing->probe->set;
	struct page_walk walk;

	if (!hit->has_tried && set->kernel) {
		hit->has_task = set->kernel->tasks->read(set->kernel, &hit->cpu->cpu, set->hub->guest,
		                                         hit->firing->regs, &walk, &hit->task);
		if (!hit->has_task)
			probe_count(&hit->cpu->no_task);
	}
	hit->has_tried = true;
	return hit->has_task ? &hit->task : NULL;
}

/* The task's name and mappings are in the ring then. */
static const struct record_id *announce(struct hit *hit)
{
	if (!hit->is_announced) {
		hit->id = (struct record_id){
			.time_ns = clock_ns(CLOCK_MONOTONIC), .cpu = hit->firing->vcpu, .id = hit->firing->probe->id};
		probe_event_fill_task(hit->firing, hit->cpu, &hit->id);
		hit->is_announced = true;
	}
	return &hit->id;
}

static struct page_walk *walk_of(struct hit *hit)
{
	if (!hit->has_walk)
		page_walk_init_regs(&hit->walk, hit->firing->probe->set->hub->guest, hit->firing->regs);
	hit->has_walk = true;
	return &hit->walk;
}

static uint64_t cgroup_of(struct hit *hit, const struct task *task)
{
	const struct os_kernel *kernel = hit->firing->probe->set->kernel;
	struct os_group cgroup;

	return task && kernel->groups && kernel->groups->read(kernel, walk_of(hit), task, &cgroup) ? cgroup.id : 0;
}

static uint64_t number_of_task(struct hit *hit, enum vprof_program_number which)
{
	const struct task *task = task_of(hit);

	switch (which) {
	case VPROF_PROGRAM_PID:
		return task ? task->pid : UINT64_MAX;
	case VPROF_PROGRAM_TID:
		return task ? task->tid : UINT64_MAX;
	case VPROF_PROGRAM_CGROUP:
		return cgroup_of(hit, task);
	default: /* VPROF_PROGRAM_CURTASK */
		return task ? task->address : 0;
	}
}

static uint64_t number(struct program_place *place, enum vprof_program_number which)
{
	struct hit *hit = hit_of(place);

	switch (which) {
	case VPROF_PROGRAM_PID:
	case VPROF_PROGRAM_TID:
	case VPROF_PROGRAM_CURTASK:
	case VPROF_PROGRAM_CGROUP:
		return number_of_task(hit, which);
	case VPROF_PROGRAM_MAPPED_PID:
		return announce(hit)->pid;
	case VPROF_PROGRAM_CPU:
		return hit->firing->vcpu;
	case VPROF_PROGRAM_NSECS:
		return clock_ns(CLOCK_MONOTONIC);
	default: /* VPROF_PROGRAM_IP */
		return guest_regs_ip(hit->firing->regs);
	}
}

static void comm(struct program_place *place, uint64_t *words)
{
	const struct task *task = task_of(hit_of(place));

	_Static_assert(TASK_COMM_BYTES <= VPROF_PROGRAM_TEXT_BYTES, "a name is a text");
	if (task)
		memcpy(words, task->comm, strnlen(task->comm, TASK_COMM_BYTES));
}

static void stack(struct program_place *place, bool user, unsigned frames, uint64_t *words)
{
	struct hit *hit = hit_of(place);
	bool wanted = false;
	unsigned n = 0;

	announce(hit);
	if (!hit->has_chain)
		hit->n_chain = probe_event_fill_chain(hit->firing, hit->chain);
	hit->has_chain = true;
	words[0] = user ? hit->id.pid : 0;
	for (unsigned i = 0; i < hit->n_chain && n < frames; i++) {
		if (hit->chain[i] >= (uint64_t)PERF_CONTEXT_MAX)
			wanted =
				hit->chain[i] == (uint64_t)(user ? PERF_CONTEXT_USER : PERF_CONTEXT_KERNEL) ||
				hit->chain[i] == (uint64_t)(user ? PERF_CONTEXT_GUEST_USER : PERF_CONTEXT_GUEST_KERNEL);
		else if (wanted)
			words[++n] = hit->chain[i];
	}
}

static bool read_field(struct program_place *place, unsigned field, uint64_t *words)
{
	struct hit *hit = hit_of(place);
	const struct firing *firing = hit->firing;
	size_t n;
	const bool of_task = probe_values_paths(firing->probe->values, &n)[field].of_task;
	const uint64_t task = of_task ? number_of_task(hit, VPROF_PROGRAM_CURTASK) : 0;
	const bool done = (of_task || !firing->bare) && probe_values_read_one(firing->probe->values, walk_of(hit),
	                                                                      field, firing->values, task, words);

	if (!done)
		probe_count(&hit->cpu->fault);
	return done;
}

static bool read_memory(struct program_place *place, uint64_t address, void *bytes, unsigned n)
{
	struct hit *hit = hit_of(place);
	const bool done = page_walk_read(walk_of(hit), (gva_t){address}, bytes, n);

	if (!done)
		probe_count(&hit->cpu->fault);
	return done;
}

static void send(struct program_place *place, uint32_t action, const uint64_t *words, size_t n)
{
	struct hit *hit = hit_of(place);
	const struct record_id *id = announce(hit);
	uint64_t raw[1 + VPROF_PROGRAM_SENT_WORDS] = {action};

	if (n > 0)
		memcpy(raw + 1, words, n * sizeof(*words));
	const struct record_sample sample = {
		.id = id->id,
		.ip = guest_regs_ip(hit->firing->regs),
		.pid = id->pid,
		.tid = id->tid,
		.time_ns = id->time_ns,
		.cpu = id->cpu,
		.period = 1,
		.misc = guest_regs_user(hit->firing->regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL,
		.raw = raw,
		.raw_bytes = (uint32_t)((1 + n) * sizeof(*raw)),
	};

	probe_count(&hit->cpu->event);
	if (!sample_stream_write(&hit->cpu->stream, &sample, true))
		probe_count(&hit->cpu->dropevt);
}

static void leave(struct program_place *place)
{
	atomic_store_explicit(&hit_of(place)->firing->probe->set->exited, true, memory_order_relaxed);
}

static void record_event(struct program_place *place)
{
	probe_event_record(hit_of(place)->firing);
}

static const struct program_place_calls calls = {
	.number = number,
	.comm = comm,
	.stack = stack,
	.field = read_field,
	.read = read_memory,
	.send = send,
	.exit = leave,
	.event = record_event,
};

void probe_program_run(struct firing *firing)
{
	struct probe *probe = firing->probe;
	struct probe_set *set = probe->set;
	struct hit hit;

	/* The end of the recording is later than all of it. */
	if (atomic_load_explicit(&set->exited, memory_order_relaxed) && !firing->is_edge)
		return;
	hit.place = (struct program_place){
		.calls = &calls, .arguments = firing->values, .maps = set->maps, .bare = firing->bare};
	hit.firing = firing;
	hit.cpu = &set->vcpus[firing->vcpu];
	hit.has_tried = hit.has_task = hit.has_walk = hit.is_announced = hit.has_chain = false;
	probe_count(&hit.cpu->hit);
	program_run(probe->program, probe->n_program, &hit.place);
}

/* ---- main thread ---- */

bool probe_set_add_map(struct probe_set *set, const struct program_map_spec *spec, unsigned *number, GError **error)
{
	if (!probe_set_may_change(set, error))
		return false;
	if (set->n_maps == VPROF_MAPS_MAX) {
		g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_LIMIT, "there are %u maps, the most there can be",
		            VPROF_MAPS_MAX);
		return false;
	}
	struct program_map *map = program_map_new(spec, error);
	if (!map)
		return false;
	uint64_t bytes = program_map_bytes(map);
	for (unsigned i = 0; i < set->n_maps; i++)
		bytes += program_map_bytes(set->maps[i]);
	if (bytes > VPROF_MAP_BYTES_MAX) {
		g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_LIMIT,
		            "the maps would have %" G_GUINT64_FORMAT " bytes, and they may have %" G_GUINT64_FORMAT
		            "; ask for fewer entries",
		            bytes, VPROF_MAP_BYTES_MAX);
		program_map_free(map);
		return false;
	}
	*number = set->n_maps;
	set->maps[set->n_maps++] = map;
	return true;
}

struct program_map *probe_set_map(const struct probe_set *set, unsigned number)
{
	return number < set->n_maps ? set->maps[number] : NULL;
}

void probe_program_free_maps(struct probe_set *set)
{
	while (set->n_maps > 0)
		program_map_free(set->maps[--set->n_maps]);
}

bool probe_set_program(struct probe_set *set, unsigned id, const struct vprof_instruction *program, size_t n,
                       GError **error)
{
	struct probe *probe = probe_set_may_change(set, error) ? probe_set_find(set, id, error) : NULL;
	struct program_facts facts = {.maps = set->maps, .n_maps = set->n_maps};
	size_t n_fields = 0;

	if (!probe)
		return false;
	if (n == 0) {
		g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID, "the program has no instruction");
		return false;
	}
	const struct probe_path *paths = probe_values_paths(probe->values, &n_fields);
	facts.n_arguments = (unsigned)probe->n_arguments + (unsigned)__builtin_popcountll(probe->options.registers);
	facts.n_fields = (unsigned)n_fields;
	for (size_t i = 0; i < n_fields; i++)
		facts.texts |= (uint32_t)paths[i].path.is_text << i;
	if (!program_check(program, n, &facts, error))
		return false;
	g_free(probe->program);
	probe->program = g_memdup2(program, n * sizeof(*program));
	probe->n_program = n;
	probe->options.stack |= program_needs_mappings(program, n);
	return true;
}
