// SPDX-License-Identifier: BSD-2-Clause
/* The marks of clients, for the marker probes of all sets. */
#include <fnmatch.h>

#include "sample/probe_priv.h"

/* A mark on its way to the thread of the vCPU that the event is of. */
struct mark {
	struct probe *probe;
	uint64_t arguments[PROBE_ARGUMENTS_MAX];
};

static void mark_on_vcpu(void *data)
{
	const struct mark *mark = data;
	probe_event_mark(mark->probe, 0, mark->arguments);
}

static bool wants(const struct probe *probe, const char *name)
{
	return g_str_equal(probe->spec.provider->name, "marker") && probe->spec.symbol[0] != '\0' &&
	       fnmatch(probe->spec.symbol, name, 0) == 0;
}

uint64_t probe_hub_mark(struct probe_hub *hub, const char *name, bool end)
{
	hub->marks++;
	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);
		for (guint j = 0; set->recording && j < set->probes->len; j++) {
			struct mark mark = {
				.probe = g_ptr_array_index(set->probes, j),
				.arguments = {hub->marks, end ? PROBE_MARK_END : PROBE_MARK_BEGIN},
			};
			if (wants(mark.probe, name))
				hub->guest->ops->run_on_vcpu(hub->guest, 0, mark_on_vcpu, &mark);
		}
	}
	return hub->marks;
}
