// SPDX-License-Identifier: BSD-2-Clause
/* counter-allocate to counter-rings, query-counters, counter-disable, counter-enable */
#include <vprof/control.h>
#include <vprof/ring.h>

#include "control/method_priv.h"
#include "guest/processor.h"

static const char *const mode_names[] = {
#define X(id, name) [id] = name,
	COUNTER_MODES(X)
#undef X
		[COUNTER_MODES_COUNT] = NULL,
};

static bool refuse(const char *what, GError **error)
{
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT, "%s", what);
	return false;
}

static bool parse_rate(const json_t *arguments, struct counter_rate *rate, GError **error)
{
	const json_t *frequency_hz = json_object_get(arguments, "frequency-hz");
	const json_t *period = json_object_get(arguments, "period");

	if (frequency_hz && period)
		return refuse("arguments \"frequency-hz\" and \"period\" exclude each other", error);
	*rate = (struct counter_rate){
		.frequency_hz = (uint32_t)json_integer_value(frequency_hz),
		.period = (uint64_t)json_integer_value(period),
	};
	return true;
}

static bool parse_chains(const json_t *arguments, struct counter_request *request, GError **error)
{
	const char *call_graph = json_string_value(json_object_get(arguments, "call-graph"));
	const json_t *depth = json_object_get(arguments, "call-depth"), *user = json_object_get(arguments, "call-user");

	if (call_graph)
		request->call_graph = (enum session_call_graph)argument_choice(control_call_graph_names, call_graph);
	request->call_depth = (unsigned)json_integer_value(depth);
	request->call_kernel_only = json_is_false(user);
	if (!counter_mode_is_sampling(request->mode) && call_graph)
		return refuse("argument \"call-graph\" is only for a sampling mode", error);
	if (request->call_graph == SESSION_CALL_GRAPH_NONE && (depth || user))
		return refuse("arguments \"call-depth\" and \"call-user\" need a \"call-graph\"", error);
	return true;
}

static bool parse_vcpu(const struct control_call *call, struct counter_request *request, GError **error)
{
	const json_t *vcpu = json_object_get(call->arguments, "vcpu");

	if (!vcpu)
		return true;
	request->one_vcpu = true;
	request->vcpu = (unsigned)json_integer_value(vcpu);
	return control_vcpu_check(call->server->guest, json_integer_value(vcpu), error);
}

static bool parse_request(const struct control_call *call, struct counter_request *request, GError **error)
{
	const json_t *arguments = call->arguments;
	const char *mode = json_string_value(json_object_get(arguments, "mode"));
	const json_t *ring_bytes = json_object_get(arguments, "ring-bytes");
	const char *on_full = json_string_value(json_object_get(arguments, "on-full"));
	bool estimate = json_is_true(json_object_get(arguments, "estimate"));

	*request = (struct counter_request){
		.mode = (enum counter_mode)argument_choice(mode_names, mode),
		.descendants = json_is_true(json_object_get(arguments, "descendants")),
		.per_switch = json_is_true(json_object_get(arguments, "per-switch")),
		.ring_bytes = (size_t)json_integer_value(ring_bytes),
		.stall = on_full && argument_choice(control_on_full_names, on_full) == 1,
	};
	bool sampling = counter_mode_is_sampling(request->mode);

	if (!counter_event_parse(json_string_value(json_object_get(arguments, "event")), &request->event, error) ||
	    !parse_rate(arguments, &request->rate, error) || !parse_chains(arguments, request, error) ||
	    !parse_vcpu(call, request, error))
		return false;
	if (sampling && estimate)
		return refuse("argument \"estimate\" is only for a counting mode", error);
	if (!counter_has_rings(request) && ring_bytes)
		return refuse("argument \"ring-bytes\" is only for a sampling mode, or with \"per-switch\"", error);
	if (!counter_has_rings(request) && on_full)
		return refuse("argument \"on-full\" is only for a sampling mode, or with \"per-switch\"", error);
	bool has_rate = request->rate.frequency_hz != 0 || request->rate.period != 0;

	if (!sampling && !estimate && has_rate)
		return refuse("a counter without samples has no frequency and no period", error);
	if (!has_rate && (sampling || estimate))
		request->rate.frequency_hz = VPROF_FREQUENCY_HZ_DEFAULT;
	return true;
}

