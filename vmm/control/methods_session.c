// SPDX-License-Identifier: BSD-2-Clause
/* session-start, session-stop, session-flush, query-session, reset, query-stats, rings */
#include <vprof/recording.h>
#include <vprof/ring.h>

#include "control/method_priv.h"
#include "lib/record/hex.h"

/* How often a session that stalls is looked at. */
#define STALL_LOOK_MS 10u

json_t *control_hex(const void *bytes, size_t n)
{
	g_autofree char *text = hex_encode(bytes, n);
	return json_string(text);
}

json_t *control_event(const struct counter_event *event, const struct perf_event_attr *attr, json_t *ids)
{
	_Static_assert(sizeof(*attr) >= VPROF_ATTR_BYTES, "linux/perf_event.h has PERF_ATTR_SIZE_VER7");
	return json_pack("{s:s, s:s, s:o, s:o}", "name", event->name, "backend", event->backend->name, "attr",
	                 control_hex(attr, VPROF_ATTR_BYTES), "ids", ids);
}

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
	for (unsigned i = 0; i < config->n_events; i++)
		json_array_append_new(events, event_json(session, i, vcpus));
	json_t *answer = json_pack(
		"{s:I, s:o, s:s, s:s?, s:I, s:s, s:b, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?}", "session",
		(json_int_t)session_number(session), "events", events, "delivery", session_delivery(session), "why",
		session_event_why(session), "ring-bytes", (json_int_t)config->ring_data_bytes, "call-graph",
		control_call_graph_names[config->call_graph], "tasks", session_has_tasks(session), "tasks-why",
		session_tasks_why(session), "mappings-why", session_mappings_why(session), "cgroups-why",
		session_cgroups_why(session), "modules-why", session_modules_why(session), "unwinder",
		session_unwinder(session), "unwinder-why", session_unwinder_why(session));
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
	if (session_running(server->session))
		return G_SOURCE_CONTINUE;
	server->stall_timer = 0;
	return G_SOURCE_REMOVE;
}

/* Lets the stalled counters of a session go on when there is room. */
static void watch_stalls(struct control_server *server)
{
	if (!server->stall_timer)
		server->stall_timer = g_timeout_add(STALL_LOOK_MS, look_for_stalled, server);
}

json_t *method_session_start(struct control_call *call, GError **error)
{
	struct session *session = call->server->session;
	struct session_config wanted = {0};
	json_auto_t *keys = control_configuration_merge(call->server, call->arguments);
	if (!control_session_config(keys, &wanted, error) || !control_configuration_apply(call, error) ||
	    !session_start(session, &wanted, error))
		return NULL;
	if (session_configuration(session)->stall)
		watch_stalls(call->server);
	return session_json(session, call->server->guest->vcpus);
}

bool control_had_session(const struct session *session, GError **error)
{
	if (session_configuration(session))
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE, "there was no session yet; execute session-start first");
	return false;
}

json_t *method_query_session(struct control_call *call, GError **error)
{
	const struct session *session = call->server->session;
	return control_had_session(session, error) ? session_json(session, call->server->guest->vcpus) : NULL;
}

void control_statistics_add(struct session_statistics *sum, const struct session_statistics *one)
{
#define X(name, help) sum->name += one->name;
	SESSION_STATISTICS(X)
#undef X
}

void control_set_count(json_t *object, const char *name, uint64_t count)
{
	g_autofree char *dashed = g_strdelimit(g_strdup(name), "_", '-');
	json_object_set_new(object, dashed, json_integer((json_int_t)count));
}

json_t *control_statistics(const struct session_statistics *statistics)
{
	json_t *object = json_object();
#define X(name, help) control_set_count(object, #name, statistics->name);
	SESSION_STATISTICS(X)
#undef X
	return object;
}

json_t *method_query_stats(struct control_call *call, GError **error)
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
	return json_pack("{s:o, s:o}", "total", control_statistics(&total), "vcpus", vcpus);
}

json_t *method_session_stop(struct control_call *call, GError **error)
{
	if (!session_stop(call->server->session, error))
		return NULL;
	return json_pack("{s:o}", "statistics", method_query_stats(call, NULL));
}

json_t *method_session_flush(struct control_call *call, GError **error)
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

static const char *const reset_names[] = {"statistics", "session", "configuration", "trace", NULL};

const struct method_argument reset_arguments[] = {
	{"what",
         "statistics: they count from 0 again, sampling goes on. session: its rings and statistics go, as before the "
         "first start. configuration: every key has its default again. trace: its lines go, and those that are on go "
         "on",
         ARGUMENT_STRING, .choices = reset_names},
	{0},
};

json_t *method_reset(struct control_call *call, GError **error)
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

json_t *control_ring_json(struct control_call *call, unsigned vcpu, const struct ring *ring)
{
	_Static_assert(G_N_ELEMENTS(call->fds) >= (size_t)2 * GUEST_VCPUS_MAX, "a ring and an eventfd for each vCPU");
	call->fds[call->n_fds++] = ring_memfd(ring);
	call->fds[call->n_fds++] = ring_eventfd(ring);
	return json_pack("{s:i, s:I}", "vcpu", (int)vcpu, "data-bytes", (json_int_t)ring_data_bytes(ring));
}

json_t *method_rings(struct control_call *call, GError **error)
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
