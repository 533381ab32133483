// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recording as a trace of Perfetto's: the samples of one event with their call stacks, a track for each vCPU of what
 * it was seen to do, tracks of phases, and of each task what it waited for. With --off-cpu or --switch-events, also
 * which task each vCPU ran, as the trace of a kernel has it.
 */
#include <string.h>
#include <vprof/recording.h>

#include "export/export.h"
#include "export/perfetto.h"
#include "reading/script_order.h"

#define PLACES_MAX 2097152u /* of call stacks, as of call trees */

/* Something that lasted, and may go on. */
struct span {
	uint64_t begin_ns, end_ns, stack;
	char *name;        /* NULL: there is none */
	const char *waker; /* lives in the input's names; NULL: not told */
	uint32_t tid;
};

struct vcpu {
	uint64_t track, counted;
	struct span seen; /* by samples */
};

/* What one event has counted on one vCPU. */
struct counted {
	uint64_t track, value;
};

struct task {
	uint64_t track;
	struct span wait;
	uint32_t cpu;    /* the one that it ran on last */
	uint64_t run_ns; /* when its last wait ended; 0: it has not, or it is known from switches */
};

struct writing {
	const struct export_profile *profile;
	struct perfetto *trace;
	int waits;         /* number of the event of waits that is taken; -1: none */
	bool *is_waits;    /* of each event: its samples are of tasks that wait */
	bool exact;        /* it is of each wait */
	bool has_switches; /* the recording has them */
	char *phase;       /* the last one; NULL: none yet */
	uint64_t phase_track;
	GHashTable *vcpus;   /* number + 1 -> struct vcpu * */
	GHashTable *tasks;   /* tid + 1 -> struct task * */
	GHashTable *counted; /* vCPU << 16 | event, + 1 -> struct counted *: of other events than the profile's */
	struct export_frame frames[CHAIN_FRAMES_MAX];
};

/* ---- spans ---- */

static void span_put(struct writing *writing, uint64_t track, struct span *span)
{
	if (span->name)
		perfetto_slice(writing->trace, track, span->begin_ns, span->end_ns, span->name, span->stack,
		               span->waker);
	g_clear_pointer(&span->name, g_free);
}

/* Goes on with the last one if that is of the same, and ends at most `gap_ns` before. */
static void span_add(struct writing *writing, uint64_t track, struct span *last, const struct span *next,
                     uint64_t gap_ns)
{
	if (last->name && last->tid == next->tid && last->stack == next->stack && last->waker == next->waker &&
	    strcmp(last->name, next->name) == 0 && next->begin_ns <= last->end_ns + gap_ns) {
		last->end_ns = MAX(last->end_ns, next->end_ns);
		return;
	}
	const uint64_t begin_ns = last->name ? MAX(next->begin_ns, last->end_ns) : next->begin_ns;

	span_put(writing, track, last);
	*last = *next;
	last->begin_ns = MIN(begin_ns, next->end_ns);
	last->name = g_strdup(next->name);
}

/* ---- vCPUs and tasks ---- */

static gpointer key_of(uint32_t number)
{
	return GSIZE_TO_POINTER((gsize)number + 1);
}

static void vcpu_free(void *data)
{
	struct vcpu *vcpu = data;

	g_free(vcpu->seen.name);
	g_free(vcpu);
}

static void task_free(void *data)
{
	struct task *task = data;

	g_free(task->wait.name);
	g_free(task);
}

static struct vcpu *vcpu_of(struct writing *writing, uint32_t number)
{
	struct vcpu *vcpu = g_hash_table_lookup(writing->vcpus, key_of(number));

	if (!vcpu) {
		g_autofree char *name = g_strdup_printf("vCPU %u, by samples", number);

		vcpu = g_new0(struct vcpu, 1);
		vcpu->track = perfetto_track(writing->trace, name);
		g_hash_table_insert(writing->vcpus, key_of(number), vcpu);
	}
	return vcpu;
}

static const char *comm_of(const struct writing *writing, uint32_t tid, uint64_t time_ns)
{
	return names_comm(writing->profile->input->names, tid, time_ns);
}

static struct task *task_of(struct writing *writing, const struct record_sample *sample)
{
	struct task *task = g_hash_table_lookup(writing->tasks, key_of(sample->tid));

	if (!task) {
		task = g_new0(struct task, 1);
		task->cpu = sample->cpu;
		if (sample->tid != 0 && sample->tid != VPROF_PID_UNKNOWN)
			task->track = perfetto_thread_track(writing->trace, sample->pid, sample->tid,
			                                    comm_of(writing, sample->pid, sample->time_ns),
			                                    comm_of(writing, sample->tid, sample->time_ns));
		g_hash_table_insert(writing->tasks, key_of(sample->tid), task);
	}
	return task;
}

/* ---- records ---- */