static unsigned number_of(const struct control_call *call)
{
	return (unsigned)json_integer_value(json_object_get(call->arguments, "counter"));
}

/* An element of "events", as session-start returns it. */
static json_t *sampled_event(const struct control_call *call, unsigned number)
{
	struct counter_info info;
	struct perf_event_attr attr;
	json_t *ids = json_array();

	counter_info_get(call->server->counters, number, &info);
	counter_attr(call->server->counters, number, &attr);
	for (unsigned i = 0; i < call->server->guest->vcpus; i++)
		json_array_append_new(ids, json_integer((json_int_t)counter_event_id(number, i)));
	return control_event(&info.request->event, &attr, ids);
}

static json_t *method_counter_allocate(struct control_call *call, GError **error)
{
	const struct connection *connection = call->connection;
	const struct counter_owner owner = {connection, connection->peer.pid, connection->peer.uid};
	struct counter_request request;
	unsigned number;

	if (!parse_request(call, &request, error) ||
	    !counter_allocate(call->server->counters, &owner, &request, &number, error))
		return NULL;
	json_t *answer = json_pack("{s:i}", "counter", (int)number);

	if (counter_has_rings(&request)) {
		const char *unwinder = counter_unwinder(call->server->counters, number);

		if (unwinder)
			json_object_set_new(answer, "unwinder", json_string(unwinder));
		json_object_set_new(answer, "events", json_pack("[o]", sampled_event(call, number)));
		json_object_set_new(answer, "tasks", json_boolean(session_kernel(call->server->session)->tasks));
		if (request.rate.period != 0)
			json_object_set_new(answer, "period", json_integer((json_int_t)request.rate.period));
		else if (request.rate.frequency_hz != 0)
			json_object_set_new(answer, "frequency-hz", json_integer(request.rate.frequency_hz));
	}
	return answer;
}

/* A method that operates on a counter of the client, and returns nothing. */
static json_t *operate(struct control_call *call, GError **error,
                       bool (*operation)(struct counter_table *table, const void *key, unsigned number, GError **error))
{
	return operation(call->server->counters, call->connection, number_of(call), error) ? json_object() : NULL;
}

static json_t *method_counter_release(struct control_call *call, GError **error)
{
	json_t *answer = operate(call, error, counter_release);

	if (answer)
		call->connection->counter_rings &= ~(UINT32_C(1) << number_of(call));
	return answer;
}

static json_t *method_counter_start(struct control_call *call, GError **error)
{
	json_t *answer = operate(call, error, counter_start);
	struct counter_info info;

	if (!answer)
		return NULL;
	counter_info_get(call->server->counters, number_of(call), &info);
	if (info.request->stall)
		control_watch_stalls(call->server);
	return answer;
}

static json_t *method_counter_stop(struct control_call *call, GError **error)
{
	return operate(call, error, counter_stop);
}

static json_t *method_counter_write(struct control_call *call, GError **error)
{
	uint64_t value = (uint64_t)json_integer_value(json_object_get(call->arguments, "value"));

	return counter_write(call->server->counters, call->connection, number_of(call), value, error) ? json_object()
	                                                                                              : NULL;
}

static json_t *method_counter_set_period(struct control_call *call, GError **error)
{
	struct counter_rate rate;

	if (!parse_rate(call->arguments, &rate, error) ||
	    !counter_set_rate(call->server->counters, call->connection, number_of(call), &rate, error))
		return NULL;
	return json_object();
}

