// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session.h"

#include <string.h>
#include <vprof/recording.h>

#include "guest/processor.h"
#include "lib/record/clock.h"
#include "sample/session_off_cpu.h"
#include "sample/session_priv.h"
#include "sample/session_wall.h"
#include "stream/sample_stream.h"

struct session *session_new(struct guest *guest, GError **error)
{
	if (guest->vcpus == 0 || guest->vcpus > GUEST_VCPUS_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot profile a guest with %u vCPUs; it can have 1 to %u", guest->vcpus, GUEST_VCPUS_MAX);
		return NULL;
	}
	struct session *session = g_new0(struct session, 1);

	session->guest = guest;
	session->samplers = g_new0(struct sampler, guest->vcpus);
	session->hubs = g_new0(struct watch_hub, guest->vcpus);
	session->watchers = g_new0(struct vcpu_watcher *, guest->vcpus);
	session->rings = g_new0(struct ring *, guest->vcpus);
	session->later = g_ptr_array_new_with_free_func(g_free);
	session->zero = g_new0(struct session_statistics, guest->vcpus);
	session->carried = g_new0(struct session_statistics, guest->vcpus);
	session_kernel_init(&session->kernel, guest);
	session->tables = table_store_new();
	g_mutex_init(&session->route_lock);
	for (unsigned i = 0; i < guest->vcpus; i++) {
		sampler_init(&session->samplers[i], guest, i);
		watch_hub_init(&session->hubs[i], &session->samplers[i].watcher);
		session->watchers[i] = &session->hubs[i].watcher;
	}
	guest->watchers = session->watchers;
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	/* A session by a delivery has left nothing open: the vCPUs' threads have ended. */
	if (session->route)
		session_route_close(session);
	session_wall_stop(session);
	session_off_cpu_stop(session);
	sample_rings_free(session->rings, session->guest->vcpus);
	session->guest->watchers = NULL;
	g_free(session->route_why);
	g_free(session->waits_why);
	g_free(session->rings);
	g_free(session->zero);
	g_free(session->carried);
	session_kernel_deinit(&session->kernel);
	table_store_free(session->tables);
	g_ptr_array_unref(session->later);
	g_mutex_clear(&session->route_lock);
	g_free(session->watchers);
	g_free(session->hubs);
	g_free(session->samplers);
	g_free(session);
}

/* A call of sampler_open or sampler_close on the vCPU's thread. */
struct sampler_call {
	struct session *session;
	unsigned vcpu;
	bool done;
	GError *error;
};

static struct sampler_config sampler_config(struct session *session)
{
	return (struct sampler_config){
		.delivery = session->delivery,
		.session = &session->config,
		.unwind = session_config_has_chains(&session->config) ? &session->kernel.unwind : NULL,
		.kernel = session_has_tasks(session) ? session->kernel.layout : NULL,
		.cgroups = session->cgroups,
		.claims = &session->claims,
		.tables = session->config.call_graph != SESSION_CALL_GRAPH_FP ? session->tables : NULL,
	};
}

static void open_on_vcpu(void *data)
{
	struct sampler_call *call = data;
	struct session *session = call->session;
	struct sampler_config config = sampler_config(session);

	config.cpu = session_task_cpu(session, call->vcpu);
	call->done = sampler_open(&session->samplers[call->vcpu], &config, session->rings[call->vcpu], &call->error);
}

static void close_on_vcpu(void *data)
{
	struct sampler_call *call = data;

	sampler_close(&call->session->samplers[call->vcpu]);
}

static bool ended_error(GError **error)
{
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot start a session: the guest has ended");
	return false;
}

static bool sampler_start(struct session *session, unsigned vcpu, GError **error)
{
	struct sampler_call call = {.session = session, .vcpu = vcpu};

	if (!session->guest->ops->run_on_vcpu(session->guest, vcpu, open_on_vcpu, &call)) {
		session->ended = true;
		return ended_error(error);
	}
	if (!call.done)
		g_propagate_error(error, call.error);
	return call.done;
}

/* If the guest has ended, its threads have closed their counters (vcpu_watcher_ops.stopped). */
static void samplers_stop(struct session *session, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sampler_call call = {.session = session, .vcpu = i};

		if (!session->guest->ops->run_on_vcpu(session->guest, i, close_on_vcpu, &call))
			session->ended = true;
	}
}

