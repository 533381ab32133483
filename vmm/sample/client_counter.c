// SPDX-License-Identifier: BSD-2-Clause
#include "sample/client_counter.h"

#include <unistd.h>

#include "stream/sample_stream.h"

const char *counter_mode_name(enum counter_mode mode)
{
#define X(id, name) [id] = name,
	static const char *const names[] = {COUNTER_MODES(X)};
#undef X
	return names[mode];
}

const char *counter_state_name(enum counter_state state)
{
	static const char *const names[] = {
		[COUNTER_FREE] = "free",       [COUNTER_ALLOCATED] = "allocated", [COUNTER_RUNNING] = "running",
		[COUNTER_STOPPED] = "stopped", [COUNTER_DISABLED] = "disabled",
	};

	return names[state];
}

bool counter_mode_is_task(enum counter_mode mode)
{
	return mode == COUNTER_TASK_COUNTING || mode == COUNTER_TASK_SAMPLING;
}

bool counter_mode_is_sampling(enum counter_mode mode)
{
	return mode == COUNTER_GUEST_SAMPLING || mode == COUNTER_TASK_SAMPLING;
}

bool counter_has_rings(const struct counter_request *request)
{
	return counter_mode_is_sampling(request->mode) || request->per_switch;
}

static bool samples(const struct counter_request *request)
{
	return request->rate.frequency_hz != 0 || request->rate.period != 0;
}

static bool refuse(GError **error, enum session_error code, const struct client_counter *counter, const char *why)
{
	g_set_error(error, SESSION_ERROR, (gint)code, "counter %u %s", counter->number, why);
	return false;
}

/* What the event and the guest must be able to do. */
static bool request_check(struct client_counter *counter, GError **error)
{
	const struct counter_request *request = &counter->request;
	bool task = counter_mode_is_task(request->mode);

	if (counter->guest->routes)
		return refuse(error, SESSION_ERROR_UNSUPPORTED, counter,
		              "cannot count: the guest's vCPUs are threads of another process; start a session");
	if (request->descendants && !task)
		return refuse(error, SESSION_ERROR_RANGE, counter, "has descendants only in a task mode");
	if (request->per_switch && (request->mode != COUNTER_TASK_COUNTING || samples(request)))
		return refuse(error, SESSION_ERROR_RANGE, counter,
		              "counts per switch only exactly, and in the mode task-counting");
	if (samples(request) ? !counter_rate_check(&request->rate, &request->event, error)
	                     : !counter_meter_check(&request->event, error))
		return false;
	counter->kernel = session_kernel(counter->session);
	counter->config = (struct session_config){
		.events = {request->event},
		.n_events = 1,
		.call_graph = request->call_graph,
		.call_depth = request->call_depth,
		.call_kernel_only = request->call_kernel_only,
		.stall = request->stall,
	};
	return !session_config_has_chains(&counter->config) ||
	       session_unwind(counter->session, &counter->config, &counter->unwind, error);
}

uint64_t counter_event_id(unsigned number, unsigned vcpu)
{
	return session_event_id(COUNTER_EVENTS_MAX + number, vcpu);
}

static bool counts_on(const struct client_counter *counter, unsigned vcpu)
{
	return !counter->request.one_vcpu || vcpu == counter->request.vcpu;
}

static void countings_make(struct client_counter *counter)
{
	unsigned vcpus = counter->guest->vcpus;

	counter->countings = g_new0(struct counting, vcpus);
	if (counter->request.per_switch) {
		counter->logs = g_new0(struct counting_log, vcpus);
		counter->totals = g_new0(struct task_totals, 1);
	}
	for (unsigned i = 0; i < vcpus; i++)
		counting_init(&counter->countings[i], counter->session, i, counter->logs ? &counter->logs[i] : NULL);
}