static bool parse_target(const struct control_call *call, struct task_target *target, GError **error)
{
	const json_t *arguments = call->arguments, *pid = json_object_get(arguments, "pid");
	const json_t *comm = json_object_get(arguments, "comm");
	const json_t *tables = json_object_get(arguments, "cr3");
	const struct processor *processor = processor_of(call->server->guest->processor);

	if (!!pid + !!comm + !!tables != 1)
		return refuse("exactly one of \"pid\", \"comm\" and \"cr3\" is needed", error);
	if (tables && !processor->memory->root_is_name) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "guests of %s have no \"cr3\"; give \"pid\" or \"comm\"", arch_name(processor->arch));
		return false;
	}
	*target = (struct task_target){
		.kind = pid    ? TASK_TARGET_PID
	                : comm ? TASK_TARGET_COMM
	                       : TASK_TARGET_TABLES,
		.pid = (uint32_t)json_integer_value(pid),
		.tables = control_address(tables),
	};
	if (comm)
		g_strlcpy(target->comm, json_string_value(comm), sizeof(target->comm));
	return true;
}

static json_t *operate_on_target(struct control_call *call, GError **error,
                                 bool (*operation)(struct counter_table *table, const void *key, unsigned number,
                                                   const struct task_target *target, GError **error))
{
	struct task_target target;

	if (!parse_target(call, &target, error) ||
	    !operation(call->server->counters, call->connection, number_of(call), &target, error))
		return NULL;
	return json_object();
}

static json_t *method_counter_attach(struct control_call *call, GError **error)
{
	return operate_on_target(call, error, counter_attach);
}

static json_t *method_counter_detach(struct control_call *call, GError **error)
{
	return operate_on_target(call, error, counter_detach);
}

/* JSON's integers have a sign: a counter goes on from 0 after the largest, and differences stay right. */
static json_int_t counted_json(uint64_t value)
{
	return (json_int_t)(value & INT64_MAX);
}

static json_t *modes_json(const uint64_t modes[SAMPLER_MODES])
{
	return json_pack("{s:I, s:I, s:I}", "kernel", counted_json(modes[SAMPLER_KERNEL]), "user",
	                 counted_json(modes[SAMPLER_USER]), "hypervisor", counted_json(modes[SAMPLER_HYPERVISOR]));
}

static bool has_samples(const struct counter_request *request)
{
	return request->rate.frequency_hz != 0 || request->rate.period != 0;
}

static json_t *value_json(const struct counter_value *value, const struct counter_request *request)
{
	json_t *object = json_pack("{s:I}", "value", counted_json(value->value));

	if (has_samples(request)) {
		json_object_set_new(object, "modes", modes_json(value->modes));
	} else {
		json_object_set_new(object, "enabled-ns", json_integer((json_int_t)value->enabled_ns));
		json_object_set_new(object, "running-ns", json_integer((json_int_t)value->running_ns));
	}
	if (has_samples(request) || request->per_switch)
		json_object_set_new(object, "statistics", control_statistics(&value->statistics));
	return object;
}

static void value_add(struct counter_value *sum, const struct counter_value *value)
{
	sum->value += value->value;
	sum->enabled_ns += value->enabled_ns;
	sum->running_ns += value->running_ns;
	for (size_t i = 0; i < SAMPLER_MODES; i++)
		sum->modes[i] += value->modes[i];
	control_statistics_add(&sum->statistics, &value->statistics);
}

static json_t *method_counter_read(struct control_call *call, GError **error)
{
	g_autofree struct counter_value *values = g_new(struct counter_value, GUEST_VCPUS_MAX);
	struct counter_value sum = {0};
	struct counter_info info;

	if (!counter_read(call->server->counters, call->connection, number_of(call), values, error))
		return NULL;
	counter_info_get(call->server->counters, number_of(call), &info);
	json_t *vcpus = json_array();

	for (unsigned i = 0; i < call->server->guest->vcpus; i++) {
		json_array_append_new(vcpus, value_json(&values[i], info.request));
		value_add(&sum, &values[i]);
	}
	json_t *answer = value_json(&sum, info.request);

	json_object_set_new(answer, "vcpus", vcpus);
	return answer;
}

