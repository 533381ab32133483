// SPDX-License-Identifier: BSD-2-Clause
/*
 * From an overflow to a record. Everything between sampler_open and sampler_close is on the vCPU's thread and takes no
 * lock, allocates nothing and does not wait.
 */
#include "sample/sampler.h"

#include <vprof/exit.h>

#include "guest/processor.h"
#include "lib/record/clock.h"
#include "sample/sampler_priv.h"
#include "stream/statistics.h"

_Static_assert(SAMPLER_CHAIN_MAX <= UNWIND_CHAIN_MAX + 128u, "a sample has room for its chain");

#define THROTTLE_BYTES_MAX 64u /* PERF_RECORD_THROTTLE with the sample_id of VPROF_SAMPLE_TYPE */

/* Room for a sample with the longest chain, and the announcements before it. */
#define STEP_ROOM_BYTES (64u << 10)
#define STEP_WAIT_NS 200000
#define STEP_WAITS_MAX 25000u /* 5 s in all */

void sampler_statistics_set(struct sampler *sampler, const struct counter_statistics *statistics)
{
	const struct announcer *announcer = &sampler->sampling->stream.announcer;

	statistic_set(&sampler->statistics.overflow, statistics->overflows);
	statistic_set(&sampler->statistics.throttled, statistics->throttled);
	statistic_set(&sampler->statistics.skiptick, statistics->idle);
	statistic_set(&sampler->statistics.intr_processed, statistics->signals);
	statistic_set(&sampler->statistics.intr_ignored, statistics->ignored);
	statistic_set(&sampler->statistics.expected, statistics->expected);
	statistic_set(&sampler->statistics.late, statistics->late);
	statistic_set(&sampler->statistics.dropbuf_task, announcer->dropped);
	statistic_set(&sampler->statistics.mappings_later, announcer->later[ANNOUNCE_MAPPINGS]);
	statistic_set(&sampler->statistics.build_ids_later, announcer->later[ANNOUNCE_BUILD_IDS]);
	statistic_set(&sampler->statistics.cgroups_later, announcer->later[ANNOUNCE_CGROUPS]);
}

static void throttle_end(struct sampling *sampling, unsigned event, uint64_t time_ns)
{
	const uint64_t since = sampling->throttled_since[event];

	if (since != 0 && time_ns > since)
		statistic_add(&sampling->sampler->statistics.throttled_ns, time_ns - since);
	sampling->throttled_since[event] = 0;
}

void sampler_throttled(struct sampler *sampler, const struct counter_throttle *throttle)
{
	struct sampling *sampling = sampler->sampling;
	const struct record_id id = {.time_ns = throttle->time_ns,
	                             .cpu = sampler->vcpu,
	                             .id = session_event_id(sampling->first_event + throttle->event, sampler->vcpu)};
	const struct record_throttle change = {throttle->ends, throttle->time_ns, id.id};
	uint64_t record[THROTTLE_BYTES_MAX / sizeof(uint64_t)];

	throttle_end(sampling, throttle->event, throttle->time_ns);
	if (!throttle->ends) {
		statistic_add(&sampler->statistics.throttles, 1);
		sampling->throttled_since[throttle->event] = throttle->time_ns;
	}
	if (sampling->stream.ring)
		ring_write(sampling->stream.ring, record, record_throttle_encode(&change, &id, record, sizeof(record)),
		           &id);
}

static void statistics_update(struct sampling *sampling)
{
	struct counter_statistics statistics;
	struct counter_throttle throttle;

	while (counter_set_throttle(sampling->set, &throttle))
		sampler_throttled(sampling->sampler, &throttle);
	counter_set_statistics(sampling->set, &statistics);
	sampler_statistics_set(sampling->sampler, &statistics);
}

