// SPDX-License-Identifier: BSD-2-Clause
/*
 * From an overflow to a record. Everything between sampler_open and sampler_close is on the vCPU's thread and takes no
 * lock, allocates nothing and does not wait.
 */
#include "sample/sampler.h"

#include <vprof/exit.h>

#include "lib/record/clock.h"
#include "lib/record/record.h"
#include "sample/figure.h"
#include "sample/sampler_chain.h"

#define SAMPLE_BYTES_MAX \
	(64u + sizeof(uint64_t) * (1u + SAMPLER_CHAIN_MAX)) /* the fields of VPROF_SAMPLE_TYPE and the cgroup */

/* Room for a sample with the longest chain, and what namer, mapper and cgroup_namer write before it. */
#define STEP_ROOM_BYTES (64u << 10)
#define STEP_WAIT_NS 200000
#define STEP_WAITS_MAX 25000u /* 5 s in all */
#define SWITCH_BYTES_MAX 64u  /* header, two ids, sample_id */

/* The counters stop when less than one part in STALL_SHARE of the ring is free, and go on when twice that is. */
#define STALL_SHARE 4u

void sampler_account(struct sampler *sampler, const struct counter_totals *totals)
{
	figure_set(&sampler->statistics.overflow, totals->overflows);
	figure_set(&sampler->statistics.throttled, totals->throttled);
	figure_set(&sampler->statistics.skiptick, totals->idle);
	figure_set(&sampler->statistics.intr_processed, totals->signals);
	figure_set(&sampler->statistics.intr_ignored, totals->ignored);
	figure_set(&sampler->statistics.expected, totals->expected);
	figure_set(&sampler->statistics.dropbuf_task, sampler->namer.dropped + sampler->mapper.dropped +
	                                                      sampler->modules.dropped + sampler->cgroups.dropped);
}

static void statistics_update(struct sampler *sampler)
{
	struct counter_totals totals;

	counter_set_totals(sampler->set, &totals);
	sampler_account(sampler, &totals);
}

/* Whether samples of this task are wanted; NULL: it could not be read. */
static bool task_wanted(struct sampler *sampler, struct page_walk *walk, const struct task *task)
{
	const struct task_view view = {task ? &sampler->kernel->tasks : NULL, walk, &sampler->regs};

	return !sampler->targets || task_targets_match(sampler->targets, sampler->family, &view, task);
}

/* For readers that have no vCPU to ask. */
static void page_tables_note(struct sampler *sampler, struct page_walk *walk)
{
	gpa_t tables;

	if (sampler->kernel->page_tables.value != 0 && page_walk_translate(walk, sampler->kernel->page_tables, &tables))
		figure_set(&sampler->page_tables, tables.value | (sampler->regs.la57 ? 1 : 0));
}

/* What the ring has to say ahead of a sample of this task, whose cgroup is *cgroup then. */
static void task_announce(struct sampler *sampler, struct page_walk *walk, const struct task *task,
                          const struct record_id *id, uint64_t *cgroup)
{
	namer_task(&sampler->namer, walk, task, id);
	if (sampler->kernel->has_mappings)
		mapper_task(&sampler->mapper, walk, task, id);
	if (sampler->has_cgroups && sampler->kernel->has_cgroups)
		*cgroup = cgroup_namer_task(&sampler->cgroups, walk, task, id);
	if (module_mapper_sample(&sampler->modules, walk, id))
		page_tables_note(sampler, walk);
}

/* Who ran when the sample was taken: a route's guest has gone on since. */
static bool task_of_sample(const struct sampler *sampler, struct page_walk *walk, struct task *task)
{
	const struct task_layout *layout = &sampler->kernel->tasks;

	if (sampler->taken && sampler->taken->task != 0)
		return task_read_at(layout, sampler->cpu, sampler->guest, &sampler->regs, sampler->taken->task, walk,
		                    task);
	return task_read(layout, sampler->cpu, sampler->guest, &sampler->regs, walk, task);
}

