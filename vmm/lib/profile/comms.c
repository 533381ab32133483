// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/comms.h"

#include <glib.h>

struct name {
	uint64_t time_ns;
	uint32_t tid;
	guint number; /* in the file: of two at one time the later one counts */
	const char *comm;
};

struct comms {
	GArray *names; /* of struct name; by tid, time and number once `sorted` */
	gboolean sorted;
	GStringChunk *texts;
};

struct comms *comms_new(void)
{
	struct comms *comms = g_new0(struct comms, 1);

	comms->names = g_array_new(FALSE, FALSE, sizeof(struct name));
	comms->texts = g_string_chunk_new(4096);
	return comms;
}

void comms_free(struct comms *comms)
{
	if (comms == NULL)
		return;
	g_array_unref(comms->names);
	g_string_chunk_free(comms->texts);
	g_free(comms);
}

void comms_add(struct comms *comms, uint32_t tid, uint64_t time_ns, const char *comm)
{
	const struct name name = {
		.time_ns = time_ns,
		.tid = tid,
		.number = comms->names->len,
		.comm = g_string_chunk_insert_const(comms->texts, comm),
	};

	g_array_append_val(comms->names, name);
	comms->sorted = FALSE;
}

static int names_compare(const void *a, const void *b)
{
	const struct name *left = a, *right = b;

	if (left->tid != right->tid)
		return left->tid < right->tid ? -1 : 1;
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

static const char *name_default(struct comms *comms, uint32_t tid)
{
	g_autofree char *text = g_strdup_printf(":%d", (int32_t)tid);

	return g_string_chunk_insert_const(comms->texts, tid == 0 ? "swapper" : text);
}

const char *comms_find(struct comms *comms, uint32_t tid, uint64_t time_ns)
{
	const struct name key = {.tid = tid, .time_ns = time_ns, .number = G_MAXUINT};
	guint low = 0, high = comms->names->len;

	if (!comms->sorted) {
		g_array_sort(comms->names, names_compare);
		comms->sorted = TRUE;
	}
	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (names_compare(&g_array_index(comms->names, struct name, middle), &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || g_array_index(comms->names, struct name, low - 1).tid != tid)
		return name_default(comms, tid);
	return g_array_index(comms->names, struct name, low - 1).comm;
}