static bool parts_make(struct client_counter *counter, GError **error)
{
	unsigned vcpus = counter->guest->vcpus;

	if (counter_has_rings(&counter->request)) {
		const size_t bytes =
			counter->request.ring_bytes ? counter->request.ring_bytes : COUNTER_RING_BYTES_DEFAULT;

		counter->claims = g_new0(struct task_claims, 1);
		if (!session_rings_make(counter->rings, vcpus, bytes, error))
			return false;
	}
	if (!samples(&counter->request)) {
		countings_make(counter);
		return true;
	}
	counter->samplers = g_new0(struct sampler, vcpus);
	counter->before = g_malloc0_n(vcpus, sizeof(*counter->before));
	for (unsigned i = 0; i < vcpus; i++)
		sampler_init(&counter->samplers[i], counter->guest, i);
	if (counter_mode_is_task(counter->request.mode))
		counter->families = g_new0(struct task_family, vcpus);
	return true;
}

struct client_counter *client_counter_new(struct session *session, unsigned number, const struct counter_owner *owner,
                                          const struct counter_request *request, GError **error)
{
	struct client_counter *counter = g_new0(struct client_counter, 1);

	*counter = (struct client_counter){
		.session = session,
		.guest = session_guest(session),
		.number = number,
		.owner = *owner,
		.request = *request,
		.state = COUNTER_ALLOCATED,
		.targets.descendants = request->descendants,
	};
	if (!request_check(counter, error) || !parts_make(counter, error)) {
		client_counter_free(counter);
		return NULL;
	}
	return counter;
}

void client_counter_free(struct client_counter *counter)
{
	if (!counter)
		return;
	if (counter->state == COUNTER_RUNNING)
		client_counter_stop(counter);
	sample_rings_free(counter->rings, counter->guest->vcpus);
	g_free(counter->samplers);
	g_free(counter->families);
	g_free(counter->before);
	g_free(counter->countings);
	g_free(counter->logs);
	g_free(counter->totals);
	g_free(counter->claims);
	g_free(counter);
}

/* A call on a vCPU's thread. */
struct part_call {
	struct client_counter *counter;
	unsigned vcpu;
	bool done;
	int fd;
	uint64_t before;
	GError *error;
};

static bool by_task(const struct client_counter *counter)
{
	return counter_mode_is_task(counter->request.mode);
}

static bool sampler_begin(struct client_counter *counter, unsigned vcpu, GError **error)
{
	struct sampler *sampler = &counter->samplers[vcpu];
	const bool chains = session_config_has_chains(&counter->config);
	const struct sampler_config config = {
		.delivery = counter->delivery,
		.session = &counter->config,
		.unwind = chains ? &counter->unwind : NULL,
		.tables = chains && counter->config.call_graph != SESSION_CALL_GRAPH_FP
	                          ? session_tables(counter->session)
	                          : NULL,
		.kernel = counter->kernel->tasks ? counter->kernel : NULL,
		.claims = counter->claims,
		.cgroups = counter->kernel->groups,
		.cpu = session_task_cpu(counter->session, vcpu),
		.first_event = COUNTER_EVENTS_MAX + counter->number,
		.targets = counter->matched,
		.family = counter->families ? &counter->families[vcpu] : NULL,
	};

	if (counter->families)
		counter->families[vcpu] = (struct task_family){0};
	if (!session_watch(counter->session, vcpu, &sampler->watcher))
		return refuse(error, SESSION_ERROR_BUSY, counter, "cannot start: the vCPUs have too many watchers");
	if (sampler_open(sampler, &config, counter->rings[vcpu], error))
		return true;
	session_unwatch(counter->session, vcpu, &sampler->watcher);
	return false;
}

/* Checks which task the vCPU runs now, so that a task which keeps running is counted before the next switch. */
static void current_task_note(struct client_counter *counter, unsigned vcpu)
{
	const struct task_cpu *cpu = session_task_cpu(counter->session, vcpu);
	struct guest_regs regs;
	struct guest_gprs gprs;
	struct page_walk walk;
	struct task task;

	if (!counter->guest->debug->registers_read(counter->guest, vcpu, &regs, &gprs))
		return;
	const struct os_kernel *kernel = counter->kernel;
	const struct task_view view = {kernel, &walk, &regs};
	bool known = kernel->tasks && kernel->tasks->read(kernel, cpu, counter->guest, &regs, &walk, &task);

	counting_switched(&counter->countings[vcpu], &view, NULL, known ? &task : NULL);
}

