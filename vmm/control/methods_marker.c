// SPDX-License-Identifier: BSD-2-Clause
/* marker-add: phases that somebody outside the guest knows of. */
#include <time.h>

#include "control/control_priv.h"

const char *const control_marker_kinds[] = {"begin", "end", NULL};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

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
	json_int_t time_ns = (json_int_t)now_ns();

	if (!name_check(name, error))
		return NULL;
	control_server_event(call->server, VPROF_EVENT_MARKER,
	                     json_pack("{s:s, s:s, s:I}", "name", name, "kind", kind, "time-ns", time_ns));
	return json_pack("{s:I}", "time-ns", time_ns);
}
