// SPDX-License-Identifier: BSD-2-Clause
/* --pmu-filter: the events that a guest with KVM's PMU may count. */
#ifndef VPROF_KVM_PMU_FILTER_H
#define VPROF_KVM_PMU_FILTER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PMU_FILTER_EVENTS_MAX 300u /* KVM_PMU_EVENT_FILTER_MAX_EVENTS of x86-64 */

struct kvm_pmu_event_filter;

/*
 * A list of events that the guest may count ("cycles,r01c2", or with "allow:" before it), or may not ("deny:...").
 * Names are those of the architecture; see vm_arch_pmu_filter. Free with g_free. Errors: G_OPTION_ERROR.
 */
struct kvm_pmu_event_filter *pmu_filter_parse(const char *text, GError **error);

/* For an event without a name: rNNNN, hexadecimal. `names`: what else is expected, for the message. */
bool pmu_filter_raw(const char *event, const char *names, uint16_t *encoding, GError **error);

#endif