static void start_on_vcpu(void *data)
{
	struct part_call *call = data;
	struct client_counter *counter = call->counter;

	if (counter->samplers) {
		call->done = sampler_begin(counter, call->vcpu, &call->error);
		return;
	}
	call->done = counting_start(&counter->countings[call->vcpu], &counter->request.event, counter->matched,
	                            &call->error);
	if (call->done && counter->matched)
		current_task_note(counter, call->vcpu);
}

static void stop_on_vcpu(void *data)
{
	struct part_call *call = data;
	struct client_counter *counter = call->counter;

	if (counter->samplers) {
		sampler_close(&counter->samplers[call->vcpu]);
		session_unwatch(counter->session, call->vcpu, &counter->samplers[call->vcpu].watcher);
	} else {
		counting_stop(&counter->countings[call->vcpu]);
	}
}

static void update_on_vcpu(void *data)
{
	struct part_call *call = data;

	counting_update(&call->counter->countings[call->vcpu]);
}

static bool part_start(struct client_counter *counter, unsigned vcpu, GError **error)
{
	struct part_call call = {.counter = counter, .vcpu = vcpu};

	if (!counts_on(counter, vcpu))
		return true;
	if (!counter->guest->ops->run_on_vcpu(counter->guest, vcpu, start_on_vcpu, &call))
		return refuse(error, SESSION_ERROR_STATE, counter, "cannot start: the guest has ended");
	if (!call.done)
		g_propagate_error(error, call.error);
	return call.done;
}

/* Nothing to do after the guest's end: its threads have closed their counters. */
static void parts_stop(struct client_counter *counter, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct part_call call = {.counter = counter, .vcpu = i};

		if (counts_on(counter, i))
			counter->guest->ops->run_on_vcpu(counter->guest, i, stop_on_vcpu, &call);
	}
}

static void on_switch(struct switch_probe *probe, unsigned vcpu, const struct task_view *view,
                      const struct task *previous, const struct task *next)
{
	struct client_counter *counter = (struct client_counter *)probe;

	if (counts_on(counter, vcpu))
		counting_switched(&counter->countings[vcpu], view, previous, next);
}

/* Tasks that ended while it was stopped leave nothing behind. */
static void logs_begin(struct client_counter *counter)
{
	if (!counter->logs)
		return;
	memset(counter->totals, 0, sizeof(*counter->totals));
	memset(counter->claims, 0, sizeof(*counter->claims));
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		counting_log_init(&counter->logs[i], counter->kernel, i, counter_event_id(counter->number, i),
		                  counter->rings[i], counter->totals, counter->claims);
		counter->logs[i].stalls = counter->request.stall;
	}
}

/* Prepares what all vCPUs share. */
static bool prepare(struct client_counter *counter, GError **error)
{
	if (counter->samplers) {
		counter->config.rate = counter->request.rate;
		counter->delivery = session_delivery_acquire(counter->session, NULL, error);
		return counter->delivery != NULL;
	}
	logs_begin(counter);
	counter->probe.switched = on_switch;
	if (!by_task(counter))
		return true;
	if (!switch_probe_add(&counter->probe, counter->guest, counter->kernel, "task-counting", error))
		return false;
	for (size_t i = 0; i < counter->targets.n; i++)
		if (counter->targets.targets[i].kind == TASK_TARGET_COMM)
			switch_probe_see_names(&counter->probe);
	return true;
}

static void unprepare(struct client_counter *counter)
{
	if (counter->samplers)
		session_delivery_release(counter->session);
	else if (by_task(counter))
		switch_probe_remove(&counter->probe);
}

bool client_counter_start(struct client_counter *counter, GError **error)
{
	if (counter->state == COUNTER_RUNNING)
		return refuse(error, SESSION_ERROR_STATE, counter, "is already running");
	if (by_task(counter) && counter->targets.n == 0)
		return refuse(error, SESSION_ERROR_STATE, counter, "has no task yet; attach it to one first");
	if (counter->guest->state == GUEST_ENDED)
		return refuse(error, SESSION_ERROR_STATE, counter, "cannot start: the guest has ended");
	if (!prepare(counter, error))
		return false;
	if (by_task(counter))
		counter->matched = g_memdup2(&counter->targets, sizeof(counter->targets));
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		if (part_start(counter, i, error))
			continue;
		parts_stop(counter, i);
		unprepare(counter);
		g_clear_pointer(&counter->matched, g_free);
		return false;
	}
	counter->state = COUNTER_RUNNING;
	return true;
}