/* Fills in whose sample it is; false when it is none of those that are wanted. */
static bool task_fill(struct sampler *sampler, struct record_id *id, uint64_t *cgroup)
{
	struct page_walk walk;
	struct task task;

	if (!sampler->kernel)
		return task_wanted(sampler, NULL, NULL);
	if (!task_of_sample(sampler, &walk, &task)) {
		id->pid = id->tid = VPROF_PID_UNKNOWN;
		figure_add(&sampler->statistics.no_task, 1);
		return task_wanted(sampler, NULL, NULL);
	}
	if (!task_wanted(sampler, &walk, &task))
		return false;
	id->pid = task.pid;
	id->tid = task.tid;
	if (sampler->ring)
		task_announce(sampler, &walk, &task, id, cgroup);
	return true;
}

static enum sampler_mode mode_of(uint16_t misc)
{
	if (misc == PERF_RECORD_MISC_HYPERVISOR)
		return SAMPLER_HYPERVISOR;
	return misc == PERF_RECORD_MISC_USER ? SAMPLER_USER : SAMPLER_KERNEL;
}

static void sample_write(struct sampler *sampler, const struct counter_overflow *overflow, uint16_t misc, uint64_t ip,
                         uint64_t time_ns)
{
	uint64_t record[SAMPLE_BYTES_MAX / sizeof(uint64_t)];
	struct record_id id = {
		.time_ns = time_ns,
		.cpu = sampler->vcpu,
		.id = session_event_id(sampler->first_event + overflow->event, sampler->vcpu),
	};
	uint64_t cgroup = 0;

	if (!task_fill(sampler, &id, &cgroup)) {
		figure_add(&sampler->statistics.filtered, 1);
		return;
	}
	figure_add(&sampler->counted[mode_of(misc)], overflow->period);
	if (!sampler->ring) {
		figure_add(&sampler->statistics.sample, 1);
		return;
	}
	struct record_sample sample = {
		.id = id.id,
		.ip = ip,
		.pid = id.pid,
		.tid = id.tid,
		.time_ns = time_ns,
		.cpu = sampler->vcpu,
		.period = overflow->period,
		.misc = misc,
		.has_cgroup = sampler->has_cgroups,
		.cgroup = cgroup,
	};
	uint64_t chain[SAMPLER_CHAIN_MAX];

	if (sampler->chains)
		sampler_chain_fill(sampler, &sample, chain);
	size_t bytes = record_sample_encode(&sample, sampler->chains, record, sizeof(record));

	if (!ring_write(sampler->ring, record, bytes, &id)) {
		figure_add(&sampler->statistics.dropbuf_sample, 1);
		figure_add(&sampler->statistics.intr_bufferfull, 1);
		return;
	}
	figure_add(&sampler->statistics.sample, 1);
	if (misc == PERF_RECORD_MISC_HYPERVISOR)
		figure_add(&sampler->statistics.in_hypervisor, 1);
}

/* The overflow fell into the guest, where it was when KVM_RUN last returned. */
static void guest_sample(struct sampler *sampler, const struct counter_overflow *overflow, uint64_t time_ns)
{
	const struct counter_event *event = &sampler->events[overflow->event];
	const struct guest_regs *regs = &sampler->regs;

	if (regs->cpl == 0 ? !event->kernel : !event->user)
		figure_add(&sampler->statistics.filtered, 1);
	else if (!regs->valid)
		figure_add(&sampler->statistics.quirk, 1);
	else
		sample_write(sampler, overflow, regs->cpl == 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
		             regs->rip, time_ns);
}

/* The overflow was seen after an exit was handled: of an event that counts the thread, it fell into the handling. */
static void exit_sample(struct sampler *sampler, const struct counter_overflow *overflow, uint64_t exit_ip,
                        uint64_t time_ns)
{
	const struct counter_event *event = &sampler->events[overflow->event];

	if (event->backend->guest_only && !vprof_exit_is_host(exit_ip))
		guest_sample(sampler, overflow, time_ns);
	else if (!event->kernel || !event->user)
		figure_add(&sampler->statistics.filtered, 1);
	else
		sample_write(sampler, overflow, PERF_RECORD_MISC_HYPERVISOR, exit_ip, time_ns);
}

void sampler_take(struct sampler *sampler, const struct counter_sample *sample)
{
	sampler->regs = sample->regs;
	sampler->taken = sample;
	task_cpu_note(&sampler->own_cpu, &sample->regs);
	if (sample->in_guest)
		guest_sample(sampler, &sample->overflow, sample->time_ns);
	else
		exit_sample(sampler, &sample->overflow,
		            vprof_exit_is_host(sample->host_ip) ? sample->host_ip
		                                                : vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0),
		            sample->time_ns);
	sampler->taken = NULL;
}

