// SPDX-License-Identifier: BSD-2-Clause
#include "engine/counters.h"

#include "engine/engine_find.h"
#include "ui/text.h"

/* The arguments for one counter. Members that were not given are omitted, since not every mode takes them. */
static json_t *request_new(const char *event, const struct counters_kind *kind)
{
	json_t *request = json_pack("{s:o, s:s, s:b}", "event", text_json(event), "mode", kind->mode, "descendants",
	                            kind->descendants);

	if (kind->estimate)
		json_object_set_new(request, "estimate", json_true());
	if (kind->frequency_hz != 0)
		json_object_set_new(request, "frequency-hz", json_integer((json_int_t)kind->frequency_hz));
	if (kind->period != 0)
		json_object_set_new(request, "period", json_integer((json_int_t)kind->period));
	return request;
}

json_t *counters_allocate(struct client *client, char **events, const struct counters_kind *kind, GError **error)
{
	json_t *counters = json_array();

	for (char **event = events; *event; event++) {
		json_t *counter = engine_ask(client, "counter-allocate", request_new(*event, kind), error);

		if (!counter) {
			json_decref(counters);
			return NULL;
		}
		json_object_set_new(counter, "event", text_json(*event));
		json_array_append_new(counters, counter);
	}
	return counters;
}

bool counters_for_all(struct client *client, json_t *counters, const char *method, bool keep, GError **error)
{
	json_t *counter;
	size_t i;

	json_array_foreach(counters, i, counter) {
		json_t *answer = engine_ask(client, method,
		                            json_pack("{s:O}", "counter", json_object_get(counter, "counter")), error);

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
	static const char *const members[] = {"tasks", "frequency-hz", "period"};
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
		double value = (double)member_number(counter, "value", 0);
		double enabled_ns = (double)member_number(counter, "enabled-ns", 0);
		g_autofree char *event = text_printable(member_text(counter, "event"));

		fprintf(to, "%20.0f  %-20s", value, event);
		if (modes && value > 0)
			fprintf(to, " %.1f %%, %.1f %%, %.1f %%\n",
			        100 * (double)member_number(modes, "kernel", 0) / value,
			        100 * (double)member_number(modes, "user", 0) / value,
			        100 * (double)member_number(modes, "hypervisor", 0) / value);
		else if (enabled_ns > 0)
			fprintf(to, " %.1f %% of the time\n",
			        100 * (double)member_number(counter, "running-ns", 0) / enabled_ns);
		else
			fputs(" never: nothing of it ran\n", to);
	}
}
