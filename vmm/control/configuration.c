// SPDX-License-Identifier: BSD-2-Clause
/* The configuration keys: the arguments of session-start, and the defaults that session-configure sets for them. */
#include <vprof/control.h>
#include <vprof/ring.h>

#include "control/method_priv.h"
#include "control/server.h"

#define LINGER_MS 30000
#define LINGER_MS_MAX 600000

const char *const control_on_full_names[] = {"drop", "stall", NULL};

/* The names in counter_deliveries; a test compares the two. */
static const char *const delivery_names[] = {"sigtrap", "setsig", "sigmask", NULL};

const char *const control_call_graph_names[] = {
	[SESSION_CALL_GRAPH_NONE] = "none", [SESSION_CALL_GRAPH_AUTO] = "auto", [SESSION_CALL_GRAPH_ORC] = "orc",
	[SESSION_CALL_GRAPH_FP] = "fp",     [SESSION_CALL_GRAPH_FP + 1] = NULL,
};

/* Of session-start and session-configure: the configuration keys. */
const struct method_argument control_session_keys[] = {
	{"events", "events to count, as `vprof run -e` takes them; by default, the best event of this host",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = COUNTER_EVENTS_MAX},
	{"frequency-hz", "samples per second of vCPU time; excludes period", ARGUMENT_INTEGER, .optional = true,
         .min = 1, .max = VPROF_FREQUENCY_HZ_MAX, .preset = G_STRINGIFY(VPROF_FREQUENCY_HZ_DEFAULT)},
	{"period", "events between two samples; for clocks, nanoseconds; excludes frequency-hz", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = INT64_MAX},
	{"ring-bytes", "data bytes of each vCPU's ring; a power of two", ARGUMENT_INTEGER, .optional = true,
         .min = VPROF_RING_DATA_BYTES_MIN, .max = VPROF_RING_DATA_BYTES_MAX, .preset = "1048576"},
	{"watermark-bytes",
         "unread bytes of a ring at which its reader is notified; 0: a quarter of the ring. Also changes the running session",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = VPROF_RING_DATA_BYTES_MAX, .preset = "0"},
	{"on-full",
         "when a ring is full: drop samples and count them, or stall the counters until there is room and count the time",
         ARGUMENT_STRING, .optional = true, .choices = control_on_full_names, .preset = "\"drop\""},
	{"delivery", "how an overflow becomes an exit; by default, the first delivery that works", ARGUMENT_STRING,
         .optional = true, .choices = delivery_names},
	{"route", "how an attached guest is sampled (\"routes\" of query-host); by default, the first route that works",
         ARGUMENT_STRING, .optional = true, .min = 1, .max = 32},
	{"call-graph",
         "how to find a call chain for each sample. With fp, unwind tables of programs (unwind-table-add) are not used",
         ARGUMENT_STRING, .optional = true, .choices = control_call_graph_names, .preset = "\"none\""},
	{"call-depth", "maximum number of frames in a call chain", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = UNWIND_DEPTH_MAX, .preset = "64"},
	{"call-user", "whether call chains continue into user space", ARGUMENT_BOOLEAN, .optional = true,
         .preset = "true"},
	{"wall-hz", "looks per second at the tasks of a Linux guest that wait, for samples of the event wall; 0: none",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = SESSION_WALL_HZ_MAX, .preset = "0"},
	{"off-cpu",
         "whether to sample each wait of the guest's tasks (event off-cpu); uses one of the guest's breakpoints",
         ARGUMENT_BOOLEAN, .optional = true, .preset = "false"},
	{"idle-threads", "whether wall-hz and off-cpu sample kernel threads without work, too", ARGUMENT_BOOLEAN,
         .optional = true, .preset = "false"},
	{"host",
         "whether samples outside an attached guest have their address and call chain in the host's kernel or in QEMU",
         ARGUMENT_BOOLEAN, .optional = true, .preset = "false"},
	{"tasks", "whether samples have pid and tid of the guest's task, if the kernel image shows where to find them",
         ARGUMENT_BOOLEAN, .optional = true, .preset = "true"},
	{"switches",
         "whether to record context switches of the guest's tasks; uses one of the guest's four breakpoints",
         ARGUMENT_BOOLEAN, .optional = true, .preset = "false"},
	{"trace", "kinds of trace lines (trace-set) to switch on; all others are switched off", ARGUMENT_STRINGS,
         .optional = true, .min = 0, .max = TRACE_KIND_COUNT, .choices = control_trace_kinds, .preset = "[]"},
	{"linger-ms",
         "after the end of the guest, how long the engine stays at most for clients that hold the control role, wait "
         "for an answer, or have not read all; changed at once",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = LINGER_MS_MAX, .preset = G_STRINGIFY(LINGER_MS)},
	{0},
};