static size_t ring_free_bytes(const struct ring *ring)
{
	return ring_data_bytes(ring) - ring_unread(ring);
}

static void stall(struct sampler *sampler)
{
	counter_set_pause(sampler->set);
	figure_add(&sampler->statistics.stalls, 1);
	figure_add(&sampler->statistics.intr_bufferfull, 1);
	figure_set(&sampler->stalled_since, clock_ns(CLOCK_MONOTONIC));
	ring_wake(sampler->ring);
}

/* After the samples of an exit. */
static void samples_done(struct sampler *sampler)
{
	figure_add(&sampler->statistics.recurevt, counter_set_pending(sampler->set));
	statistics_update(sampler);
	if (sampler->stalls && sampler->stalled_since == 0 &&
	    ring_free_bytes(sampler->ring) < ring_data_bytes(sampler->ring) / STALL_SHARE)
		stall(sampler);
}

static struct sampler *sampler_of(struct vcpu_watcher *watcher)
{
	return (struct sampler *)watcher;
}

static void sampler_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	struct sampler *sampler = sampler_of(watcher);

	sampler->port = *port;
	sampler->started = true;
}

static void sampler_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	struct sampler *sampler = sampler_of(watcher);
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];

	if (!sampler->set)
		return;
	sampler->regs = *regs;
	size_t n = counter_set_collect(sampler->set, interrupted, false, overflows);
	if (n == 0)
		return;
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < n; i++)
		guest_sample(sampler, &overflows[i], time_ns);
	samples_done(sampler);
}

static void sampler_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	struct sampler *sampler = sampler_of(watcher);
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];

	if (!sampler->set)
		return;
	size_t n = counter_set_collect(sampler->set, false, true, overflows);
	if (n == 0)
		return;
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < n; i++)
		exit_sample(sampler, &overflows[i], exit_ip, time_ns);
	samples_done(sampler);
}

static void sampler_stopped(struct vcpu_watcher *watcher)
{
	struct sampler *sampler = sampler_of(watcher);

	sampler_close(sampler);
	sampler->started = false;
}

static const struct vcpu_watcher_ops sampler_ops = {
	.started = sampler_started,
	.exited = sampler_exited,
	.handled = sampler_handled,
	.stopped = sampler_stopped,
};

void sampler_init(struct sampler *sampler, struct guest *guest, unsigned vcpu)
{
	*sampler = (struct sampler){.watcher.ops = &sampler_ops, .guest = guest, .vcpu = vcpu};
}

static void statistics_reset(struct sampler *sampler)
{
	for (size_t i = 0; i < SAMPLER_MODES; i++)
		figure_set(&sampler->counted[i], 0);
#define X(name, help) figure_set(&sampler->statistics.name, 0);
	SESSION_STATISTICS(X)
#undef X
}

static void unwind_init(struct sampler *sampler, const struct unwind_config *config)
{
	sampler->unwind = config ? &sampler->own_unwind : NULL;
	if (!config)
		return;
	sampler->own_unwind = *config;
	sampler->own_unwind.modules = sampler->modules.layout ? &sampler->modules.table : NULL;
}

void sampler_open_route(struct sampler *sampler, const struct sampler_config *config, struct ring *ring)
{
	statistics_reset(sampler);
	sampler->events = config->session->events;
	sampler->ring = ring;
	sampler->kernel = config->kernel;
	sampler->cpu = config->cpu ? config->cpu : &sampler->own_cpu;
	sampler->first_event = config->first_event;
	sampler->targets = config->targets;
	sampler->family = config->family;
	namer_init(&sampler->namer, config->kernel, config->claims, ring);
	mapper_init(&sampler->mapper, config->kernel ? &config->kernel->mappings : NULL, ring);
	module_mapper_init(&sampler->modules,
	                   config->kernel && config->kernel->has_modules ? &config->kernel->modules : NULL, ring);
	cgroup_namer_init(&sampler->cgroups, config->kernel ? &config->kernel->cgroups : NULL, ring);
	sampler->has_cgroups = config->cgroups;
	unwind_init(sampler, config->unwind);
	sampler->chains = config->unwind != NULL || config->session->host;
	sampler->stalls = config->session->stall;
}