/* Whether samples of this task are wanted; NULL: it could not be read. */
static bool task_wanted(struct sampling *sampling, struct page_walk *walk, const struct task *task)
{
	const struct task_view view = {sampling->kernel, walk, &sampling->regs};

	return !sampling->targets || task_targets_match(sampling->targets, sampling->family, &view, task);
}

/* For the main thread, which cannot ask the vCPU. */
static void page_tables_note(struct sampling *sampling, struct page_walk *walk)
{
	const struct processor_memory *memory = processor_of(walk->tables.processor)->memory;
	struct sampler *sampler = sampling->sampler;
	uint64_t words[2];

	if (!memory->kernel_store(walk, sampling->kernel->page_tables, words))
		return;
	statistic_set(&sampler->page_tables[1], words[1]);
	atomic_store_explicit(&sampler->page_tables[0], words[0], memory_order_release);
}

bool sampler_kernel_walk(const struct sampler *sampler, struct page_walk *walk)
{
	const uint64_t first = atomic_load_explicit(&sampler->page_tables[0], memory_order_acquire);
	const uint64_t words[2] = {first, atomic_load_explicit(&sampler->page_tables[1], memory_order_relaxed)};
	const struct guest_tables tables = processor_of(sampler->guest->processor)->memory->kernel_load(words);

	page_walk_init_tables(walk, sampler->guest, &tables);
	return first != 0;
}

/* The tasks that a wait names. */
static void wait_announce(struct sampling *sampling, struct page_walk *walk, const struct record_id *id)
{
	const struct counter_wait *wait = sampling->sample->wait;
	const struct task *others[] = {wait ? wait->waker : NULL, wait ? wait->owner : NULL};

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		if (others[i]) {
			const struct record_id other = {.pid = others[i]->pid,
			                                .tid = others[i]->tid,
			                                .time_ns = id->time_ns,
			                                .cpu = id->cpu,
			                                .id = id->id};

			namer_entered(&sampling->stream.namer, walk, others[i], &other);
		}
}

/* Announces the task of a sample before the sample is written; *cgroup becomes the cgroup of the task. */
static void task_announce(struct sampling *sampling, struct page_walk *walk, const struct task *task,
                          const struct record_id *id, uint64_t *cgroup)
{
	const uint64_t user_ip = guest_regs_user(&sampling->regs) ? guest_regs_ip(&sampling->regs) : 0;
	const struct sample_facts facts = sample_stream_announce(&sampling->stream, walk, task, id, true, user_ip);

	wait_announce(sampling, walk, id);
	sampling->unwind.code = facts.code;
	*cgroup = facts.group;
	if (facts.modules_read)
		page_tables_note(sampling, walk);
}

/* The task that ran when the sample was taken. With a route, the guest has gone on since. */
static bool task_of_sample(const struct sampling *sampling, struct page_walk *walk, struct task *task)
{
	const struct os_kernel *kernel = sampling->kernel;

	if (sampling->sample->task != 0)
		return kernel->tasks->read_at(kernel, sampling->cpu, sampling->sampler->guest, &sampling->regs,
		                              sampling->sample->task, walk, task);
	return kernel->tasks->read(kernel, sampling->cpu, sampling->sampler->guest, &sampling->regs, walk, task);
}

/* Fills in the task of the sample; false when samples of this task are not wanted. */
static bool task_fill(struct sampling *sampling, struct record_id *id, uint64_t *cgroup)
{
	struct page_walk walk;
	struct task task;

	sampling->unwind.code = NULL;
	if (!sampling->kernel)
		return task_wanted(sampling, NULL, NULL);
	if (guest_regs_real_mode(&sampling->regs) || !task_of_sample(sampling, &walk, &task)) {
		id->pid = id->tid = VPROF_PID_UNKNOWN;
		statistic_add(&sampling->sampler->statistics.no_task, 1);
		return task_wanted(sampling, NULL, NULL);
	}
	if (!task_wanted(sampling, &walk, &task))
		return false;
	id->pid = task.pid;
	id->tid = task.tid;
	if (sampling->stream.ring)
		task_announce(sampling, &walk, &task, id, cgroup);
	return true;
}