static json_t *method_counter_descriptors(struct control_call *call, GError **error)
{
	struct counter_descriptors descriptors;

	if (!counter_descriptors(call->server->counters, call->connection, number_of(call), &descriptors, error))
		return NULL;
	json_t *vcpus = json_array();

	call->owns_fds = true;
	for (size_t i = 0; i < descriptors.n; i++) {
		const struct counter_descriptor *one = &descriptors.each[i];

		call->fds[call->n_fds++] = one->fd;
		json_array_append_new(
			vcpus, json_pack("{s:i, s:I}", "vcpu", (int)one->vcpu, "before", counted_json(one->before)));
	}
	return json_pack("{s:o}", "vcpus", vcpus);
}

static json_t *method_counter_rings(struct control_call *call, GError **error)
{
	const struct counter_table *table = call->server->counters;

	if (!counter_rings_check(table, call->connection, number_of(call), error))
		return NULL;
	json_t *vcpus = json_array();

	for (unsigned i = 0; i < call->server->guest->vcpus; i++)
		json_array_append_new(vcpus, control_ring_json(call, i, counter_ring(table, number_of(call), i)));
	call->connection->counter_rings |= UINT32_C(1) << number_of(call);
	return json_pack("{s:o}", "vcpus", vcpus);
}

static json_t *method_counter_disable(struct control_call *call, GError **error)
{
	return counter_disable(call->server->counters, number_of(call), error) ? json_object() : NULL;
}

static json_t *method_counter_enable(struct control_call *call, GError **error)
{
	return counter_enable(call->server->counters, number_of(call), error) ? json_object() : NULL;
}

static json_t *target_json(const struct task_target *target)
{
	switch (target->kind) {
	case TASK_TARGET_PID:
		return json_pack("{s:I}", "pid", (json_int_t)target->pid);
	case TASK_TARGET_COMM:
		return json_pack("{s:s}", "comm", target->comm);
	case TASK_TARGET_TABLES:
		return json_pack("{s:o}", "cr3", control_hex_address(target->tables));
	}
	return json_null();
}

static json_t *targets_json(const struct task_targets *targets)
{
	json_t *list = json_array();

	for (size_t i = 0; i < targets->n; i++)
		json_array_append_new(list, target_json(&targets->targets[i]));
	return list;
}

static json_t *held_json(const struct counter_info *info, const struct connection *asking)
{
	const struct counter_request *request = info->request;
	bool sampling = counter_mode_is_sampling(request->mode);

	json_t *held =
		json_pack("{s:s, s:i, s:I, s:b, s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:o}", "disposition",
	                  counter_mode_is_task(request->mode) ? "task" : "standalone", "pid", info->owner.pid, "uid",
	                  (json_int_t)info->owner.uid, "yours", info->owner.key == asking, "mode",
	                  counter_mode_name(request->mode), "event", request->event.name, "backend",
	                  request->event.backend->name, "frequency-hz", (json_int_t)request->rate.frequency_hz,
	                  "period", (json_int_t)request->rate.period, "estimate", !sampling && has_samples(request),
	                  "descendants", request->descendants, "targets", targets_json(info->targets));

	if (request->per_switch)
		json_object_set_new(held, "per-switch", json_true());
	if (request->one_vcpu)
		json_object_set_new(held, "vcpu", json_integer(request->vcpu));
	return held;
}

static json_t *method_query_counters(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	json_t *counters = json_array();

	for (unsigned i = 0; i < COUNTERS_MAX; i++) {
		struct counter_info info;

		counter_info_get(call->server->counters, i, &info);
		if (info.state == COUNTER_FREE)
			continue;
		json_t *counter = info.request ? held_json(&info, call->connection)
		                               : json_pack("{s:s}", "disposition", "unavailable");

		json_object_set_new(counter, "counter", json_integer(i));
		json_object_set_new(counter, "state", json_string(counter_state_name(info.state)));
		json_array_append_new(counters, counter);
	}
	return json_pack("{s:i, s:o}", "total", (int)COUNTERS_MAX, "counters", counters);
}