static void take_sample(struct writing *writing, const struct record_sample *sample)
{
	const struct export_profile *profile = writing->profile;
	const size_t n = export_frames(profile->input, sample, writing->frames);
	struct vcpu *vcpu = vcpu_of(writing, sample->cpu);
	const bool is_time = strcmp(profile->unit, "nanoseconds") == 0,
		   in_guest = writing->frames[0].mode != PROFILE_HYPERVISOR;
	const uint64_t lasts_ns = is_time ? MIN(sample->period, sample->time_ns) : 0;
	const struct span seen = {
		.begin_ns = sample->time_ns - lasts_ns,
		.end_ns = sample->time_ns,
		.name = (char *)(in_guest ? comm_of(writing, sample->tid, sample->time_ns)
	                                  : writing->frames[0].place.symbol),
		.tid = sample->tid,
	};

	task_of(writing, sample);
	vcpu->counted += sample->period;
	perfetto_sample(writing->trace, sample, vcpu->counted, perfetto_stack(writing->trace, writing->frames, n));
	span_add(writing, vcpu->track, &vcpu->seen, &seen, lasts_ns);
}

static enum perfetto_state state_of(unsigned state)
{
	switch (state) {
	case VPROF_TASK_RUNNABLE:
		return PERFETTO_RUNNABLE;
	case VPROF_TASK_DISK_SLEEP:
	case VPROF_TASK_IDLE:
		return PERFETTO_DISK_SLEEP;
	case VPROF_TASK_STOPPED:
	case VPROF_TASK_TRACED:
		return PERFETTO_STOPPED;
	default:
		return PERFETTO_SLEEPING;
	}
}

/* That it runs, from the end of its last wait on, if another wait does not follow at once. */
static void run_put(struct writing *writing, uint32_t tid, struct task *task, uint64_t next_ns)
{
	if (task->run_ns != 0 && task->run_ns != next_ns)
		perfetto_task_state(writing->trace, task->run_ns, task->cpu, tid, comm_of(writing, tid, task->run_ns),
		                    PERFETTO_RUNNING);
	task->run_ns = 0;
}

static void take_wait(struct writing *writing, const struct record_sample *sample)
{
	const unsigned state = profile_state_of(sample->misc);
	const uint64_t begin_ns = sample->time_ns - MIN(sample->period, sample->time_ns);
	const size_t n = export_frames(writing->profile->input, sample, writing->frames);
	const bool is_told = record_sample_wait(sample).waker != VPROF_WAKER_UNKNOWN;
	struct task *task = task_of(writing, sample);
	g_autofree char *name = g_strdup_printf("%s: %s", profile_state_name(state), writing->frames[0].place.symbol);
	const struct span wait = {.begin_ns = begin_ns,
	                          .end_ns = sample->time_ns,
	                          .stack = perfetto_stack(writing->trace, writing->frames, n),
	                          .name = name,
	                          .waker = is_told ? names_waker(writing->profile->input->names, sample) : NULL,
	                          .tid = sample->tid};

	if (task->track == 0)
		return;
	span_add(writing, task->track, &task->wait, &wait, 0);
	if (!writing->exact)
		return;
	run_put(writing, sample->tid, task, begin_ns);
	perfetto_task_state(writing->trace, begin_ns, task->cpu, sample->tid,
	                    comm_of(writing, sample->tid, sample->time_ns), state_of(state));
	if (writing->has_switches)
		return;
	task->run_ns = sample->time_ns;
	task->cpu = sample->cpu;
}

static void take_count(struct writing *writing, const struct record_sample *sample, unsigned event)
{
	const struct recording_event *of = recording_event(writing->profile->input->recording, event);
	const gpointer key = GSIZE_TO_POINTER(((gsize)sample->cpu << 16 | event) + 1);
	struct counted *counted = g_hash_table_lookup(writing->counted, key);

	if (!counted) {
		g_autofree char *name = g_strdup_printf("%s, vCPU %u", of->name, sample->cpu);

		counted = g_new0(struct counted, 1);
		counted->track =
			perfetto_counter_track(writing->trace, name, recording_event_counts_time(of) ? "ns" : "events");
		g_hash_table_insert(writing->counted, key, counted);
	}
	counted->value += sample->period;
	perfetto_counter(writing->trace, counted->track, sample->time_ns, counted->value);
}

static void take_switch(struct writing *writing, const struct script_item *item)
{
	const struct record_sample *sample = &item->sample;

	if (item->change.out)
		task_of(writing, sample)->cpu = sample->cpu;
	else
		perfetto_task_state(writing->trace, sample->time_ns, sample->cpu, sample->tid,
		                    comm_of(writing, sample->tid, sample->time_ns), PERFETTO_RUNNING);
}

static bool take_item(const struct script_item *item, void *data)
{
	struct writing *writing = data;

	if (item->kind == SCRIPT_SWITCH)
		take_switch(writing, item);
	else if ((int)item->event == writing->waits)
		take_wait(writing, &item->sample);
	if (item->kind == SCRIPT_SAMPLE && item->event == writing->profile->event_number)
		take_sample(writing, &item->sample);
	else if (item->kind == SCRIPT_SAMPLE && !writing->is_waits[item->event])
		take_count(writing, &item->sample, item->event);
	return perfetto_places(writing->trace) <= PLACES_MAX;
}

