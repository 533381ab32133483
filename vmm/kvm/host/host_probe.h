// SPDX-License-Identifier: BSD-2-Clause
/* What this host can do, for `vprof doctor`. */
#ifndef VPROF_KVM_HOST_HOST_PROBE_H
#define VPROF_KVM_HOST_HOST_PROBE_H

#include <jansson.h>

/*
 * {"host": "vmx|svm|pvm|arm64|unknown", "kvm": {"usable", "error"?, "api-version", "vcpus-max", "capabilities":
 * [{"name", "required", "present", "purpose"}]}, "quirks": [...], "perf-event-paranoid": N|null}. New reference.
 */
json_t *host_probe(void);

/* Of host/x86 and host/arm64: {"events", "by-hardware"}, what a PMU that the VMM emulates can count. New reference. */
json_t *host_probe_emulated_pmu(void);

#endif
