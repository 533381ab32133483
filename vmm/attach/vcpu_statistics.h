// SPDX-License-Identifier: BSD-2-Clause
/* What KVM counts of a vCPU, as QEMU hands it on (QMP query-stats, from QEMU 7.1 on). */
#ifndef VPROF_ATTACH_VCPU_STATISTICS_H
#define VPROF_ATTACH_VCPU_STATISTICS_H

#include <jansson.h>

#include "attach/monitor.h"
#include "guest/guest.h"

/*
 * The names of the running totals among them, as keys; the others are present values and peaks, of which no difference
 * can be told. From the answer to query-stats-schemas.
 */
GHashTable *vcpu_statistics_totals(const json_t *schemas);

/* Out of the answer to query-stats for one vCPU; returns how many. */
size_t vcpu_statistics_parse(const json_t *answer, GHashTable *totals,
                             struct guest_counter counters[GUEST_COUNTERS_MAX]);

/* Both asked for. NULL and 0 where there are none: TCG, an old QEMU. `path`: of the vCPU in QEMU's object tree. */
GHashTable *vcpu_statistics_open(struct monitor *monitor);
size_t vcpu_statistics_read(struct monitor *monitor, const char *path, GHashTable *totals,
                            struct guest_counter counters[GUEST_COUNTERS_MAX]);

#endif
