// SPDX-License-Identifier: BSD-2-Clause
/* --pmu-filter: text to struct kvm_pmu_event_filter. */
#include <linux/kvm.h>
#include <string.h>

#include "kvm/vm_arch.h"
#include "pmu/host.h"

#define EVENTS_MAX 300u /* KVM_PMU_EVENT_FILTER_MAX_EVENTS */
#define RAW_MAX 0xffffu

static bool fail(GError **error, const char *event, const char *why)
{
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--pmu-filter: event \"%s\" %s", event, why);
	return false;
}

/* Its encoding, and the bit of the fixed counter that counts it, if one does. */
static bool parse_event(const char *text, uint64_t *encoding, uint32_t *fixed, GError **error)
{
	guint64 raw;

	*fixed = 0;
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		if (strcmp(text, pmu_event_name((enum pmu_event)i)) != 0)
			continue;
		*encoding = pmu_event_encoding((enum pmu_event)i);
		*fixed = pmu_event_fixed((enum pmu_event)i);
		return true;
	}
	if (text[0] != 'r' || !g_ascii_string_to_unsigned(text + 1, 16, 0, RAW_MAX, &raw, NULL))
		return fail(
			error, text,
			"is none; expected cycles, instructions, ref-cycles, cache-references, cache-misses, branches, branch-misses or rNNNN");
	*encoding = raw;
	return true;
}

static const char *strip_action(const char *text, uint32_t *action)
{
	static const struct {
		const char *prefix;
		uint32_t action;
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

struct kvm_pmu_event_filter *vm_pmu_filter_parse(const char *text, GError **error)
{
	uint32_t action, fixed;
	g_auto(GStrv) words = g_strsplit(strip_action(text, &action), ",", -1);
	size_t n = g_strv_length(words);

	if (n < 1 || n > EVENTS_MAX) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
		            "--pmu-filter: %zu events; KVM takes 1 to %u", n, EVENTS_MAX);
		return NULL;
	}
	struct kvm_pmu_event_filter *filter = g_malloc0(sizeof(*filter) + n * sizeof(filter->events[0]));
	filter->action = action;
	for (; filter->nevents < n; filter->nevents++) {
		uint64_t encoding;

		if (!parse_event(words[filter->nevents], &encoding, &fixed, error)) {
			g_free(filter);
			return NULL;
		}
		filter->events[filter->nevents] = encoding;
		filter->fixed_counter_bitmap |= fixed;
	}
	return filter;
}
