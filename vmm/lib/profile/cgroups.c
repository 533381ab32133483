// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/cgroups.h"

#include <glib.h>

#include "lib/profile/timed_names.h"

struct cgroups {
	struct timed_names *paths; /* by id */
};

struct cgroups *cgroups_new(void)
{
	struct cgroups *cgroups = g_new0(struct cgroups, 1);

	cgroups->paths = timed_names_new();
	return cgroups;
}

void cgroups_free(struct cgroups *cgroups)
{
	if (cgroups == NULL)
		return;
	timed_names_free(cgroups->paths);
	g_free(cgroups);
}

void cgroups_add(struct cgroups *cgroups, const struct perf_event_header *record, size_t bytes, uint64_t time_ns)
{
	struct record_cgroup cgroup;

	if (record_cgroup_decode(record, bytes, &cgroup))
		timed_names_add(cgroups->paths, cgroup.cgroup, time_ns, cgroup.path);
}

const char *cgroups_find(struct cgroups *cgroups, const struct record_sample *sample)
{
	/* 0 is no cgroup's id, whatever a file calls so. */
	const char *path = sample->has_cgroup && sample->cgroup != 0
	                           ? timed_names_find(cgroups->paths, sample->cgroup, sample->time_ns)
	                           : NULL;

	return path != NULL ? path : "[unknown]";
}