unsigned control_server_linger_ms(const struct control_server *server)
{
	const json_t *set = json_object_get(server->configuration, "linger-ms");

	return set ? (unsigned)json_integer_value(set) : LINGER_MS;
}

/* ---- the keys as the configuration of a session ---- */

static bool parse_events(const json_t *names, struct session_config *config, GError **error)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		if (!counter_event_parse(json_string_value(json_array_get(names, i)), &config->events[i], error))
			return false;
	}
	config->n_events = json_array_size(names);
	return true;
}

static bool parse_rate(const json_t *frequency_hz, const json_t *period, struct counter_rate *rate, GError **error)
{
	if (frequency_hz && period) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "arguments \"frequency-hz\" and \"period\" of session-start exclude each other");
		return false;
	}
	if (period)
		*rate = (struct counter_rate){.period = (uint64_t)json_integer_value(period)};
	else if (frequency_hz)
		*rate = (struct counter_rate){.frequency_hz = (uint32_t)json_integer_value(frequency_hz)};
	return true;
}

static bool parse_ring_bytes(const json_t *bytes, size_t *ring_data_bytes, GError **error)
{
	*ring_data_bytes = bytes ? (size_t)json_integer_value(bytes) : 0;
	if ((*ring_data_bytes & (*ring_data_bytes - 1)) == 0)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
	            "argument \"ring-bytes\" of session-start must be a power of two, not %zu", *ring_data_bytes);
	return false;
}

/* Returns the table's text, as the session's configuration outlives the request. */
static const char *parse_delivery(const json_t *name)
{
	return name ? delivery_names[argument_choice(delivery_names, json_string_value(name))] : NULL;
}

static enum session_call_graph parse_call_graph(const json_t *name)
{
	if (!name)
		return SESSION_CALL_GRAPH_NONE;
	return (enum session_call_graph)argument_choice(control_call_graph_names, json_string_value(name));
}

bool control_session_config(const json_t *arguments, struct session_config *config, GError **error)
{
	const json_t *depth = json_object_get(arguments, "call-depth");

	config->call_graph = parse_call_graph(json_object_get(arguments, "call-graph"));
	config->call_depth = depth ? (unsigned)json_integer_value(depth) : UNWIND_DEPTH_DEFAULT;
	config->call_kernel_only = json_is_false(json_object_get(arguments, "call-user"));
	config->host = json_is_true(json_object_get(arguments, "host"));
	config->no_tasks = json_is_false(json_object_get(arguments, "tasks"));
	config->wall_hz = (unsigned)json_integer_value(json_object_get(arguments, "wall-hz"));
	config->off_cpu = json_is_true(json_object_get(arguments, "off-cpu"));
	config->idle_threads = json_is_true(json_object_get(arguments, "idle-threads"));
	config->switches = json_is_true(json_object_get(arguments, "switches"));
	config->delivery = parse_delivery(json_object_get(arguments, "delivery"));
	config->stall = g_strcmp0(json_string_value(json_object_get(arguments, "on-full")), "stall") == 0;
	config->watermark_bytes = (size_t)json_integer_value(json_object_get(arguments, "watermark-bytes"));
	config->route = json_string_value(json_object_get(arguments, "route"));
	return parse_events(json_object_get(arguments, "events"), config, error) &&
	       parse_rate(json_object_get(arguments, "frequency-hz"), json_object_get(arguments, "period"),
	                  &config->rate, error) &&
	       parse_ring_bytes(json_object_get(arguments, "ring-bytes"), &config->ring_data_bytes, error);
}

/* ---- the keys that are set ---- */