/* What the samplers counted since they were opened, which resets it. */
static void keep_counted(struct client_counter *counter)
{
	for (unsigned i = 0; counter->samplers && i < counter->guest->vcpus; i++) {
		uint64_t counted[SAMPLER_MODES];

		sampler_counted_read(&counter->samplers[i], counted);
		for (unsigned j = 0; j < SAMPLER_MODES; j++)
			counter->before[i][j] += counted[j];
	}
}

void client_counter_stop(struct client_counter *counter)
{
	unprepare(counter);
	parts_stop(counter, counter->guest->vcpus);
	g_clear_pointer(&counter->matched, g_free);
	keep_counted(counter);
	counter->state = COUNTER_STOPPED;
}

static void resume_on_vcpu(void *data)
{
	struct part_call *call = data;
	struct client_counter *counter = call->counter;

	if (counter->samplers)
		sampler_resume(&counter->samplers[call->vcpu]);
	else if (counting_log_is_stalled(&counter->logs[call->vcpu]))
		current_task_note(counter, call->vcpu);
}

static bool can_resume(const struct client_counter *counter, unsigned vcpu)
{
	const struct ring *ring = counter->rings[vcpu];

	return counter->samplers ? sampler_can_resume(&counter->samplers[vcpu], ring)
	                         : counting_log_is_stalled(&counter->logs[vcpu]) && ring_has_recovered(ring);
}

void client_counter_resume_stalled(struct client_counter *counter)
{
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		struct part_call call = {.counter = counter, .vcpu = i};

		if (can_resume(counter, i))
			counter->guest->ops->run_on_vcpu(counter->guest, i, resume_on_vcpu, &call);
	}
}

bool client_counter_write(struct client_counter *counter, uint64_t value, GError **error)
{
	if (counter->samplers)
		return refuse(error, SESSION_ERROR_STATE, counter, "adds up samples; it can only be read");
	unsigned first = counter->request.one_vcpu ? counter->request.vcpu : 0;

	for (unsigned i = 0; i < counter->guest->vcpus; i++)
		atomic_store_explicit(&counter->countings[i].sums.value, i == first ? value : 0, memory_order_relaxed);
	return true;
}

bool client_counter_set_rate(struct client_counter *counter, const struct counter_rate *rate, GError **error)
{
	if (!counter->samplers)
		return refuse(error, SESSION_ERROR_STATE, counter, "counts exactly and has no period");
	if (!counter_rate_check(rate, &counter->request.event, error))
		return false;
	counter->request.rate = *rate;
	return true;
}

static void retarget_on_vcpu(void *data)
{
	struct part_call *call = data;
	struct client_counter *counter = call->counter;

	if (counter->samplers) {
		sampler_retarget(&counter->samplers[call->vcpu], counter->matched);
		return;
	}
	counting_retarget(&counter->countings[call->vcpu], counter->matched);
	current_task_note(counter, call->vcpu);
}

/* vCPU threads match against a copy, which is replaced on one after the other. `added`: is new among them; NULL. */
static void targets_renew(struct client_counter *counter, const struct task_target *added)
{
	if (counter->state != COUNTER_RUNNING)
		return;
	if (added && added->kind == TASK_TARGET_COMM && !counter->samplers)
		switch_probe_see_names(&counter->probe);
	struct task_targets *before = counter->matched;

	counter->matched = g_memdup2(&counter->targets, sizeof(counter->targets));
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		struct part_call call = {.counter = counter, .vcpu = i};

		if (counts_on(counter, i))
			counter->guest->ops->run_on_vcpu(counter->guest, i, retarget_on_vcpu, &call);
	}
	g_free(before);
}

/* Its index, or n. */
static size_t target_find(const struct task_targets *targets, const struct task_target *target)
{
	size_t i = 0;

	while (i < targets->n && !task_target_equal(&targets->targets[i], target))
		i++;
	return i;
}