static bool samplers_start(struct session *session, GError **error)
{
	const struct sampler_config config = sampler_config(session);

	if (session->route)
		return session_route_start(session, &config, error);
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		if (sampler_start(session, i, error))
			continue;
		samplers_stop(session, i);
		return false;
	}
	return true;
}

static void samplers_end(struct session *session)
{
	if (session->route && !session->suspended)
		session_route_stop(session);
	else if (!session->route)
		samplers_stop(session, session->guest->vcpus);
}

bool session_prefer_delivery(struct session *session, const char *name, GError **error)
{
	if (session->guest->routes) {
		g_autofree char *why_not = NULL;
		const struct counter_route *route = counter_route_choose(session->guest, name, false, &why_not, error);

		session->preferred = route ? route->name : session->preferred;
		return route != NULL;
	}
	const struct counter_delivery *delivery = counter_delivery_probe(name, error);

	if (delivery)
		session->preferred = delivery->name;
	return delivery != NULL;
}

const struct counter_delivery *session_delivery_acquire(struct session *session, const char *wanted, GError **error)
{
	if (session->n_users == 0)
		session->in_use = counter_delivery_probe(wanted ? wanted : session->preferred, error);
	else if (wanted && !g_str_equal(wanted, session->in_use->name)) {
		g_set_error(
			error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
			"cannot use delivery %s: counters on this guest use %s, and all share one; release them first",
			wanted, session->in_use->name);
		return NULL;
	}
	if (session->in_use)
		session->n_users++;
	return session->in_use;
}

void session_delivery_release(struct session *session)
{
	session->n_users--;
}

/* Takes the route of the guest, or a delivery, for this configuration. */
static bool overflows_acquire(struct session *session, const struct session_config *config, GError **error)
{
	if (session->guest->routes) {
		g_clear_pointer(&session->route_why, g_free);
		session->route =
			counter_route_choose(session->guest, config->route ? config->route : session->preferred,
		                             session_config_has_chains(config), &session->route_why, error);
		return session->route != NULL;
	}
	if (config->route) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_RANGE,
			"cannot use route %s: routes are for attached guests, and this engine runs its guest itself; omit it",
			config->route);
		return false;
	}
	if (config->host) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
			"cannot record the host's side of %s: its VMM is this engine, and samples name the exit that it handles; \"host\" is for attached guests",
			session->guest->name);
		return false;
	}
	const struct counter_delivery *delivery = session_delivery_acquire(session, config->delivery, error);

	session->delivery = delivery ? delivery : session->delivery;
	return delivery != NULL;
}

static void overflows_release(struct session *session)
{
	if (!session->route)
		session_delivery_release(session);
}

/* On the vCPU's thread. */
static void on_switch(struct switch_probe *probe, unsigned vcpu, const struct task_view *view,
                      const struct task *previous, const struct task *next)
{
	struct session *session = (struct session *)probe;
	const uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);

	if (session->config.switches)
		sampler_switched(&session->samplers[vcpu], view, previous, next, time_ns);
	if (session->off_cpu)
		session_off_cpu_switched(session, vcpu, view, previous, next, time_ns);
}

static bool sees_switches(const struct session_config *config)
{
	return config->switches || config->off_cpu;
}

static bool switches_start(struct session *session, GError **error)
{
	const struct session_config *config = &session->config;

	if (config->no_tasks) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot record context switches without tasks; omit tasks=false");
		return false;
	}
	if (config->off_cpu && !session_off_cpu_start(session, error))
		return false;
	session->switch_probe.switched = on_switch;
	if (switch_probe_add(&session->switch_probe, session->guest, session_kernel(session),
	                     config->switches ? "context-switches" : VPROF_OFF_CPU_EVENT, error))
		return true;
	session_off_cpu_stop(session);
	return false;
}

static void switches_stop(struct session *session)
{
	if (session->sees_switches)
		switch_probe_remove(&session->switch_probe);
	session->sees_switches = false;
	session_off_cpu_stop(session);
}

