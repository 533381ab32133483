// SPDX-License-Identifier: BSD-2-Clause
/* What this host can do, for `vprof doctor`. */
#ifndef VPROF_KVM_HOST_HOST_PROBE_H
#define VPROF_KVM_HOST_HOST_PROBE_H

#include <jansson.h>

/*
 * {"host": "vmx|svm|pvm|unknown", "kvm": {"usable", "error"?, "api-version", "vcpus-max", "capabilities": [{"name",
 * "required", "present", "purpose"}]}, "quirks": [...], "perf-event-paranoid": N|null}. New reference.
 */
json_t *host_probe(void);

#endif
