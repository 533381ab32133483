// SPDX-License-Identifier: BSD-2-Clause
/* The paths of the cgroups in a recording, by id and time: one has the path that PERF_RECORD_CGROUP gave it last. */
#ifndef VPROF_PROFILE_CGROUPS_H
#define VPROF_PROFILE_CGROUPS_H

#include <stddef.h>

#include "lib/record/record.h"

struct cgroups;

struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *cgroups);

/* What a record says; any other is nothing to it. All of them before the first cgroups_find. */
void cgroups_add(struct cgroups *cgroups, const struct perf_event_header *record, size_t bytes, uint64_t time_ns);

/*
 * The path of the sample's cgroup at its time, never NULL: "[unknown]" where that is not known. The same pointer for
 * the same path; lives as long as `cgroups`.
 */
const char *cgroups_find(struct cgroups *cgroups, const struct record_sample *sample);

#endif