/* Keeps why the guest cannot be asked for this, and forgives it; any other error goes to the caller. */
static bool waits_forgive(struct session *session, GError *why, GError **error)
{
	if (!g_error_matches(why, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED)) {
		g_propagate_error(error, why);
		return false;
	}
	g_free(session->waits_why);
	session->waits_why = g_strdup(why->message);
	g_error_free(why);
	return true;
}

/* What needs the guest's tasks, beside samples. A guest that does not let them be seen is sampled all the same. */
static bool waits_start(struct session *session, GError **error)
{
	const struct session_config *config = &session->config;
	const bool takes_breakpoints = session->guest->debug != NULL;
	GError *why = NULL;

	g_clear_pointer(&session->waits_why, g_free);
	if (config->wall_hz != 0 && !session_wall_start(session, &why) && !waits_forgive(session, why, error))
		return false;
	why = NULL;
	session->sees_switches = sees_switches(config) && switches_start(session, &why);
	if (why && !takes_breakpoints)
		g_propagate_error(error, g_steal_pointer(&why));
	else if (!why || waits_forgive(session, why, error))
		return true;
	return false;
}

/* What the session unwinds by, once the kernel's tables are known. */
static void call_graph_settle(const struct session *session, struct session_config *config)
{
	if (!session_config_has_chains(config))
		return;
	/* Where no kernel has ORC tables, user space has unwind tables all the same. */
	if (session->kernel.unwind.tables)
		config->call_graph = SESSION_CALL_GRAPH_ORC;
	else if (config->call_graph != SESSION_CALL_GRAPH_AUTO || session_kernel_may_have_tables(&session->kernel))
		config->call_graph = SESSION_CALL_GRAPH_FP;
}

/* With a delivery or a route acquired. */
static bool start_acquired(struct session *session, struct session_config *config, GError **error)
{
	if (!session_config_settle(config, session->route, &session->event_why, error) ||
	    !session_kernel_prepare(&session->kernel, config, session->route, error) ||
	    !session_rings_make(session->rings, session->guest->vcpus, config->ring_data_bytes, error))
		return false;
	config->route = session->route ? session->route->name : NULL;
	config->delivery = session->route ? NULL : session->delivery->name;
	session->open_call_graph = config->call_graph == SESSION_CALL_GRAPH_AUTO;
	call_graph_settle(session, config);
	memset(&session->claims, 0, sizeof(session->claims));
	session->config = *config;
	session->configured = true;
	/* For the whole session: with a later kernel that has no cgroups, samples have cgroup 0. */
	session->cgroups = session_has_tasks(session) && session->kernel.layout->groups;
	session->number++;
	memset(session->zero, 0, session->guest->vcpus * sizeof(*session->zero));
	memset(session->carried, 0, session->guest->vcpus * sizeof(*session->carried));
	session_set_watermark(session, config->watermark_bytes);
	if (!samplers_start(session, error))
		return false;
	if (waits_start(session, error))
		return true;
	session_wall_stop(session);
	samplers_end(session);
	return false;
}

bool session_start(struct session *session, const struct session_config *wanted, GError **error)
{
	struct session_config config = *wanted;

	if (session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot start a session: one is running; stop it first");
		return false;
	}
	if (session->ended || session->guest->state == GUEST_ENDED)
		return ended_error(error);
	if (!overflows_acquire(session, &config, error))
		return false;
	session->running = start_acquired(session, &config, error);
	if (!session->running)
		overflows_release(session);
	return session->running;
}

bool session_stop(struct session *session, GError **error)
{
	if (!session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot stop a session: none is running");
		return false;
	}
	switches_stop(session);
	session_wall_stop(session);
	samplers_end(session);
	overflows_release(session);
	session->running = session->suspended = false;
	return true;
}

void session_suspend(struct session *session)
{
	if (!session->running || !session->route || session->suspended)
		return;
	session->suspended = true;
	session_route_stop(session);
}

/* Samplers count from 0 after they are opened again: keep what they have counted. */
static void statistics_carry(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		struct session_statistics statistics;

		sampler_statistics_read(&session->samplers[i], NULL, &statistics);
#define X(name, help) session->carried[i].name += statistics.name;
		SESSION_STATISTICS(X)
#undef X
	}
}

