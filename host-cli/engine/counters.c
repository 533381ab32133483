// SPDX-License-Identifier: BSD-2-Clause
#include "engine/counters.h"

#include "engine/engine_process.h"
#include "ui/message.h"
#include "ui/text.h"

/* The arguments for one counter. Members that were not given are omitted, since not every mode takes them. */
static json_t *request_new(const char *event, const struct counters_kind *kind)
{
	json_t *request = json_pack("{s:o, s:s, s:b}", "event", text_json(event), "mode", kind->mode, "descendants",
	                            kind->descendants);

	if (kind->estimate)
		json_object_set_new(request, "estimate", json_true());
	if (kind->per_switch)
		json_object_set_new(request, "per-switch", json_true());
	if (kind->on_full)
		json_object_set_new(request, "on-full", text_json(kind->on_full));
	if (kind->frequency_hz != 0)
		json_object_set_new(request, "frequency-hz", json_integer((json_int_t)kind->frequency_hz));
	if (kind->period != 0)
		json_object_set_new(request, "period", json_integer((json_int_t)kind->period));
	if (kind->call_graph)
		json_object_set_new(request, "call-graph", text_json(kind->call_graph));
	if (kind->call_depth != 0)
		json_object_set_new(request, "call-depth", json_integer((json_int_t)kind->call_depth));
	if (kind->no_call_user)
		json_object_set_new(request, "call-user", json_false());
	if (kind->one_vcpu)
		json_object_set_new(request, "vcpu", json_integer((json_int_t)kind->vcpu));
	return request;
}

json_t *counters_allocate(struct client *client, char **events, const struct counters_kind *kind, GError **error)
{
	json_t *counters = json_array();
	GError *first = NULL;
	bool any = false;

	for (char **event = events; *event; event++) {
		g_autoptr(GError) refused = NULL;
		json_t *counter = engine_ask(client, "counter-allocate", request_new(*event, kind), &refused);

		any |= counter != NULL;
		if (!counter)
			counter = json_pack("{s:o}", "error", text_json(failure_text(refused)));
		if (refused && !first)
			first = g_error_copy(refused);
		json_object_set_new(counter, "event", text_json(*event));
		json_array_append_new(counters, counter);
	}
	if (any) {
		g_clear_error(&first);
		return counters;
	}
	g_propagate_error(error, first);
	json_decref(counters);
	return NULL;
}

bool counters_for_all(struct client *client, json_t *counters, const char *method, bool keep, GError **error)
{
	json_t *counter;
	size_t i;

	json_array_foreach(counters, i, counter) {
		const json_t *number = json_object_get(counter, "counter");

		if (!number)
			continue;
		json_t *answer = engine_ask(client, method, json_pack("{s:O}", "counter", number), error);

		if (!answer)
			return false;
		if (keep)
			json_object_update(counter, answer);
		json_decref(answer);
	}
	return true;
}

json_t *counters_session(const json_t *counters)
{
	static const char *const members[] = {"tasks", "frequency-hz", "period", "unwinder"};
	json_t *events = json_array(), *session = json_pack("{s:o}", "events", events), *counter;
	size_t i;

	json_array_foreach(counters, i, counter)
		json_array_extend(events, json_object_get(counter, "events"));
	for (i = 0; i < G_N_ELEMENTS(members); i++)
		member_set(session, members[i], json_object_get(json_array_get(counters, 0), members[i]));
	return session;
}

void counters_print(const json_t *counters, bool estimate, FILE *to)
{
	const json_t *counter;
	size_t i;

	fprintf(to, "%20s  %-20s %s\n", "COUNT", "EVENT", estimate ? "KERNEL, USER, HYPERVISOR" : "COUNTED");
	json_array_foreach(counters, i, counter) {
		const json_t *modes = json_object_get(counter, "modes");
		const char *refused = member_text(counter, "error");
		double value = (double)member_number(counter, "value", 0);
		double enabled_ns = (double)member_number(counter, "enabled-ns", 0);
		double running_ns = (double)member_number(counter, "running-ns", 0);
		bool scaled = running_ns > 0 && running_ns < enabled_ns;
		g_autofree char *event = text_printable(member_text(counter, "event"));
		g_autofree char *why = refused ? text_printable(refused) : NULL;

		if (why) {
			fprintf(to, "%20s  %-20s %s\n", "-", event, why);
			continue;
		}
		fprintf(to, "%20.0f  %-20s", scaled ? value * enabled_ns / running_ns : value, event);
		if (modes && value > 0)
			fprintf(to, " %.1f %%, %.1f %%, %.1f %%\n",
			        100 * (double)member_number(modes, "kernel", 0) / value,
			        100 * (double)member_number(modes, "user", 0) / value,
			        100 * (double)member_number(modes, "hypervisor", 0) / value);
		else if (enabled_ns > 0)
			fprintf(to, " %.1f %% of the time%s\n", 100 * running_ns / enabled_ns,
			        scaled ? ", scaled to all of it" : "");
		else
			fputs(" never: nothing of it ran\n", to);
	}
}
