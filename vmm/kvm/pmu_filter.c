// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/pmu_filter.h"

#include <linux/kvm.h>
#include <string.h>

#include "kvm/vm_arch.h"

static const char *strip_action(const char *text, uint8_t *action)
{
	static const struct {
		const char *prefix;
		uint8_t action;
	} actions[] = {{"allow:", KVM_PMU_EVENT_ALLOW}, {"deny:", KVM_PMU_EVENT_DENY}};
	*action = KVM_PMU_EVENT_ALLOW;
	for (size_t i = 0; i < G_N_ELEMENTS(actions); i++) {
		if (!g_str_has_prefix(text, actions[i].prefix))
			continue;
		*action = actions[i].action;
		return text + strlen(actions[i].prefix);
	}
	return text;
}

struct kvm_pmu_event_filter *pmu_filter_parse(const char *text, GError **error)
{
	uint8_t action;
	g_auto(GStrv) events = g_strsplit(strip_action(text, &action), ",", -1);
	const size_t n = g_strv_length(events);

	if (n >= 1 && n <= PMU_FILTER_EVENTS_MAX)
		return vm_arch_pmu_filter(action, (const char *const *)events, n, error);
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--pmu-filter: %zu events; KVM takes 1 to %u", n,
	            PMU_FILTER_EVENTS_MAX);
	return NULL;
}

bool pmu_filter_raw(const char *event, const char *names, uint16_t *encoding, GError **error)
{
	guint64 raw;

	if (event[0] != 'r' || !g_ascii_string_to_unsigned(event + 1, 16, 0, UINT16_MAX, &raw, NULL)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
		            "--pmu-filter: event \"%s\" is none; expected %s or rNNNN", event, names);
		return false;
	}
	*encoding = (uint16_t)raw;
	return true;
}