bool session_resume(struct session *session, bool other_kernel, GError **error)
{
	if (other_kernel) {
		session_kernel_forget(&session->kernel);
		/* Pids start again with a new kernel, and so do the announcements of tasks. */
		memset(&session->claims, 0, sizeof(session->claims));
	}
	session_wall_forget(session);
	if (!session->suspended)
		return true;
	session->suspended = false;
	/* The kernel before had ORC tables; this one may not. */
	if (session->config.call_graph == SESSION_CALL_GRAPH_ORC)
		session->open_call_graph = true;
	if (session->open_call_graph && session_config_has_chains(&session->config))
		session->config.call_graph = SESSION_CALL_GRAPH_AUTO;
	session->running = session_kernel_prepare(&session->kernel, &session->config, session->route, error);
	if (session->running) {
		call_graph_settle(session, &session->config);
		statistics_carry(session);
		session->running = samplers_start(session, error);
	}
	if (!session->running) {
		session_wall_stop(session);
		overflows_release(session);
	}
	return session->running;
}

bool session_running(const struct session *session)
{
	return session->running;
}

uint64_t session_number(const struct session *session)
{
	return session->number;
}

struct guest *session_guest(const struct session *session)
{
	return session->guest;
}

struct ring *session_ring(const struct session *session, unsigned vcpu)
{
	return session->rings[vcpu];
}

const struct task_cpu *session_task_cpu(const struct session *session, unsigned vcpu)
{
	return &session->hubs[vcpu].cpu;
}

bool session_watch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher)
{
	return watch_hub_add(&session->hubs[vcpu], watcher);
}

void session_unwatch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher)
{
	watch_hub_remove(&session->hubs[vcpu], watcher);
}

void session_free_later(struct session *session, void *data)
{
	g_ptr_array_add(session->later, data);
}

/* ---- what it is, and knows ---- */

struct table_store *session_tables(struct session *session)
{
	return session->tables;
}

const struct session_config *session_configuration(const struct session *session)
{
	return session->configured ? &session->config : NULL;
}

void session_event_attr(const struct session *session, unsigned event, struct perf_event_attr *attr)
{
	session_config_attr(&session->config, session->cgroups, event, attr);
}

const char *session_event_why(const struct session *session)
{
	return session->event_why;
}

const char *session_route_why(const struct session *session)
{
	return session->route_why;
}

const char *session_delivery(const struct session *session)
{
	const struct session_config *config = session_configuration(session);

	if (!config)
		return NULL;
	return config->route ? config->route : config->delivery;
}

const struct os_kernel *session_kernel(struct session *session)
{
	const struct session_config tasks_only = {.call_graph = SESSION_CALL_GRAPH_NONE};

	session_kernel_prepare(&session->kernel, &tasks_only, false, NULL);
	return session->kernel.layout;
}

struct unwind_config session_unwinding(struct session *session)
{
	return session_kernel_unwinding(&session->kernel);
}

const struct guest_os *session_os(const struct session *session)
{
	return session->kernel.os;
}

bool session_unwind(struct session *session, const struct session_config *config, struct unwind_config *unwind,
                    GError **error)
{
	return session_kernel_unwind(&session->kernel, config, unwind, error);
}

bool session_kernel_walk(const struct session *session, struct page_walk *walk)
{
	if (session_kernel_tables(session->kernel.layout, session->guest, walk))
		return true;
	for (unsigned i = 0; i < session->guest->vcpus; i++)
		if (sampler_kernel_walk(&session->samplers[i], walk))
			return true;
	return false;
}

const char *session_unwinder(const struct session *session)
{
	if (!session_config_has_chains(&session->config))
		return NULL;
	return session->kernel.unwind.tables ? "orc" : "fp";
}

const char *session_unwinder_why(const struct session *session)
{
	return session->open_call_graph && session_unwinder(session) && !session->kernel.unwind.tables
	               ? session->kernel.orc_why
	               : NULL;
}

/* The layout if the session tells tasks apart; NULL. */
static const struct os_kernel *layout_with_tasks(const struct session *session)
{
	return session->config.no_tasks ? NULL : session->kernel.layout;
}

bool session_has_tasks(const struct session *session)
{
	const struct os_kernel *layout = layout_with_tasks(session);

	return layout && layout->tasks;
}