/* Of two keys that exclude each other, the one given last counts. */
static const struct {
	const char *name, *displaces;
} exclusive[] = {{"frequency-hz", "period"}, {"period", "frequency-hz"}};

json_t *control_configuration_merge(const struct control_server *server, const json_t *arguments)
{
	json_t *merged = json_copy(server->configuration);

	for (size_t i = 0; i < G_N_ELEMENTS(exclusive); i++) {
		if (json_object_get(arguments, exclusive[i].name))
			json_object_del(merged, exclusive[i].displaces);
	}
	json_object_update(merged, (json_t *)arguments);
	json_object_del(merged, "trace"); /* the trace keeps this one itself */
	return merged;
}

/* The value that a client has set (new reference), or NULL. */
static json_t *key_set(const struct control_server *server, const char *name)
{
	if (!g_str_equal(name, "trace"))
		return json_incref(json_object_get(server->configuration, name));
	json_t *kinds = control_trace_configuration(server);
	if (json_array_size(kinds) > 0)
		return kinds;
	json_decref(kinds);
	return NULL;
}

bool control_configuration_apply(struct control_call *call, GError **error)
{
	const json_t *kinds = json_object_get(call->arguments, "trace");
	json_t *linger_ms = json_object_get(call->arguments, "linger-ms");

	if (linger_ms)
		json_object_set(call->server->configuration, "linger-ms", linger_ms);
	return !kinds || control_trace_configure(call->server, kinds, error);
}

static json_t *key_json(const struct control_server *server, const struct method_argument *key)
{
	json_t *set = key_set(server, key->name), *json = argument_limits(key);
	json_t *preset = key->preset ? json_loads(key->preset, JSON_DECODE_ANY, NULL) : json_null();

	json_object_set(json, "value", set ? set : preset);
	json_object_set_new(json, "default", preset);
	json_object_set_new(json, "set", json_boolean(set != NULL));
	json_decref(set);
	return json;
}

static json_t *method_query_configuration(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	json_t *keys = json_object();

	for (const struct method_argument *key = control_session_keys; key->name; key++)
		json_object_set_new(keys, key->name, key_json(call->server, key));
	return keys;
}

static json_t *method_session_configure(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	json_auto_t *merged = control_configuration_merge(server, call->arguments);
	struct session_config config = {0};

	if (!control_session_config(merged, &config, error) || !control_configuration_apply(call, error))
		return NULL;
	json_decref(server->configuration);
	server->configuration = g_steal_pointer(&merged);
	if (json_object_get(call->arguments, "watermark-bytes"))
		session_set_watermark(server->session, config.watermark_bytes);
	return method_query_configuration(call, error);
}

json_t *control_configuration_reset(struct control_server *server, GError **error)
{
	if (!control_trace_configure(server, NULL, error))
		return NULL;
	json_object_clear(server->configuration);
	return json_object();
}

/* ---- the methods ---- */

static const struct method_member key_members[] = {
	{"type", "type of the value, as for an argument", MEMBER_STRING},
	{"min", "least value, or least number of bytes or elements", MEMBER_INTEGER, .optional = true},
	{"max", "greatest value, or greatest number of bytes or elements", MEMBER_INTEGER, .optional = true},
	{"choices", "allowed values", MEMBER_STRINGS, .optional = true},
	{"value", "value in the next session; null: the engine chooses it for this host", MEMBER_ANY},
	{"default", "value while the key is not set", MEMBER_ANY},
	{"set", "whether a client has set the key", MEMBER_BOOLEAN},
	{0},
};

static const struct method_member keys_members[] = {
	{"*", "each configuration key", MEMBER_OBJECT, .members = key_members},
	{0},
};

const struct control_method configuration_methods[] = {
	{
		.name = "session-configure",
		.summary = "sets configuration keys, which are the defaults of session-start",
		.returns = keys_members,
		.role = ROLE_CONTROL,
		.arguments = control_session_keys,
		.run = method_session_configure,
	},
	{
		.name = "query-configuration",
		.summary = "lists the configuration keys, with their types and ranges",
		.returns = keys_members,
		.role = ROLE_OBSERVE,
		.run = method_query_configuration,
	},
	{0},
};
