// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/comms.h"

#include <glib.h>

#include "lib/profile/timed_names.h"

struct comms {
	struct timed_names *names; /* by tid */
};

struct comms *comms_new(void)
{
	struct comms *comms = g_new0(struct comms, 1);

	comms->names = timed_names_new();
	return comms;
}

void comms_free(struct comms *comms)
{
	if (comms == NULL)
		return;
	timed_names_free(comms->names);
	g_free(comms);
}

void comms_add(struct comms *comms, uint32_t tid, uint64_t time_ns, const char *comm)
{
	timed_names_add(comms->names, tid, time_ns, comm);
}

static const char *name_default(struct comms *comms, uint32_t tid)
{
	g_autofree char *text = g_strdup_printf(":%d", (int32_t)tid);

	return timed_names_keep(comms->names, tid == 0 ? "swapper" : text);
}

const char *comms_find(struct comms *comms, uint32_t tid, uint64_t time_ns)
{
	const char *name = timed_names_find(comms->names, tid, time_ns);

	return name != NULL ? name : name_default(comms, tid);
}
