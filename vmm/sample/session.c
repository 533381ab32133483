// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session.h"

#include <string.h>
#include <vprof/ring.h>

#include "sample/session_priv.h"
#include "sample/session_route.h"

#define FREQUENCY_HZ_DEFAULT 999u /* not 1000: no lockstep with the guest's timer tick */

G_DEFINE_QUARK(vprof_session_error, session_error)

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
	session->old_kernels = g_ptr_array_new_with_free_func((GDestroyNotify)kernel_layout_free);
	session->old_orcs = g_ptr_array_new_with_free_func((GDestroyNotify)orc_free);
	for (unsigned i = 0; i < guest->vcpus; i++) {
		sampler_init(&session->samplers[i], guest, i);
		watch_hub_init(&session->hubs[i], &session->samplers[i].watcher);
		session->watchers[i] = &session->hubs[i].watcher;
	}
	guest->watchers = session->watchers;
	return session;
}

void session_free_rings(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++)
		ring_free(g_steal_pointer(&session->rings[i]));
}

void session_free(struct session *session)
{
	if (!session)
		return;
	session_free_rings(session);
	session->guest->watchers = NULL;
	g_free(session->rings);
	g_free(session->zero);
	g_free(session->carried);
	g_ptr_array_unref(session->old_kernels);
	g_ptr_array_unref(session->old_orcs);
	g_ptr_array_unref(session->later);
	g_free(session->watchers);
	g_free(session->hubs);
	g_free(session->samplers);
	orc_free(session->orc);
	g_free(session->orc_why);
	kernel_layout_free(session->kernel);
	g_free(session);
}

/* What the configuration leaves open. */
static void config_complete(struct session_config *config, const struct counter_route *route, const char **why)
{
	*why = NULL;
	if (config->n_events == 0) {
		config->n_events = 1;
		if (!route || !route->event_default ||
		    !counter_event_parse(route->event_default, &config->events[0], NULL))
			counter_event_default(&config->events[0], why);
	}
	if (config->rate.frequency_hz == 0 && config->rate.period == 0 && config->events[0].backend->steps)
		config->rate.period = 1;
	if (config->rate.frequency_hz == 0 && config->rate.period == 0)
		config->rate.frequency_hz = route ? route->frequency_hz_default : FREQUENCY_HZ_DEFAULT;
	if (config->ring_data_bytes == 0)
		config->ring_data_bytes = VPROF_RING_DATA_BYTES_DEFAULT;
}

static bool steps_check(const struct session_config *config, GError **error)
{
	bool steps = false;

	for (size_t i = 0; i < config->n_events; i++)
		steps |= config->events[i].backend->steps;
	if (steps && (config->n_events > 1 || config->stall)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot start a session with the event steps and %s",
		            config->stall ? "stall: a step waits for room in its ring anyway"
		                          : "another: while a vCPU is stepped, nothing else can be counted");
		return false;
	}
	return true;
}

static bool config_check(const struct session_config *config, GError **error)
{
	if (config->n_events > COUNTER_EVENTS_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot start a session with %zu events; it can have %u", config->n_events,
		            COUNTER_EVENTS_MAX);
		return false;
	}
	if (config->call_depth > UNWIND_DEPTH_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot record call chains of %u frames; the limit is %u", config->call_depth,
		            UNWIND_DEPTH_MAX);
		return false;
	}
	if (!steps_check(config, error))
		return false;
	for (size_t i = 0; i < config->n_events; i++)
		if (!counter_rate_check(&config->rate, &config->events[i], error))
			return false;
	return true;
}

static void ring_error(GError *cause, GError **error)
{
	bool range = g_error_matches(cause, G_FILE_ERROR, G_FILE_ERROR_INVAL);

	g_set_error_literal(error, SESSION_ERROR, range ? SESSION_ERROR_RANGE : SESSION_ERROR_SYSTEM, cause->message);
	g_error_free(cause);
}

/* All of the new ones, or none, and the old ones stay. */
static bool rings_renew(struct session *session, size_t data_bytes, GError **error)
{
	struct ring *rings[GUEST_VCPUS_MAX] = {NULL};
	unsigned n = session->guest->vcpus;
	GError *cause = NULL;

	for (unsigned i = 0; i < n; i++) {
		rings[i] = ring_new(data_bytes, &cause);
		if (rings[i])
			continue;
		ring_error(cause, error);
		while (i-- > 0)
			ring_free(rings[i]);
		return false;
	}
	session_free_rings(session);
	for (unsigned i = 0; i < n; i++)
		session->rings[i] = rings[i];
	return true;
}

static bool has_call_chains(const struct session_config *config)
{
	return config->call_graph != SESSION_CALL_GRAPH_NONE;
}