const char *session_tasks_why(const struct session *session)
{
	const struct os_kernel *layout = layout_with_tasks(session);

	if (session->config.no_tasks)
		return session->config.no_tasks_why;
	return layout ? layout->why[OS_TASKS] : NULL;
}

const char *session_mappings_why(const struct session *session)
{
	const struct os_kernel *layout = layout_with_tasks(session);

	return layout ? layout->why[OS_MAPPINGS] : NULL;
}

const char *session_cgroups_why(const struct session *session)
{
	const struct os_kernel *layout = layout_with_tasks(session);

	return layout ? layout->why[OS_GROUPS] : NULL;
}

const char *session_modules_why(const struct session *session)
{
	const struct os_kernel *layout = layout_with_tasks(session);

	return layout ? layout->why[OS_MODULES] : NULL;
}

const char *session_waits_why(const struct session *session)
{
	return session->waits_why;
}

/* ---- while it runs ---- */

static bool require_running(const struct session *session, const char *what, GError **error)
{
	if (session->running)
		return true;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot %s: no session is running; start one first",
	            what);
	return false;
}

static bool on_vcpu(struct session *session, unsigned vcpu, void (*fn)(void *data), void *data)
{
	return session->guest->ops->run_on_vcpu(session->guest, vcpu, fn, data);
}

static void flush_on_vcpu(void *data)
{
	sampler_flush(data);
}

/*
 * Nothing to flush after the guest's end: its threads have done it. A route has no thread that can be asked; its losses
 * are written with its next record.
 */
static void flush_all(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		if (session->route)
			ring_wake(session->rings[i]);
		else
			on_vcpu(session, i, flush_on_vcpu, &session->samplers[i]);
	}
}

bool session_flush(struct session *session, GError **error)
{
	if (!require_running(session, "flush", error))
		return false;
	flush_all(session);
	return true;
}

void session_set_watermark(struct session *session, size_t bytes)
{
	session->config.watermark_bytes = bytes;
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		struct ring *ring = session->rings[i];

		if (ring)
			ring_set_watermark(ring, bytes ? bytes : ring_data_bytes(ring) / 4);
	}
}

static void resume_on_vcpu(void *data)
{
	sampler_resume(data);
}

void session_resume_stalled(struct session *session)
{
	if (!session->running || !session->config.stall)
		return;
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		if (sampler_can_resume(&session->samplers[i], session->rings[i]))
			on_vcpu(session, i, resume_on_vcpu, &session->samplers[i]);
	}
}

struct add_call {
	struct sampler *sampler;
	const struct session_sample *sample;
	bool done;
	GError *error;
};

static void add_on_vcpu(void *data)
{
	struct add_call *call = data;

	call->done = sampler_add(call->sampler, call->sample, &call->error);
}

bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error)
{
	struct add_call call = {.sampler = &session->samplers[sample->vcpu], .sample = sample};

	if (!require_running(session, "add a sample", error))
		return false;
	if (session->route) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot add a sample: samples of this guest come only by the route %s",
		            session->route->name);
		return false;
	}
	if (!on_vcpu(session, sample->vcpu, add_on_vcpu, &call)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot add a sample: the guest has ended");
		return false;
	}
	if (!call.done)
		g_propagate_error(error, call.error);
	return call.done;
}

/* Since the start of the session, resets ignored. */
static void statistics_raw(const struct session *session, unsigned vcpu, struct session_statistics *out)
{
	sampler_statistics_read(&session->samplers[vcpu], session->rings[vcpu], out);
#define X(name, help) out->name += session->carried[vcpu].name;
	SESSION_STATISTICS(X)
#undef X
}

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out)
{
	const struct session_statistics *zero = &session->zero[vcpu];

	statistics_raw(session, vcpu, out);
#define X(name, help) out->name -= MIN(out->name, zero->name);
	SESSION_STATISTICS(X)
#undef X
}

void session_reset_statistics(struct session *session)
{
	if (session->running)
		flush_all(session);
	for (unsigned i = 0; i < session->guest->vcpus; i++)
		statistics_raw(session, i, &session->zero[i]);
}

bool session_forget(struct session *session, GError **error)
{
	if (session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot reset the session: it is running; stop it first");
		return false;
	}
	sample_rings_free(session->rings, session->guest->vcpus);
	session->configured = false;
	return true;
}