bool client_counter_attach(struct client_counter *counter, const struct task_target *target, GError **error)
{
	struct task_targets *targets = &counter->targets;

	if (!by_task(counter))
		return refuse(error, SESSION_ERROR_STATE, counter,
		              "counts the whole guest; allocate one in a task mode");
	if (target_find(targets, target) < targets->n)
		return refuse(error, SESSION_ERROR_STATE, counter, "is already attached to it");
	if (targets->n == TASK_TARGETS_MAX)
		return refuse(error, SESSION_ERROR_BUSY, counter, "is attached to 8 targets, which is the maximum");
	if (target->kind != TASK_TARGET_TABLES && !counter->kernel->tasks) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
		            "counter %u cannot tell the guest's tasks apart: %s; attach it to a CR3", counter->number,
		            counter->kernel->why[OS_TASKS]);
		return false;
	}
	targets->targets[targets->n++] = *target;
	targets_renew(counter, target);
	return true;
}

bool client_counter_detach(struct client_counter *counter, const struct task_target *target, GError **error)
{
	struct task_targets *targets = &counter->targets;
	size_t i = target_find(targets, target);

	if (i == targets->n)
		return refuse(error, SESSION_ERROR_STATE, counter, "is not attached to it");
	targets->targets[i] = targets->targets[--targets->n];
	targets_renew(counter, NULL);
	return true;
}

static void sampled_read(const struct client_counter *counter, unsigned vcpu, struct counter_value *value)
{
	/* A stopped counter is in `before` already. */
	if (counter->state == COUNTER_RUNNING)
		sampler_counted_read(&counter->samplers[vcpu], value->modes);
	for (unsigned i = 0; i < SAMPLER_MODES; i++) {
		value->modes[i] += counter->before[vcpu][i];
		value->value += value->modes[i];
	}
	sampler_statistics_read(&counter->samplers[vcpu], counter->rings[vcpu], &value->statistics);
}

static void counted_read(struct client_counter *counter, unsigned vcpu, struct counter_value *value)
{
	const struct counting_sums *sums = &counter->countings[vcpu].sums;
	struct part_call call = {.counter = counter, .vcpu = vcpu};

	if (counter->state == COUNTER_RUNNING && counts_on(counter, vcpu))
		counter->guest->ops->run_on_vcpu(counter->guest, vcpu, update_on_vcpu, &call);
	value->value = atomic_load_explicit(&sums->value, memory_order_relaxed);
	value->running_ns = atomic_load_explicit(&sums->running_ns, memory_order_relaxed);
	value->enabled_ns = atomic_load_explicit(&sums->enabled_ns, memory_order_relaxed);
	if (counter->logs)
		counting_log_statistics_read(&counter->logs[vcpu], &value->statistics);
}

void client_counter_read(struct client_counter *counter, struct counter_value *values)
{
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		values[i] = (struct counter_value){0};
		if (counter->samplers)
			sampled_read(counter, i, &values[i]);
		else
			counted_read(counter, i, &values[i]);
	}
}

static void descriptor_on_vcpu(void *data)
{
	struct part_call *call = data;

	call->fd = counting_descriptor(&call->counter->countings[call->vcpu], &call->before);
}

bool client_counter_descriptors(struct client_counter *counter, struct counter_descriptors *descriptors, GError **error)
{
	descriptors->n = 0;
	if (counter->samplers || by_task(counter) || counter->state != COUNTER_RUNNING)
		return refuse(error, SESSION_ERROR_STATE, counter,
		              "has no descriptors to read: it must count the whole guest exactly, and run");
	for (unsigned i = 0; i < counter->guest->vcpus; i++) {
		struct part_call call = {.counter = counter, .vcpu = i, .fd = -1};

		if (!counts_on(counter, i))
			continue;
		counter->guest->ops->run_on_vcpu(counter->guest, i, descriptor_on_vcpu, &call);
		if (call.fd >= 0) {
			descriptors->each[descriptors->n++] = (struct counter_descriptor){i, call.fd, call.before};
			continue;
		}
		while (descriptors->n > 0)
			close(descriptors->each[--descriptors->n].fd);
		return refuse(
			error, SESSION_ERROR_UNSUPPORTED, counter,
			"has no descriptors to read: its event is none of perf's, or the guest has ended; use counter-read");
	}
	return true;
}