static enum sampler_mode mode_of(uint16_t misc)
{
	if (misc == PERF_RECORD_MISC_HYPERVISOR)
		return SAMPLER_HYPERVISOR;
	return misc == PERF_RECORD_MISC_USER ? SAMPLER_USER : SAMPLER_KERNEL;
}

/* What only a sample of a waiting task has; false when it is not to be written. */
static bool wait_fill(const struct sampling *sampling, struct record_sample *sample)
{
	const struct counter_sample *taken = sampling->sample;

	if (taken->wait) {
		sample->raw = taken->wait->facts;
		sample->raw_bytes = sizeof(*taken->wait->facts);
	}
	sample->misc |= (uint16_t)((uint32_t)taken->task_state << VPROF_TASK_STATE_SHIFT);
	if (!taken->stands || taken->stands(taken))
		return true;
	statistic_add(&sampling->sampler->statistics.wall_torn, 1);
	return false;
}

/* False when the ring is full. */
static bool sample_put(struct sampling *sampling, const struct record_sample *sample)
{
	if (!sample_stream_write(&sampling->stream, sample, sampling->chains)) {
		statistic_add(&sampling->sampler->statistics.dropbuf_sample, 1);
		statistic_add(&sampling->sampler->statistics.intr_bufferfull, 1);
		return false;
	}
	statistic_add(&sampling->sampler->statistics.sample, 1);
	return true;
}

static void sample_write(struct sampling *sampling, uint16_t misc, uint64_t ip)
{
	const struct counter_sample *taken = sampling->sample;
	const struct counter_overflow *overflow = &taken->overflow;
	const uint64_t untold = sampling->stream.announcer.dropped;
	struct record_id id = {
		.time_ns = taken->time_ns,
		.cpu = sampling->sampler->vcpu,
		.id = session_event_id(sampling->first_event + overflow->event, sampling->sampler->vcpu),
	};
	uint64_t cgroup = 0;

	if (!task_fill(sampling, &id, &cgroup)) {
		statistic_add(&sampling->sampler->statistics.filtered, 1);
		return;
	}
	/* Waiting is no counting. */
	if (taken->task_state == VPROF_TASK_RUNNING)
		statistic_add(&sampling->sampler->counted[mode_of(misc)], overflow->period);
	if (!sampling->stream.ring) {
		statistic_add(&sampling->sampler->statistics.sample, 1);
		return;
	}
	struct record_sample sample = {
		.id = id.id,
		.ip = ip,
		.pid = id.pid,
		.tid = id.tid,
		.time_ns = id.time_ns,
		.cpu = id.cpu,
		.period = overflow->period,
		.misc = misc,
		.has_cgroup = sampling->has_cgroups,
		.cgroup = cgroup,
	};
	uint64_t chain[SAMPLER_CHAIN_MAX];

	if (sampling->chains)
		sampler_chain_fill(sampling, &sample, chain);
	if (!wait_fill(sampling, &sample))
		return;
	if (!sample_put(sampling, &sample))
		return;
	if (misc == PERF_RECORD_MISC_HYPERVISOR)
		statistic_add(&sampling->sampler->statistics.in_hypervisor, 1);
	if (taken->written && sampling->stream.announcer.dropped == untold)
		taken->written(taken, &sample);
}

/* Where it is in the guest. */
static void guest_sample(struct sampling *sampling)
{
	const struct counter_event *event = &sampling->events[sampling->sample->overflow.event];
	const struct guest_regs *regs = &sampling->regs;

	if (guest_regs_user(regs) ? !event->user : !event->kernel)
		statistic_add(&sampling->sampler->statistics.filtered, 1);
	else if (!regs->valid)
		statistic_add(&sampling->sampler->statistics.quirk, 1);
	else
		sample_write(sampling, guest_regs_user(regs) ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL,
		             guest_regs_sample_ip(regs));
}