/* ---- the methods ---- */

#define COUNTER_ARGUMENT                                                                                 \
	{                                                                                                \
		"counter", "number of the counter", ARGUMENT_INTEGER, .min = 0, .max = COUNTERS_MAX - 1, \
	}

static const struct method_argument counter_allocate_arguments[] = {
	{"event", "event to count, as `vprof run -e` takes it", ARGUMENT_STRING, .min = 1,
         .max = CONTROL_EVENT_NAME_BYTES_MAX},
	{"mode",
         "what to count: the whole guest, or the tasks that the counter is attached to; as a number, or as samples",
         ARGUMENT_STRING, .choices = mode_names},
	{"frequency-hz",
         "samples per second of vCPU time; by default " G_STRINGIFY(
		 VPROF_FREQUENCY_HZ_DEFAULT) ", unless a period is given",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = VPROF_FREQUENCY_HZ_MAX},
	{"period", "events between two samples; for clocks, nanoseconds; excludes frequency-hz", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = INT64_MAX},
	{"estimate",
         "in a counting mode: estimate the value from samples; works for modes and tasks that the event cannot separate, and needs no breakpoint",
         ARGUMENT_BOOLEAN, .optional = true},
	{"descendants", "in a task mode: also count the descendants of the tasks", ARGUMENT_BOOLEAN, .optional = true},
	{"per-switch",
         "in the mode task-counting: the counter has rings with what it counts of each task from one context switch to the next, and until the task's end",
         ARGUMENT_BOOLEAN, .optional = true},
	{"vcpu", "count on this vCPU only; by default, on every vCPU", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = GUEST_VCPUS_MAX - 1},
	{"ring-bytes", "in a sampling mode, or with per-switch: data bytes of each vCPU's ring; a power of two",
         ARGUMENT_INTEGER, .optional = true, .min = VPROF_RING_DATA_BYTES_MIN, .max = VPROF_RING_DATA_BYTES_MAX},
	{"on-full",
         "with rings: when a ring is nearly full, drop records and count them, or do not count until there is room, and count the time",
         ARGUMENT_STRING, .optional = true, .choices = control_on_full_names, .preset = "\"drop\""},
	{"call-graph", "in a sampling mode: how to find a call chain for each sample, as session-start takes it",
         ARGUMENT_STRING, .optional = true, .choices = control_call_graph_names, .preset = "\"none\""},
	{"call-depth", "maximum number of frames in a call chain; needs call-graph", ARGUMENT_INTEGER, .optional = true,
         .min = 1, .max = UNWIND_DEPTH_MAX, .preset = "64"},
	{"call-user", "whether call chains continue into user space; needs call-graph", ARGUMENT_BOOLEAN,
         .optional = true, .preset = "true"},
	{0},
};

static const struct method_argument counter_arguments[] = {
	COUNTER_ARGUMENT,
	{0},
};

static const struct method_argument counter_write_arguments[] = {
	COUNTER_ARGUMENT,
	{"value", "value to continue from", ARGUMENT_INTEGER, .min = 0, .max = INT64_MAX},
	{0},
};

static const struct method_argument counter_set_period_arguments[] = {
	COUNTER_ARGUMENT,
	{"frequency-hz", "samples per second of vCPU time; excludes period", ARGUMENT_INTEGER, .optional = true,
         .min = 1, .max = VPROF_FREQUENCY_HZ_MAX},
	{"period", "events between two samples; for clocks, nanoseconds; excludes frequency-hz", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = INT64_MAX},
	{0},
};

