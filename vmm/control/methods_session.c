// SPDX-License-Identifier: BSD-2-Clause
/* session-start, session-stop, session-flush, query-session, reset, query-stats, rings */
#include "control/method_priv.h"

/* How often stalled counters are checked, of a session and of clients. */
#define STALL_LOOK_MS 10u

static json_t *event_json(const struct session *session, unsigned event, unsigned vcpus)
{
	struct perf_event_attr attr;

	session_event_attr(session, event, &attr);

	json_t *ids = json_array();
	for (unsigned i = 0; i < vcpus; i++)
		json_array_append_new(ids, json_integer((json_int_t)session_event_id(event, i)));
	return control_event(&session_configuration(session)->events[event], &attr, ids);
}

static json_t *session_json(const struct session *session, unsigned vcpus)
{
	const struct session_config *config = session_configuration(session);
	json_t *events = json_array();

	for (unsigned i = 0; i < session_config_n_events(config); i++)
		json_array_append_new(events, event_json(session, i, vcpus));
	json_t *answer =
		json_pack("{s:I, s:o, s:s, s:s?, s:s?, s:I, s:s, s:b, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?}",
	                  "session", (json_int_t)session_number(session), "events", events, "delivery",
	                  session_delivery(session), "why", session_event_why(session), "route-why",
	                  session_route_why(session), "ring-bytes", (json_int_t)config->ring_data_bytes, "call-graph",
	                  control_call_graph_names[config->call_graph], "tasks", session_has_tasks(session),
	                  "tasks-why", session_tasks_why(session), "mappings-why", session_mappings_why(session),
	                  "rate-why", config->rate_why, "cgroups-why", session_cgroups_why(session), "modules-why",
	                  session_modules_why(session), "unwinder", session_unwinder(session), "unwinder-why",
	                  session_unwinder_why(session), "waits-why", session_waits_why(session));
	json_object_set_new(answer, "host", config->host ? json_integer(session_guest(session)->process) : json_null());
	json_object_set_new(
		answer, config->rate.period ? "period" : "frequency-hz",
		json_integer((json_int_t)(config->rate.period ? config->rate.period : config->rate.frequency_hz)));
	return answer;
}

static gboolean look_for_stalled(gpointer data)
{
	struct control_server *server = data;

	session_resume_stalled(server->session);
	if (counters_resume_stalled(server->counters) || session_running(server->session))
		return G_SOURCE_CONTINUE;
	server->stall_timer = 0;
	return G_SOURCE_REMOVE;
}

void control_watch_stalls(struct control_server *server)
{
	if (!server->stall_timer)
		server->stall_timer = g_timeout_add(STALL_LOOK_MS, look_for_stalled, server);
}

static json_t *method_session_start(struct control_call *call, GError **error)
{
	struct session *session = call->server->session;
	struct session_config wanted = {0};
	json_auto_t *keys = control_configuration_merge(call->server, call->arguments);

	if (!control_session_config(keys, &wanted, error) || !control_configuration_apply(call, error) ||
	    !session_start(session, &wanted, error))
		return NULL;
	if (session_configuration(session)->stall)
		control_watch_stalls(call->server);
	return session_json(session, call->server->guest->vcpus);
}

bool control_had_session(const struct session *session, GError **error)
{
	if (session_configuration(session))
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE, "there was no session yet; execute session-start first");
	return false;
}

static json_t *method_query_session(struct control_call *call, GError **error)
{
	const struct session *session = call->server->session;

	return control_had_session(session, error) ? session_json(session, call->server->guest->vcpus) : NULL;
}

static json_t *method_query_stats(struct control_call *call, GError **error)
{
	const struct session *session = call->server->session;

	if (!control_had_session(session, error))
		return NULL;

	struct session_statistics total = {0};
	json_t *vcpus = json_array();
	for (unsigned i = 0; i < call->server->guest->vcpus; i++) {
		struct session_statistics one;

		session_statistics_read(session, i, &one);
		control_statistics_add(&total, &one);
		json_array_append_new(vcpus, control_statistics(&one));
	}
	return json_pack("{s:o, s:o, s:I, s:I}", "total", control_statistics(&total), "vcpus", vcpus, "requests",
	                 (json_int_t)call->server->requests, "errors", (json_int_t)call->server->errors);
}

static json_t *method_session_stop(struct control_call *call, GError **error)
{
	if (!session_stop(call->server->session, error))
		return NULL;
	return json_pack("{s:o}", "statistics", method_query_stats(call, NULL));
}

static json_t *method_session_flush(struct control_call *call, GError **error)
{
	if (!session_flush(call->server->session, error))
		return NULL;
	call->server->flushes++;
	json_t *heads = json_array();
	for (unsigned i = 0; i < call->server->guest->vcpus; i++)
		json_array_append_new(heads,
		                      json_integer((json_int_t)ring_head(session_ring(call->server->session, i))));
	return json_pack("{s:I, s:o}", "session", (json_int_t)session_number(call->server->session), "ends", heads);
}

static json_t *method_reset(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	const char *what = json_string_value(json_object_get(call->arguments, "what"));

	if (g_str_equal(what, "statistics"))
		session_reset_statistics(server->session);
	else if (g_str_equal(what, "trace"))
		trace_clear(server->trace);
	else if (g_str_equal(what, "configuration"))
		return control_configuration_reset(server, error);
	else if (!session_forget(server->session, error))
		return NULL;
	return json_object();
}