static struct sampler *stepped_sampler(struct guest_stepper *stepper)
{
	return (struct sampler *)(void *)((char *)stepper - offsetof(struct sampler, stepper));
}

/*
 * The one place where a vCPU waits for its reader: a step that is left out makes the count of all worthless. Not for
 * ever, since whoever ends the session waits for this thread.
 */
static void step_wait(struct sampler *sampler)
{
	size_t room = MIN(STEP_ROOM_BYTES, ring_data_bytes(sampler->ring) / 2);

	for (unsigned i = 0; i < STEP_WAITS_MAX && ring_free_bytes(sampler->ring) < room; i++) {
		ring_wake(sampler->ring);
		nanosleep(&(struct timespec){.tv_nsec = STEP_WAIT_NS}, NULL);
	}
}

static void sampler_stepped(struct guest_stepper *stepper, unsigned vcpu, const struct guest_regs *regs)
{
	struct sampler *sampler = stepped_sampler(stepper);

	(void)vcpu;
	sampler->regs = *regs;
	figure_add(&sampler->statistics.overflow, 1);
	figure_add(&sampler->statistics.expected, 1);
	step_wait(sampler);
	guest_sample(sampler, &(struct counter_overflow){.period = 1}, clock_ns(CLOCK_MONOTONIC));
}

static void sampler_unstepped(struct guest_stepper *stepper, unsigned vcpu)
{
	(void)vcpu;
	figure_add(&stepped_sampler(stepper)->statistics.unstepped, 1);
}

static bool steps_open(struct sampler *sampler, GError **error)
{
	const struct guest_debug_ops *debug = sampler->guest->debug;

	sampler->stepper = (struct guest_stepper){.stepped = sampler_stepped, .ran = sampler_unstepped};
	if (debug && sampler->ring)
		sampler->stepping = debug->step(sampler->guest, sampler->vcpu, &sampler->stepper, error);
	else
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot step %s: nobody can, from here",
		            sampler->guest->name);
	return sampler->stepping;
}

bool sampler_open(struct sampler *sampler, const struct sampler_config *config, struct ring *ring, GError **error)
{
	if (!sampler->started) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot count on vCPU %u: its thread does not run the guest", sampler->vcpu);
		return false;
	}
	const struct session_config *session = config->session;

	sampler_open_route(sampler, config, ring);
	if (session->events[0].backend->steps)
		steps_open(sampler, error);
	else
		sampler->set = counter_set_open(config->delivery, &sampler->port, session->events, session->n_events,
		                                &session->rate, error);
	if (!sampler->set && !sampler->stepping)
		sampler->events = NULL;
	return sampler->events != NULL;
}

/* For records that are no overflow's. */
static struct record_id own_id(const struct sampler *sampler)
{
	return (struct record_id){
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.cpu = sampler->vcpu,
		.id = session_event_id(sampler->first_event, sampler->vcpu),
	};
}

static void hand_over(struct sampler *sampler)
{
	const struct record_id id = own_id(sampler);

	ring_write_lost(sampler->ring, &id);
	if (!ring_hand_over(sampler->ring))
		figure_add(&sampler->statistics.emptybuf, 1);
}

void sampler_flush(struct sampler *sampler)
{
	if (!sampler->set && !sampler->stepping)
		return;
	if (sampler->set)
		statistics_update(sampler);
	hand_over(sampler);
}

static void switch_write(struct sampler *sampler, bool out, const struct task *other, const struct record_id *id)
{
	const struct record_switch change = {
		.out = out,
		.other_pid = other ? other->pid : VPROF_PID_UNKNOWN,
		.other_tid = other ? other->tid : VPROF_PID_UNKNOWN,
	};
	uint64_t record[SWITCH_BYTES_MAX / sizeof(uint64_t)];
	size_t bytes = record_switch_encode(&change, id, record, sizeof(record));

	if (ring_write(sampler->ring, record, bytes, id))
		figure_add(&sampler->statistics.switches, 1);
}

static void id_set_task(struct record_id *id, const struct task *task)
{
	id->pid = task ? task->pid : VPROF_PID_UNKNOWN;
	id->tid = task ? task->tid : VPROF_PID_UNKNOWN;
}

