// SPDX-License-Identifier: BSD-2-Clause
/* Markers of clients become events of the marker probes of all sets. */
#include <fnmatch.h>

#include "probe/probe_priv.h"

/* A call on the thread of the vCPU that the event belongs to. */
struct marker_call {
	struct probe *probe;
	uint64_t arguments[PROBE_ARGUMENTS_MAX];
};

static void marker_on_vcpu(void *data)
{
	const struct marker_call *call = data;

	probe_event_marker(call->probe, 0, call->arguments);
}

static bool wants(const struct probe *probe, const char *name)
{
	return probe->spec.kind == PROBE_MARKER && probe->spec.symbol[0] != '\0' &&
	       fnmatch(probe->spec.symbol, name, 0) == 0;
}

uint64_t probe_hub_add_marker(struct probe_hub *hub, const char *name, bool end)
{
	hub->markers++;
	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);

		for (guint j = 0; set->recording && j < set->probes->len; j++) {
			struct marker_call call = {
				.probe = g_ptr_array_index(set->probes, j),
				.arguments = {hub->markers, end ? PROBE_MARKER_END : PROBE_MARKER_BEGIN},
			};

			if (wants(call.probe, name))
				hub->guest->ops->run_on_vcpu(hub->guest, 0, marker_on_vcpu, &call);
		}
	}
	return hub->markers;
}