/* ---- the whole ---- */

struct walking {
	struct writing *writing;
	struct sample_order *order;
};

static bool walk_sample(const struct record_sample *sample, unsigned event, void *data)
{
	const struct walking *walking = data;

	sample_order_add(walking->order, &(struct script_item){.sample = *sample, .event = event});
	return true;
}

static bool walk_switch(const struct record_switch *change, const struct record_id *id, void *data)
{
	const struct walking *walking = data;
	const struct script_item item = {
		.sample = {.time_ns = id->time_ns, .cpu = id->cpu, .pid = id->pid, .tid = id->tid},
		.kind = SCRIPT_SWITCH,
		.change = *change,
	};

	sample_order_add(walking->order, &item);
	return true;
}

static bool walk_round(void *data)
{
	const struct walking *walking = data;

	return sample_order_round(walking->order);
}

static void walk(struct writing *writing)
{
	static const struct input_visitor visitor = {
		.sample = walk_sample, .switched = walk_switch, .round = walk_round};
	struct walking walking = {writing, sample_order_new(true, take_item, writing)};

	input_walk(writing->profile->input, &visitor, &walking);
	sample_order_finish(walking.order);
	sample_order_free(walking.order);
}

/* What goes on up to the end. */
static void rest_put(struct writing *writing)
{
	GHashTableIter iterator;
	gpointer key, value;

	g_hash_table_iter_init(&iterator, writing->vcpus);
	while (g_hash_table_iter_next(&iterator, NULL, &value)) {
		struct vcpu *vcpu = value;

		span_put(writing, vcpu->track, &vcpu->seen);
	}
	g_hash_table_iter_init(&iterator, writing->tasks);
	while (g_hash_table_iter_next(&iterator, &key, &value)) {
		struct task *task = value;

		span_put(writing, task->track, &task->wait);
		run_put(writing, (uint32_t)(GPOINTER_TO_SIZE(key) - 1), task, 0);
	}
}

/* A track for each name, as phases of different names may overlap. */
static void phase_put(const char *name, uint64_t begin_ns, uint64_t end_ns, void *data)
{
	struct writing *writing = data;

	if (g_strcmp0(writing->phase, name) != 0) {
		g_autofree char *title = g_strdup_printf("phase %s", name);

		g_free(writing->phase);
		writing->phase = g_strdup(name);
		writing->phase_track = perfetto_track(writing->trace, title);
	}
	perfetto_slice(writing->trace, writing->phase_track, begin_ns, end_ns, name, 0, NULL);
}

/* Exact waits rather than looks. */
static void events_find(struct writing *writing)
{
	const struct recording *recording = writing->profile->input->recording;

	writing->waits = -1;
	writing->is_waits = g_new0(bool, recording_n_events(recording) + 1);
	for (unsigned i = 0; i < recording_n_events(recording); i++) {
		const struct recording_event *event = recording_event(recording, i);
		const bool exact = strcmp(event->name, VPROF_OFF_CPU_EVENT) == 0;

		writing->has_switches |= event->attr.context_switch != 0;
		writing->is_waits[i] = exact || strcmp(event->name, VPROF_WALL_EVENT) == 0;
		if (!exact && (!writing->is_waits[i] || writing->exact))
			continue;
		writing->waits = (int)i;
		writing->exact = exact;
	}
}

static bool perfetto_write(const struct export_profile *profile, FILE *to, GError **error)
{
	g_autofree struct writing *writing = g_new0(struct writing, 1);
	bool fits;

	writing->profile = profile;
	writing->trace = perfetto_new(to, profile->event);
	writing->vcpus = g_hash_table_new_full(NULL, NULL, NULL, vcpu_free);
	writing->tasks = g_hash_table_new_full(NULL, NULL, NULL, task_free);
	writing->counted = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	events_find(writing);
	export_phases_each(profile, phase_put, writing);
	walk(writing);
	rest_put(writing);
	fits = perfetto_places(writing->trace) <= PLACES_MAX;
	if (!fits)
		g_set_error(
			error, G_FILE_ERROR, G_FILE_ERROR_NOMEM,
			"cannot export %s: its call chains have more than %u places; --comm, --pid or --time selects a part",
			profile->path, PLACES_MAX);
	g_free(writing->phase);
	g_hash_table_unref(writing->vcpus);
	g_hash_table_unref(writing->tasks);
	g_hash_table_unref(writing->counted);
	g_free(writing->is_waits);
	perfetto_free(writing->trace);
	return fits;
}

const struct exporter export_perfetto = {
	.name = "perfetto",
	.binary = true,
	.summary = "ui.perfetto.dev: vCPUs, tasks and their waits, phases, samples",
	.by_sample = true,
	.write = perfetto_write,
};
