// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host_probe.h"
#include "pmu/x86/host.h"

json_t *host_probe_emulated_pmu(void)
{
	struct pmu_host_events events;
	json_t *hardware = json_array(), *all = json_array();

	pmu_host_probe(&events);
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		json_t *name = json_string(pmu_event_name((enum pmu_event)i));

		if (events.all >> i & 1)
			json_array_append(all, name);
		if (events.hardware >> i & 1)
			json_array_append(hardware, name);
		json_decref(name);
	}
	return json_pack("{s:o, s:o}", "events", all, "by-hardware", hardware);
}