static const struct method_argument counter_target_arguments[] = {
	COUNTER_ARGUMENT,
	{"pid", "process of the guest, with all its threads; excludes comm and cr3", ARGUMENT_INTEGER, .optional = true,
         .min = 0, .max = INT32_MAX},
	{"comm", "threads of the guest by name; * matches any characters, ? matches one", ARGUMENT_STRING,
         .optional = true, .min = 1, .max = TASK_GLOB_BYTES - 1},
	{"cr3", "all code that runs on these page tables; bits 11:0 are ignored", ARGUMENT_ADDRESS, .optional = true},
	{0},
};

static const struct method_member allocate_members[] = {
	{"counter", "number of the counter", MEMBER_INTEGER},
	{"events", "in a sampling mode, or with per-switch: the event of its samples", MEMBER_OBJECTS, .optional = true,
         .members = control_event_members},
	{"unwinder", "with a call-graph: how the kernel is unwound, orc or fp", MEMBER_STRING, .optional = true},
	{"tasks", "in a sampling mode, or with per-switch: whether samples have pid and tid of the guest's task",
         MEMBER_BOOLEAN, .optional = true},
	{"period", "in a sampling mode: events between two samples", MEMBER_INTEGER, .optional = true},
	{"frequency-hz", "in a sampling mode: samples per second of vCPU time, instead of period", MEMBER_INTEGER,
         .optional = true},
	{0},
};

static const struct method_member modes_members[] = {
	{"kernel", "in the guest's kernel", MEMBER_INTEGER},
	{"user", "in the guest's user space", MEMBER_INTEGER},
	{"hypervisor", "outside the guest", MEMBER_INTEGER},
	{0},
};

#define VALUE_MEMBERS                                                                                                \
	{"value", "events that were counted, modulo 2^63", MEMBER_INTEGER},                                          \
		{"enabled-ns", "of an exact counter: time that the vCPU threads ran while it was enabled",           \
	         MEMBER_INTEGER, .optional = true},                                                                  \
		{"running-ns", "of an exact counter: part of that time for which it had a counter of the PMU",       \
	         MEMBER_INTEGER, .optional = true},                                                                  \
		{"modes", "of a counter with samples: where the events occurred", MEMBER_OBJECT, .optional = true,   \
	         .members = modes_members},                                                                          \
	{                                                                                                            \
		"statistics", "of a counter with samples or per-switch: what became of its samples since its start", \
			MEMBER_OBJECT, .optional = true, .members = control_statistics_members                       \
	}

static const struct method_member value_members[] = {
	VALUE_MEMBERS,
	{0},
};

static const struct method_member read_members[] = {
	VALUE_MEMBERS,
	{"vcpus", "for each vCPU", MEMBER_OBJECTS, .members = value_members},
	{0},
};

static const struct method_member descriptor_members[] = {
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"before", "what it had counted before, to be added to the value that is read", MEMBER_INTEGER},
	{0},
};

static const struct method_member descriptors_members[] = {
	{"vcpus", "the vCPUs that it counts on", MEMBER_OBJECTS, .members = descriptor_members},
	{0},
};

static const struct method_member target_members[] = {
	{"pid", "a process of the guest, with all its threads", MEMBER_INTEGER, .optional = true},
	{"comm", "name of threads", MEMBER_STRING, .optional = true},
	{"cr3", "address of page tables", MEMBER_ADDRESS, .optional = true},
	{0},
};