/* The kernel's ORC tables, once; true without them when it has none and they are not insisted on. */
static bool orc_prepare(struct session *session, const struct image *image, bool required, GError **error)
{
	g_autoptr(GError) failure = NULL;

	if (!session->orc && image)
		session->orc = orc_load(image, &failure);
	g_free(session->orc_why);
	session->orc_why = g_strdup(failure ? failure->message
	                            : image ? NULL
	                                    : "the guest's kernel image is not known");
	if (session->orc || (!required && (!failure || g_error_matches(failure, ORC_ERROR, ORC_ERROR_NONE))))
		return true;
	if (failure)
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
	else
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot unwind by ORC: the guest's kernel image is not known");
	return false;
}

static bool unwind_prepare(struct session *session, const struct session_config *config, const struct image *image,
                           GError **error)
{
	bool frame_pointers = config->call_graph == SESSION_CALL_GRAPH_FP;

	if (!has_call_chains(config))
		return true;
	if (!frame_pointers && !orc_prepare(session, image, config->call_graph == SESSION_CALL_GRAPH_ORC, error))
		return false;
	session->unwind = (struct unwind_config){
		.orc = frame_pointers ? NULL : session->orc,
		.user = !config->call_kernel_only,
		.depth = config->call_depth ? config->call_depth : UNWIND_DEPTH_DEFAULT,
	};
	return true;
}

static bool wants_orc(const struct session *session, const struct session_config *config)
{
	return !session->orc && has_call_chains(config) && config->call_graph != SESSION_CALL_GRAPH_FP;
}

/* With a route also for the sake of the stacks that it copies. */
static bool wants_layout(const struct session *session, const struct session_config *config)
{
	return !session->kernel && (!config->no_tasks || (session->route && has_call_chains(config)));
}

/* Where the kernel has its tasks, once. A guest without gets its profile all the same. */
static void layout_prepare(struct session *session, const struct image *image, const GError *failure)
{
	if (image)
		session->kernel = kernel_layout_load(image);
	else
		session->kernel =
			kernel_layout_none(failure ? failure->message : "the guest's kernel image is not known");
}

/* What the samplers need of the guest's kernel image, which is opened for it once. */
static bool kernel_prepare(struct session *session, const struct session_config *config, GError **error)
{
	const char *path = session->guest->kernel_path;
	g_autoptr(GError) failure = NULL;
	struct image *image = session->guest->kernel_image, *opened = NULL;

	if (!image && path && (wants_orc(session, config) || wants_layout(session, config)))
		image = opened = image_open(path, &failure);
	if (failure && wants_orc(session, config)) {
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
		return false;
	}
	bool done = unwind_prepare(session, config, image, error);

	if (done && wants_layout(session, config))
		layout_prepare(session, image, failure);
	image_free(opened);
	return done;
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
		.unwind = has_call_chains(&session->config) ? &session->unwind : NULL,
		.kernel = session_has_tasks(session) ? session->kernel : NULL,
		.cgroups = session->cgroups,
		.interrupt_stack = session->kernel ? session->kernel->interrupt_stack : (gva_t){0},
		.claims = &session->claims,
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

/* When the guest has ended, its threads closed their counters themselves (vcpu_watcher_ops.stopped). */
static void samplers_stop(struct session *session, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sampler_call call = {.session = session, .vcpu = i};

		if (!session->guest->ops->run_on_vcpu(session->guest, i, close_on_vcpu, &call))
			session->ended = true;
	}
}

bool session_prefer_delivery(struct session *session, const char *name, GError **error)
{
	if (session->guest->routes) {
		const struct counter_route *route = counter_route_choose(session->guest, name, false, error);

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
			"cannot take delivery %s: counters on this guest have %s, and there is one for all; release "
			"them first",
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

bool session_watch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher)
{
	return watch_hub_add(&session->hubs[vcpu], watcher);
}

void session_unwatch(struct session *session, unsigned vcpu, struct vcpu_watcher *watcher)
{
	watch_hub_remove(&session->hubs[vcpu], watcher);
}

/* How overflows are to become samples: by a route of the guest's, or a delivery. */
static bool means_acquire(struct session *session, const struct session_config *config, GError **error)
{
	if (session->guest->routes) {
		session->route =
			counter_route_choose(session->guest, config->route ? config->route : session->preferred,
		                             has_call_chains(config), error);
		return session->route != NULL;
	}
	if (config->route) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_RANGE,
			"cannot take route %s: this engine runs its guest itself, and has deliveries; leave it away",
			config->route);
		return false;
	}
	if (config->host) {
		g_set_error(
			error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED,
			"cannot record the host's side of %s: its VMM is this engine, and samples say which exit it "
			"handles; \"host\" is for attached guests",
			session->guest->name);
		return false;
	}
	const struct counter_delivery *delivery = session_delivery_acquire(session, config->delivery, error);

	session->delivery = delivery ? delivery : session->delivery;
	return delivery != NULL;
}

static void means_release(struct session *session)
{
	if (!session->route)
		session_delivery_release(session);
}

static bool samplers_start(struct session *session, GError **error)
{
	const struct sampler_config config = sampler_config(session);

	if (session->route)
		return session_route_start(session->guest, session->route, session->samplers, &config, session->rings,
		                           error);
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
		session_route_stop(session->guest, session->route, session->samplers);
	else if (!session->route)
		samplers_stop(session, session->guest->vcpus);
}