static json_t *method_rings(struct control_call *call, GError **error)
{
	const struct session *session = call->server->session;

	if (!control_had_session(session, error))
		return NULL;

	call->server->rings_of = session_number(session);
	call->server->rings_holder = call->connection;
	json_t *vcpus = json_array();
	for (unsigned i = 0; i < call->server->guest->vcpus; i++)
		json_array_append_new(vcpus, control_ring_json(call, i, session_ring(session, i)));
	return json_pack("{s:o}", "vcpus", vcpus);
}

/* ---- the methods ---- */

static const char *const reset_names[] = {"statistics", "session", "configuration", "trace", NULL};

static const struct method_argument reset_arguments[] = {
	{"what",
         "statistics: they count from 0 again. session: its rings and statistics are removed. configuration: every key gets its default. trace: its lines are removed",
         ARGUMENT_STRING, .choices = reset_names},
	{0},
};

static const struct method_member session_members[] = {
	{"session", "number of the session, from 1", MEMBER_INTEGER},
	{"events", "the events that are counted", MEMBER_OBJECTS, .members = control_event_members},
	{"delivery", "how overflows become exits; for an attached guest, the route", MEMBER_STRING},
	{"why", "why this event was chosen, if none was given", MEMBER_STRING, .nullable = true},
	{"route-why", "the best route, and why it was not taken, if no route was given", MEMBER_STRING,
         .nullable = true},
	{"ring-bytes", "data bytes of each ring", MEMBER_INTEGER},
	{"call-graph", "call-graph as it was given: none, auto, orc or fp", MEMBER_STRING},
	{"tasks", "whether samples have pid and tid of the guest's task", MEMBER_BOOLEAN},
	{"tasks-why", "why samples have no tasks, although they were asked for", MEMBER_STRING, .nullable = true},
	{"mappings-why", "why mapped files are not recorded", MEMBER_STRING, .nullable = true},
	{"cgroups-why", "why cgroups are not recorded", MEMBER_STRING, .nullable = true},
	{"rate-why", "why the default rate is lower here", MEMBER_STRING, .nullable = true},
	{"modules-why", "why modules are not recorded", MEMBER_STRING, .nullable = true},
	{"unwinder", "how call chains are found in the kernel: orc or fp", MEMBER_STRING, .nullable = true},
	{"unwinder-why", "why the kernel's ORC tables are not used, if call-graph was auto", MEMBER_STRING,
         .nullable = true},
	{"waits-why", "why waits or context switches are not recorded, although they were asked for", MEMBER_STRING,
         .nullable = true},
	{"host", "process id of QEMU, if samples outside the guest have addresses", MEMBER_INTEGER, .nullable = true},
	{"period", "events between two samples", MEMBER_INTEGER, .optional = true},
	{"frequency-hz", "samples per second of vCPU time, instead of period", MEMBER_INTEGER, .optional = true},
	{0},
};

static const struct method_member stats_members[] = {
	{"total", "sums over all vCPUs", MEMBER_OBJECT, .members = control_statistics_members},
	{"vcpus", "for each vCPU", MEMBER_OBJECTS, .members = control_statistics_members},
	{"requests", "requests of all clients since the engine's start", MEMBER_INTEGER},
	{"errors", "how many of them were answered with an error", MEMBER_INTEGER},
	{0},
};

static const struct method_member stop_members[] = {
	{"statistics", "as query-stats returns them", MEMBER_OBJECT, .members = stats_members},
	{0},
};

static const struct method_member flush_members[] = {
	{"session", "number of the session", MEMBER_INTEGER},
	{"ends", "for each vCPU, the offset up to which its ring can be read", MEMBER_INTEGERS},
	{0},
};

const struct control_method session_methods[] = {
	{
		.name = "session-start",
		.summary = "starts sampling every vCPU into new rings",
		.returns = session_members,
		.role = ROLE_CONTROL,
		.arguments = control_session_keys,
		.run = method_session_start,
	},
	{
		.name = "session-stop",
		.summary = "stops sampling; the rings stay readable",
		.returns = stop_members,
		.role = ROLE_CONTROL,
		.run = method_session_stop,
	},
	{
		.name = "session-flush",
		.summary = "notifies the readers of the rings of all samples so far; sampling continues",
		.returns = flush_members,
		.role = ROLE_CONTROL,
		.run = method_session_flush,
	},
	{
		.name = "query-session",
		.summary = "describes the last session as session-start did, for clients that did not start it",
		.returns = session_members,
		.role = ROLE_OBSERVE,
		.run = method_query_session,
	},
	{
		.name = "query-stats",
		.summary = "returns the statistics of the last session",
		.returns = stats_members,
		.role = ROLE_OBSERVE,
		.run = method_query_stats,
	},
	{
		.name = "reset",
		.summary = "resets the statistics, the session, the configuration or the trace",
		.role = ROLE_CONTROL,
		.arguments = reset_arguments,
		.run = method_reset,
	},
	{
		.name = "rings",
		.summary = "returns the rings of the last session; each ring has one reader",
		.returns = control_rings_members,
		.descriptors = CONTROL_RINGS_DESCRIPTORS,
		.role = ROLE_CONTROL,
		.run = method_rings,
	},
	{0},
};