static const struct method_member held_members[] = {
	{"counter", "number of the counter", MEMBER_INTEGER},
	{"state", "allocated, running, stopped or disabled", MEMBER_STRING},
	{"disposition", "standalone or task when a client holds it, else unavailable", MEMBER_STRING},
	{"pid", "process id of the holder", MEMBER_INTEGER, .optional = true},
	{"uid", "user id of the holder", MEMBER_INTEGER, .optional = true},
	{"yours", "whether the holder is this client", MEMBER_BOOLEAN, .optional = true},
	{"mode", "mode, as given to counter-allocate", MEMBER_STRING, .optional = true},
	{"vcpu", "the only vCPU that it counts on", MEMBER_INTEGER, .optional = true},
	{"event", "event that it counts", MEMBER_STRING, .optional = true},
	{"backend", "backend that counts the event", MEMBER_STRING, .optional = true},
	{"frequency-hz", "samples per second of vCPU time; 0: none", MEMBER_INTEGER, .optional = true},
	{"period", "events between two samples; 0: none", MEMBER_INTEGER, .optional = true},
	{"estimate", "whether the value is estimated from samples", MEMBER_BOOLEAN, .optional = true},
	{"descendants", "whether descendants of the tasks are counted, too", MEMBER_BOOLEAN, .optional = true},
	{"per-switch", "true: it has rings with what it counts per switch", MEMBER_BOOLEAN, .optional = true},
	{"targets", "in a task mode: the tasks that it is attached to", MEMBER_OBJECTS, .optional = true,
         .members = target_members},
	{0},
};

static const struct method_member counters_members[] = {
	{"total", "number of counters for clients", MEMBER_INTEGER},
	{"counters", "the counters that are not free", MEMBER_OBJECTS, .members = held_members},
	{0},
};

const struct control_method counter_methods[] = {
	{
		.name = "counter-allocate",
		.summary =
			"allocates a counter beside those of the session; the client holds it until it releases it or disconnects",
		.returns = allocate_members,
		.role = ROLE_INSTRUMENT,
		.arguments = counter_allocate_arguments,
		.run = method_counter_allocate,
	},
	{
		.name = "counter-release",
		.summary = "releases a counter, running or not",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_release,
	},
	{
		.name = "counter-attach",
		.summary =
			"attaches a counter in a task mode to tasks of the guest, running or not; repeat it for more tasks",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_target_arguments,
		.run = method_counter_attach,
	},
	{
		.name = "counter-detach",
		.summary = "undoes counter-attach with the same arguments, running or not",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_target_arguments,
		.run = method_counter_detach,
	},
	{
		.name = "counter-start",
		.summary = "starts a counter on every vCPU",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_start,
	},
	{
		.name = "counter-stop",
		.summary = "stops a counter; counter-start continues from its value",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_stop,
	},
	{
		.name = "counter-read",
		.summary = "returns the present value of a counter",
		.returns = read_members,
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_read,
	},
	{
		.name = "counter-descriptors",
		.summary =
			"returns descriptors that read a running, exact counter of the whole guest without the engine: read(2) gives value, enabled-ns and running-ns as 64-bit numbers (perf_event_open(2))",
		.returns = descriptors_members,
		.descriptors = "for each element of vcpus, a perf event",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_descriptors,
	},
	{
		.name = "counter-write",
		.summary = "sets the value of an exact counter that is not running",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_write_arguments,
		.run = method_counter_write,
	},
	{
		.name = "counter-set-period",
		.summary = "sets the frequency or period of a counter that is not running",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_set_period_arguments,
		.run = method_counter_set_period,
	},
	{
		.name = "counter-rings",
		.summary = "returns the rings of a counter in a sampling mode, or per-switch; each ring has one reader",
		.returns = control_rings_members,
		.descriptors = CONTROL_RINGS_DESCRIPTORS,
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_rings,
	},
	{
		.name = "counter-disable",
		.summary = "prevents a free counter from being allocated",
		.role = ROLE_CONTROL,
		.arguments = counter_arguments,
		.run = method_counter_disable,
	},
	{
		.name = "counter-enable",
		.summary = "undoes counter-disable",
		.role = ROLE_CONTROL,
		.arguments = counter_arguments,
		.run = method_counter_enable,
	},
	{
		.name = "query-counters",
		.summary = "lists the counters that are not free, and the clients that hold them",
		.returns = counters_members,
		.role = ROLE_OBSERVE,
		.run = method_query_counters,
	},
	{0},
};