/* The exit that was being handled, or where the host was. */
static uint64_t outside_ip(const struct counter_sample *sample)
{
	if (sample->exit_ip != 0)
		return sample->exit_ip;
	return vprof_exit_is_host(sample->host_ip) ? sample->host_ip : vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0);
}

/* Of an event that counts the whole thread: in the handling of an exit, or in a guest that the guest runs. */
static void outside_sample(struct sampling *sampling)
{
	const struct counter_sample *sample = sampling->sample;
	const struct counter_event *event = &sampling->events[sample->overflow.event];
	const uint64_t ip = sample->nested ? vprof_exit_ip(VPROF_EXIT_REASON_NESTED, 0) : outside_ip(sample);

	if (event->backend->guest_only && !sample->nested && !vprof_exit_is_host(ip))
		guest_sample(sampling);
	else if (!event->kernel || !event->user)
		statistic_add(&sampling->sampler->statistics.filtered, 1);
	else
		sample_write(sampling, PERF_RECORD_MISC_HYPERVISOR, ip);
}

/* With the registers of the sample taken. */
static void sample_take(struct sampling *sampling, const struct counter_sample *sample)
{
	sampling->sample = sample;
	if (sample->in_guest)
		guest_sample(sampling);
	else
		outside_sample(sampling);
	sampling->sample = NULL;
}

/* As if the kernel had mapped itself from its first instruction on. */
static void registers_take(struct sampling *sampling, const struct guest_regs *regs)
{
	sampling->regs = *regs;
	if (!guest_regs_user(regs) && !guest_regs_real_mode(regs))
		guest_regs_set_ip(&sampling->regs, guest_linked_address(sampling->sampler->guest, guest_regs_ip(regs)));
}

void sampler_take(struct sampler *sampler, const struct counter_sample *sample)
{
	struct sampling *sampling = sampler->sampling;

	registers_take(sampling, &sample->regs);
	if (sample->area != 0)
		sampler->cpu.area = sample->area;
	else
		task_cpu_note(&sampler->cpu, &sample->regs);
	sample_take(sampling, sample);
}

bool sampler_take_waiting(struct sampler *sampler, const struct counter_sample *sample)
{
	struct sampling *sampling = sampler->sampling;

	if (!sampling)
		return false;
	const struct task_cpu cpu = sampler->cpu;
	const struct guest_regs regs = sampling->regs;

	sampler_take(sampler, sample);
	sampler->cpu = cpu;
	sampling->regs = regs;
	return true;
}

bool sampler_take_again(struct sampler *sampler, const struct record_sample *sample)
{
	struct sampling *sampling = sampler->sampling;

	if (!sampling || !sampling->stream.ring)
		return false;
	if (sampling->chains)
		sampler_chain_count(sampler, sample->misc);
	return sample_put(sampling, sample);
}

static size_t ring_free_bytes(const struct ring *ring)
{
	return ring_data_bytes(ring) - ring_unread(ring);
}

static void stall(struct sampling *sampling)
{
	struct sampler *sampler = sampling->sampler;

	counter_set_pause(sampling->set);
	statistic_add(&sampler->statistics.stalls, 1);
	statistic_add(&sampler->statistics.intr_bufferfull, 1);
	statistic_set(&sampler->stalled_since, clock_ns(CLOCK_MONOTONIC));
	ring_wake(sampling->stream.ring);
}

