// SPDX-License-Identifier: BSD-2-Clause
#include <linux/kvm.h>
#include <string.h>

#include "kvm/pmu_filter.h"
#include "kvm/vm_arch.h"
#include "pmu/x86/host.h"

/* Its encoding, and the bit of the fixed counter that counts it, if one does. */
static bool parse_event(const char *text, uint16_t *encoding, uint32_t *fixed, GError **error)
{
	*fixed = 0;
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		if (strcmp(text, pmu_event_name((enum pmu_event)i)) != 0)
			continue;
		*encoding = pmu_event_encoding((enum pmu_event)i);
		*fixed = pmu_event_fixed((enum pmu_event)i);
		return true;
	}
	return pmu_filter_raw(
		text, "cycles, instructions, ref-cycles, cache-references, cache-misses, branches, branch-misses",
		encoding, error);
}

struct kvm_pmu_event_filter *vm_arch_pmu_filter(uint8_t action, const char *const *events, size_t n, GError **error)
{
	struct kvm_pmu_event_filter *filter = g_malloc0(sizeof(*filter) + n * sizeof(filter->events[0]));

	filter->action = action;
	for (; filter->nevents < n; filter->nevents++) {
		uint16_t encoding;
		uint32_t fixed;

		if (!parse_event(events[filter->nevents], &encoding, &fixed, error)) {
			g_free(filter);
			return NULL;
		}
		filter->events[filter->nevents] = encoding;
		filter->fixed_counter_bitmap |= fixed;
	}
	return filter;
}