void sampler_switched(struct sampler *sampler, const struct task_view *view, const struct task *previous,
                      const struct task *next)
{
	if (!sampler->set || !sampler->kernel)
		return;
	struct record_id id = own_id(sampler);

	id_set_task(&id, previous);
	switch_write(sampler, true, next, &id);
	id_set_task(&id, next);
	if (next)
		namer_task(&sampler->namer, view->walk, next, &id);
	switch_write(sampler, false, previous, &id);
}

static uint64_t stalled_ns(const struct sampler *sampler)
{
	uint64_t since = atomic_load_explicit(&sampler->stalled_since, memory_order_relaxed);

	return since != 0 ? clock_ns(CLOCK_MONOTONIC) - since : 0;
}

bool sampler_can_resume(const struct sampler *sampler, const struct ring *ring)
{
	return atomic_load_explicit(&sampler->stalled_since, memory_order_relaxed) != 0 &&
	       ring_free_bytes(ring) >= ring_data_bytes(ring) / STALL_SHARE * 2;
}

static void stall_end(struct sampler *sampler)
{
	figure_add(&sampler->statistics.stalled_ns, stalled_ns(sampler));
	figure_set(&sampler->stalled_since, 0);
}

void sampler_resume(struct sampler *sampler)
{
	if (!sampler->set || sampler->stalled_since == 0)
		return;
	stall_end(sampler);
	counter_set_resume(sampler->set);
}

bool sampler_add(struct sampler *sampler, const struct session_sample *added, GError **error)
{
	uint64_t record[SAMPLE_BYTES_MAX / sizeof(uint64_t)];
	const uint64_t chain[] = {
		added->mode == PERF_RECORD_MISC_KERNEL ? (uint64_t)PERF_CONTEXT_KERNEL
		: added->mode == PERF_RECORD_MISC_USER ? (uint64_t)PERF_CONTEXT_USER
						       : (uint64_t)PERF_CONTEXT_HV,
		added->ip,
	};
	struct record_id id = own_id(sampler);
	const struct record_sample sample = {
		.id = id.id,
		.ip = added->ip,
		.pid = added->pid,
		.tid = added->tid,
		.time_ns = id.time_ns,
		.cpu = sampler->vcpu,
		.period = added->period,
		.misc = added->mode | VPROF_SAMPLE_ADDED,
		.chain = chain,
		.n_chain = G_N_ELEMENTS(chain),
		.has_cgroup = sampler->has_cgroups,
	};
	if (!sampler->set) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot add a sample: the guest has ended");
		return false;
	}
	id.pid = added->pid;
	id.tid = added->tid;
	size_t bytes = record_sample_encode(&sample, sampler->chains, record, sizeof(record));

	if (!ring_write(sampler->ring, record, bytes, &id)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot add a sample: the ring of vCPU %u is full; read it", sampler->vcpu);
		return false;
	}
	figure_add(&sampler->statistics.added, 1);
	return true;
}

void sampler_close(struct sampler *sampler)
{
	if (!sampler->events)
		return;
	if (sampler->stalled_since != 0)
		stall_end(sampler);
	if (sampler->set) {
		counter_set_finish(sampler->set);
		statistics_update(sampler);
		counter_set_close(g_steal_pointer(&sampler->set));
	}
	if (sampler->stepping)
		sampler->guest->debug->step(sampler->guest, sampler->vcpu, NULL, NULL);
	sampler->stepping = false;
	if (sampler->ring)
		hand_over(sampler);
	sampler->ring = NULL;
	sampler->targets = NULL;
	sampler->family = NULL;
	sampler->unwind = NULL;
	sampler->kernel = NULL;
	sampler->events = NULL;
}

void sampler_counted_read(const struct sampler *sampler, uint64_t counted[SAMPLER_MODES])
{
	for (size_t i = 0; i < SAMPLER_MODES; i++)
		counted[i] = atomic_load_explicit(&sampler->counted[i], memory_order_relaxed);
}

void sampler_statistics_read(const struct sampler *sampler, struct session_statistics *out)
{
#define X(name, help) out->name = atomic_load_explicit(&sampler->statistics.name, memory_order_relaxed);
	SESSION_STATISTICS(X)
#undef X
	out->stalled_ns += stalled_ns(sampler);
}
