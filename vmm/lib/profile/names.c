// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/names.h"

#include <glib.h>
#include <stdio.h>

/* One name of a thread or cgroup. */
struct name {
	uint64_t time_ns;
	uint64_t key;
	guint number; /* in the file: of two names at one time the later one counts */
	const char *text;
};

/* What threads, or cgroups, are called by time. */
struct timed_names {
	GArray *all; /* of struct name; by key, time and number once `sorted` */
	gboolean sorted;
};

struct names {
	struct mappings *mappings;
	struct timed_names comms;   /* by tid */
	struct timed_names cgroups; /* by id */
	GStringChunk *texts;        /* each text once */
	const char *unknown, *idle, *interrupt, *none;
};

/* Of others: as it is shown. */
static const char *untrusted_keep(struct names *names, struct untrusted_text text)
{
	g_autofree char *printable = untrusted_printable(text);

	return g_string_chunk_insert_const(names->texts, printable);
}

static const char *text_keep(struct names *names, const char *text)
{
	return g_string_chunk_insert_const(names->texts, text);
}

struct names *names_new(void)
{
	struct names *names = g_new0(struct names, 1);

	names->mappings = mappings_new();
	names->comms.all = g_array_new(FALSE, FALSE, sizeof(struct name));
	names->cgroups.all = g_array_new(FALSE, FALSE, sizeof(struct name));
	names->texts = g_string_chunk_new(4096);
	names->unknown = text_keep(names, "[unknown]");
	names->idle = text_keep(names, "swapper");
	names->interrupt = text_keep(names, "[interrupt]");
	names->none = text_keep(names, "[none]");
	return names;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	mappings_free(names->mappings);
	g_array_unref(names->comms.all);
	g_array_unref(names->cgroups.all);
	g_string_chunk_free(names->texts);
	g_free(names);
}

static void name_add(struct timed_names *to, uint64_t key, uint64_t time_ns, const char *text)
{
	const struct name name = {.time_ns = time_ns, .key = key, .number = to->all->len, .text = text};

	g_array_append_val(to->all, name);
	to->sorted = FALSE;
}

static int names_compare(const void *a, const void *b)
{
	const struct name *left = a, *right = b;

	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

/* The name of `key` at that time; NULL before the first. */
static const char *name_find(struct timed_names *in, uint64_t key, uint64_t time_ns)
{
	const struct name wanted = {.key = key, .time_ns = time_ns, .number = G_MAXUINT};
	guint low = 0, high = in->all->len;

	if (!in->sorted) {
		g_array_sort(in->all, names_compare);
		in->sorted = TRUE;
	}
	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (names_compare(&g_array_index(in->all, struct name, middle), &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || g_array_index(in->all, struct name, low - 1).key != key)
		return NULL;
	return g_array_index(in->all, struct name, low - 1).text;
}

void names_take_comm(struct names *names, uint32_t tid, uint64_t time_ns, struct untrusted_text comm)
{
	name_add(&names->comms, tid, time_ns, untrusted_keep(names, comm));
}

void names_take(struct names *names, const struct perf_event_header *record, size_t bytes, uint64_t sample_type)
{
	struct record_comm comm;
	struct record_cgroup cgroup;
	uint64_t time_ns = 0;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		record_time(record, bytes, sample_type, &time_ns);
		mappings_add(names->mappings, record, bytes, time_ns);
		break;
	case PERF_RECORD_COMM:
		record_time(record, bytes, sample_type, &time_ns);
		if (record_comm_decode(record, bytes, &comm))
			names_take_comm(names, comm.tid, time_ns, comm.comm);
		break;
	case PERF_RECORD_CGROUP:
		record_time(record, bytes, sample_type, &time_ns);
		if (record_cgroup_decode(record, bytes, &cgroup))
			name_add(&names->cgroups, cgroup.cgroup, time_ns, untrusted_keep(names, cgroup.path));
		break;
	default:
		break;
	}
}

static const char *comm_default(struct names *names, uint32_t tid)
{
	char text[sizeof(":-2147483648")];

	if (tid == 0)
		return names->idle;
	snprintf(text, sizeof(text), ":%d", (int32_t)tid);
	return text_keep(names, text);
}

const char *names_comm(struct names *names, uint32_t tid, uint64_t time_ns)
{
	const char *name = name_find(&names->comms, tid, time_ns);

	return name ? name : comm_default(names, tid);
}

const char *names_waker(struct names *names, const struct record_sample *sample)
{
	const struct vprof_wait wait = record_sample_wait(sample);
	const unsigned state = profile_state_of(sample->misc);

	if (wait.waker == VPROF_WAKER_TASK)
		return names_comm(names, wait.waker_tid, sample->time_ns);
	if (wait.waker == VPROF_WAKER_INTERRUPT)
		return names->interrupt;
	return state == VPROF_TASK_RUNNING || state == VPROF_TASK_RUNNABLE ? names->none : names->unknown;
}

const char *names_cgroup(struct names *names, const struct record_sample *sample)
{
	/* No cgroup has the id 0, whatever a file says. */
	const bool has_cgroup = sample->has_cgroup && sample->cgroup != 0;
	const char *path = has_cgroup ? name_find(&names->cgroups, sample->cgroup, sample->time_ns) : NULL;

	return path ? path : names->unknown;
}

const struct mapping *names_mapping(struct names *names, enum profile_mode mode, uint32_t pid, uint64_t ip,
                                    uint64_t time_ns)
{
	return mappings_find(names->mappings, mode, pid, ip, time_ns);
}