/* With the means acquired. */
static bool start_by_means(struct session *session, struct session_config *config, GError **error)
{
	config_complete(config, session->route, &session->event_why);
	if (!config_check(config, error) ||
	    (session->route && !session_route_restrict(session->route, config, error)) ||
	    !kernel_prepare(session, config, error) || !rings_renew(session, config->ring_data_bytes, error))
		return false;
	config->route = session->route ? session->route->name : NULL;
	config->delivery = session->route ? NULL : session->delivery->name;
	if (has_call_chains(config))
		config->call_graph = session->unwind.orc ? SESSION_CALL_GRAPH_ORC : SESSION_CALL_GRAPH_FP;
	session->claims = (struct task_claims){0};
	session->config = *config;
	session->configured = true;
	/* For all of the session: a kernel that comes later may have none, and its samples 0. */
	session->cgroups = session_has_tasks(session) && session->kernel->has_cgroups;
	session->number++;
	memset(session->zero, 0, session->guest->vcpus * sizeof(*session->zero));
	memset(session->carried, 0, session->guest->vcpus * sizeof(*session->carried));
	session_set_watermark(session, config->watermark_bytes);
	if (!samplers_start(session, error))
		return false;
	if (!config->switches || session_switches_start(session, error))
		return true;
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
	if (!means_acquire(session, &config, error))
		return false;
	session->running = start_by_means(session, &config, error);
	if (!session->running)
		means_release(session);
	return session->running;
}

bool session_stop(struct session *session, GError **error)
{
	if (!session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot stop a session: none is running");
		return false;
	}
	session_switches_stop(session);
	samplers_end(session);
	means_release(session);
	session->running = session->suspended = false;
	return true;
}

void session_suspend(struct session *session)
{
	if (!session->running || !session->route || session->suspended)
		return;
	session->suspended = true;
	session_route_stop(session->guest, session->route, session->samplers);
}

/* Samplers count from 0 when they are opened again. */
static void figures_carry(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		struct session_statistics figures;

		sampler_statistics_read(&session->samplers[i], &figures);
#define X(name, help) session->carried[i].name += figures.name;
		SESSION_STATISTICS(X)
#undef X
	}
}

/* Pids begin anew with a kernel, and so do the tasks that have been announced. */
static void kernel_forget(struct session *session)
{
	if (session->kernel)
		g_ptr_array_add(session->old_kernels, g_steal_pointer(&session->kernel));
	if (session->orc)
		g_ptr_array_add(session->old_orcs, g_steal_pointer(&session->orc));
	session->claims = (struct task_claims){0};
}

bool session_resume(struct session *session, bool other_kernel, GError **error)
{
	if (other_kernel)
		kernel_forget(session);
	if (!session->suspended)
		return true;
	session->suspended = false;
	session->running = kernel_prepare(session, &session->config, error);
	if (session->running) {
		figures_carry(session);
		session->running = samplers_start(session, error);
	}
	if (!session->running)
		means_release(session);
	return session->running;
}

bool session_running(const struct session *session)
{
	return session->running;
}

const struct session_config *session_configuration(const struct session *session)
{
	return session->configured ? &session->config : NULL;
}

void session_event_attr(const struct session *session, unsigned event, struct perf_event_attr *attr)
{
	counter_event_attr(&session->config.events[event], &session->config.rate, attr);
	if (has_call_chains(&session->config) || session->config.host)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (session->cgroups)
		attr->sample_type |= PERF_SAMPLE_CGROUP;
	attr->exclude_host = attr->exclude_host && !session->config.host;
	/* perf asks one of them for what is not a sample; the others would have the same. */
	attr->context_switch = event == 0 && session->config.switches;
	attr->cgroup = event == 0 && session->cgroups;
}

const struct kernel_layout *session_kernel(struct session *session)
{
	const struct session_config tasks_only = {.call_graph = SESSION_CALL_GRAPH_NONE};

	kernel_prepare(session, &tasks_only, NULL);
	return session->kernel;
}

const struct task_cpu *session_task_cpu(const struct session *session, unsigned vcpu)
{
	return &session->hubs[vcpu].cpu;
}

struct guest *session_guest(const struct session *session)
{
	return session->guest;
}

const struct orc *session_orc(struct session *session)
{
	const struct guest *guest = session->guest;
	bool opens = !session->orc && !guest->kernel_image && guest->kernel_path;
	struct image *opened = opens ? image_open(guest->kernel_path, NULL) : NULL;

	orc_prepare(session, opened ? opened : guest->kernel_image, false, NULL);
	image_free(opened);
	return session->orc;
}

const char *session_unwinder(const struct session *session)
{
	if (!has_call_chains(&session->config))
		return NULL;
	return session->unwind.orc ? "orc" : "fp";
}

const char *session_unwinder_why(const struct session *session)
{
	return session->config.call_graph == SESSION_CALL_GRAPH_AUTO && !session->unwind.orc ? session->orc_why : NULL;
}