/* Updates statistics after the samples of an exit, and pauses the counters if the ring is nearly full. */
static void samples_done(struct sampling *sampling)
{
	statistic_add(&sampling->sampler->statistics.recurevt, counter_set_pending(sampling->set));
	statistics_update(sampling);
	if (sampling->stalls && sampling->sampler->stalled_since == 0 && ring_is_scarce(sampling->stream.ring))
		stall(sampling);
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

/* Of our vCPU, which stands still. */
static void own_take(struct sampling *sampling, const struct counter_overflow *overflows, size_t n, bool in_guest,
                     uint64_t exit_ip)
{
	struct counter_sample sample = {
		.vcpu = sampling->sampler->vcpu,
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.in_guest = in_guest,
		.exit_ip = exit_ip,
	};

	for (size_t i = 0; i < n; i++) {
		sample.overflow = overflows[i];
		sample_take(sampling, &sample);
	}
	if (sampling->set)
		samples_done(sampling);
}

static void sampler_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	struct sampling *sampling = sampler_of(watcher)->sampling;
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];

	if (!sampling || !sampling->set)
		return;
	registers_take(sampling, regs);
	size_t n = counter_set_collect(sampling->set, interrupted, false, overflows);
	if (n == 0)
		return;
	own_take(sampling, overflows, n, true, 0);
}

static void sampler_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	struct sampling *sampling = sampler_of(watcher)->sampling;
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];

	if (!sampling || !sampling->set)
		return;
	size_t n = counter_set_collect(sampling->set, false, true, overflows);
	if (n == 0)
		return;
	own_take(sampling, overflows, n, false, exit_ip);
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

static void counts_reset(struct sampler *sampler)
{
	for (size_t i = 0; i < SAMPLER_MODES; i++)
		statistic_set(&sampler->counted[i], 0);
	statistics_reset(&sampler->statistics);
}

/* Each vCPU unwinds modules by its own table. */
static void unwind_init(struct sampling *sampling, const struct unwind_config *config)
{
	sampling->unwinds = config != NULL;
	if (!config)
		return;
	sampling->unwind = *config;
	sampling->unwind.modules = sampling->stream.modules ? &sampling->stream.modules->table : NULL;
}

static struct sampling *sampling_new(struct sampler *sampler, const struct sampler_config *config, struct ring *ring)
{
	const struct os_kernel *kernel = config->kernel;
	const struct sample_stream_config stream = {
		.kernel = kernel,
		.claims = config->claims,
		.tables = config->tables,
		.by_switches = config->session->switches,
		.mappings = true,
		.groups = config->cgroups,
		.modules = true,
	};
	struct sampling *sampling = g_new0(struct sampling, 1);

	sampling->sampler = sampler;
	sampling->events = config->session->events;
	sampling->first_event = config->first_event;
	sampling->targets = config->targets;
	sampling->family = config->family;
	sampling->kernel = kernel;
	sampling->cpu = config->cpu ? config->cpu : &sampler->cpu;
	sampling->has_cgroups = config->cgroups;
	sampling->chains = config->unwind || config->session->host;
	sampling->stalls = config->session->stall;
	sample_stream_init(&sampling->stream, &stream, ring);
	unwind_init(sampling, config->unwind);
	return sampling;
}

static void sampling_free(struct sampling *sampling)
{
	sample_stream_deinit(&sampling->stream);
	g_free(sampling);
}

void sampler_open_route(struct sampler *sampler, const struct sampler_config *config, struct ring *ring)
{
	counts_reset(sampler);
	sampler->sampling = sampling_new(sampler, config, ring);
}

static struct sampling *stepped_sampling(struct guest_stepper *stepper)
{
	return (struct sampling *)(void *)((char *)stepper - offsetof(struct sampling, stepper));
}

/*
 * The only place where a vCPU waits for its reader: with a step missing, the count is worthless. The wait is bounded,
 * because ending the session waits for this thread.
 */
static void step_wait(const struct sampling *sampling)
{
	struct ring *ring = sampling->stream.ring;
	const size_t room = MIN(STEP_ROOM_BYTES, ring_data_bytes(ring) / 2);

	for (unsigned i = 0; i < STEP_WAITS_MAX && ring_free_bytes(ring) < room; i++) {
		ring_wake(ring);
		nanosleep(&(struct timespec){.tv_nsec = STEP_WAIT_NS}, NULL);
	}
}

