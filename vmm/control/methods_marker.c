// SPDX-License-Identifier: BSD-2-Clause
/* marker-add: phases that somebody outside the guest knows of. */

#include <vprof/agent.h>

#include "control/events.h"
#include "control/method_priv.h"
#include "lib/record/clock.h"
#include "sample/probe.h"

static const char *const kinds[] = {"begin", "end", NULL};

const struct method_argument marker_add_arguments[] = {
	{"name", "of the phase", ARGUMENT_STRING, .min = 1, .max = VPROF_AGENT_NAME_BYTES_MAX},
	{"kind", "whether it begins or ends", ARGUMENT_STRING, .choices = kinds},
	{0},
};

/* It goes to terminals and into lists of names. */
static bool name_check(const char *name, GError **error)
{
	for (const char *at = name; *at; at++) {
		if (!g_ascii_iscntrl(*at))
			continue;
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "argument \"name\" of marker-add has a control character in it");
		return false;
	}
	return true;
}

json_t *method_marker_add(struct control_call *call, GError **error)
{
	const char *name = json_string_value(json_object_get(call->arguments, "name"));
	const char *kind = json_string_value(json_object_get(call->arguments, "kind"));
	json_int_t time_ns = (json_int_t)clock_ns(CLOCK_MONOTONIC), number;

	if (!name_check(name, error))
		return NULL;
	number = (json_int_t)probe_hub_mark(call->server->probes, name, g_str_equal(kind, "end"));
	control_server_event(
		call->server, VPROF_EVENT_MARKER,
		json_pack("{s:s, s:s, s:I, s:I}", "name", name, "kind", kind, "time-ns", time_ns, "number", number));
	return json_pack("{s:I, s:I}", "time-ns", time_ns, "number", number);
}