static void sampler_stepped(struct guest_stepper *stepper, unsigned vcpu, const struct guest_regs *regs)
{
	struct sampling *sampling = stepped_sampling(stepper);

	(void)vcpu;
	registers_take(sampling, regs);
	statistic_add(&sampling->sampler->statistics.overflow, 1);
	statistic_add(&sampling->sampler->statistics.expected, 1);
	step_wait(sampling);
	own_take(sampling, &(struct counter_overflow){.period = 1}, 1, true, 0);
}

static void sampler_unstepped(struct guest_stepper *stepper, unsigned vcpu)
{
	(void)vcpu;
	statistic_add(&stepped_sampling(stepper)->sampler->statistics.unstepped, 1);
}

static bool steps_open(struct sampling *sampling, GError **error)
{
	struct guest *guest = sampling->sampler->guest;

	sampling->stepper = (struct guest_stepper){.stepped = sampler_stepped, .ran = sampler_unstepped};
	if (guest->debug && sampling->stream.ring)
		sampling->steps = guest->debug->step(guest, sampling->sampler->vcpu, &sampling->stepper, error);
	else
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
		            "cannot single-step %s: not supported for this guest", guest->name);
	return sampling->steps;
}

bool sampler_open(struct sampler *sampler, const struct sampler_config *config, struct ring *ring, GError **error)
{
	const struct session_config *session = config->session;

	if (!sampler->started) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot count on vCPU %u: its thread does not run the guest", sampler->vcpu);
		return false;
	}
	sampler_open_route(sampler, config, ring);
	struct sampling *sampling = sampler->sampling;

	if (session->events[0].backend->steps && steps_open(sampling, error))
		return true;
	if (!session->events[0].backend->steps)
		sampling->set = counter_set_open(config->delivery, &sampler->port, session->events, session->n_events,
		                                 &session->rate, error);
	if (!sampling->set)
		sampling_free(g_steal_pointer(&sampler->sampling));
	return sampler->sampling != NULL;
}

void sampler_retarget(struct sampler *sampler, const struct task_targets *targets)
{
	if (sampler->sampling)
		sampler->sampling->targets = targets;
}

/* The sample_id of records that no overflow has caused. */
static struct record_id own_id(const struct sampling *sampling, uint64_t time_ns)
{
	return (struct record_id){
		.time_ns = time_ns,
		.cpu = sampling->sampler->vcpu,
		.id = session_event_id(sampling->first_event, sampling->sampler->vcpu),
	};
}

static void hand_over(struct sampling *sampling, bool last)
{
	const struct record_id id = own_id(sampling, clock_ns(CLOCK_MONOTONIC));

	ring_write_lost(sampling->stream.ring, &id, last);
	if (!ring_hand_over(sampling->stream.ring))
		statistic_add(&sampling->sampler->statistics.emptybuf, 1);
}

void sampler_flush(struct sampler *sampler)
{
	struct sampling *sampling = sampler->sampling;

	if (!sampling)
		return;
	if (sampling->set)
		statistics_update(sampling);
	hand_over(sampling, false);
}

static void switch_write(struct sampling *sampling, bool out, const struct task *other, const struct record_id *id)
{
	const struct record_switch change = {
		.out = out,
		.other_pid = other ? other->pid : VPROF_PID_UNKNOWN,
		.other_tid = other ? other->tid : VPROF_PID_UNKNOWN,
	};

	if (announce_switch(&sampling->stream.announcer, &change, id))
		statistic_add(&sampling->sampler->statistics.switches, 1);
}

static void id_set_task(struct record_id *id, const struct task *task)
{
	id->pid = task ? task->pid : VPROF_PID_UNKNOWN;
	id->tid = task ? task->tid : VPROF_PID_UNKNOWN;
}

void sampler_switched(struct sampler *sampler, const struct task_view *view, const struct task *previous,
                      const struct task *next, uint64_t time_ns)
{
	struct sampling *sampling = sampler->sampling;

	if (!sampling || !sampling->set || !sampling->kernel)
		return;
	struct record_id id = own_id(sampling, time_ns);

	id_set_task(&id, previous);
	switch_write(sampling, true, next, &id);
	if (previous)
		namer_left(&sampling->stream.namer, view->walk, previous, &id);
	id_set_task(&id, next);
	if (next)
		namer_entered(&sampling->stream.namer, view->walk, next, &id);
	switch_write(sampling, false, previous, &id);
}

static uint64_t stalled_ns(const struct sampler *sampler)
{
	uint64_t since = atomic_load_explicit(&sampler->stalled_since, memory_order_relaxed);

	return since != 0 ? clock_ns(CLOCK_MONOTONIC) - since : 0;
}

bool sampler_can_resume(const struct sampler *sampler, const struct ring *ring)
{
	return atomic_load_explicit(&sampler->stalled_since, memory_order_relaxed) != 0 && ring_has_recovered(ring);
}

static void stall_end(struct sampler *sampler)
{
	statistic_add(&sampler->statistics.stalled_ns, stalled_ns(sampler));
	statistic_set(&sampler->stalled_since, 0);
}

void sampler_resume(struct sampler *sampler)
{
	if (!sampler->sampling || !sampler->sampling->set || sampler->stalled_since == 0)
		return;
	stall_end(sampler);
	counter_set_resume(sampler->sampling->set);
}

bool sampler_add(struct sampler *sampler, const struct session_sample *added, GError **error)
{
	struct sampling *sampling = sampler->sampling;
	const uint64_t chain[] = {
		added->mode == PERF_RECORD_MISC_KERNEL ? (uint64_t)PERF_CONTEXT_KERNEL
		: added->mode == PERF_RECORD_MISC_USER ? (uint64_t)PERF_CONTEXT_USER
						       : (uint64_t)PERF_CONTEXT_HV,
		added->ip,
	};

	if (!sampling || !sampling->set) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot add a sample: the guest has ended");
		return false;
	}
	struct record_id id = own_id(sampling, clock_ns(CLOCK_MONOTONIC));

	id.pid = added->pid;
	id.tid = added->tid;
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
		.has_cgroup = sampling->has_cgroups,
	};

	if (!sample_stream_write(&sampling->stream, &sample, sampling->chains)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot add a sample: the ring of vCPU %u is full; read it", sampler->vcpu);
		return false;
	}
	statistic_add(&sampler->statistics.added, 1);
	return true;
}

void sampler_close(struct sampler *sampler)
{
	struct sampling *sampling = sampler->sampling;

	if (!sampling)
		return;
	if (sampler->stalled_since != 0)
		stall_end(sampler);
	if (sampling->set) {
		counter_set_finish(sampling->set);
		statistics_update(sampling);
		counter_set_close(sampling->set);
	}
	for (unsigned i = 0; i < COUNTER_EVENTS_MAX; i++)
		throttle_end(sampling, i, clock_ns(CLOCK_MONOTONIC));
	if (sampling->steps)
		sampler->guest->debug->step(sampler->guest, sampler->vcpu, NULL, NULL);
	if (sampling->stream.ring)
		hand_over(sampling, true);
	sampling_free(g_steal_pointer(&sampler->sampling));
}

void sampler_counted_read(const struct sampler *sampler, uint64_t counted[SAMPLER_MODES])
{
	for (size_t i = 0; i < SAMPLER_MODES; i++)
		counted[i] = atomic_load_explicit(&sampler->counted[i], memory_order_relaxed);
}

void sampler_statistics_read(const struct sampler *sampler, const struct ring *ring, struct session_statistics *out)
{
	statistics_read(&sampler->statistics, ring, out);
	out->stalled_ns += stalled_ns(sampler);
}
