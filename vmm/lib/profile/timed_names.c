// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/timed_names.h"

#include <glib.h>

struct name {
	uint64_t time_ns;
	uint64_t key;
	guint number; /* in the file: of two at one time the later one counts */
	const char *text;
};

struct timed_names {
	GArray *all; /* of struct name; by key, time and number once `sorted` */
	gboolean sorted;
	GStringChunk *texts;
};

struct timed_names *timed_names_new(void)
{
	struct timed_names *names = g_new0(struct timed_names, 1);

	names->all = g_array_new(FALSE, FALSE, sizeof(struct name));
	names->texts = g_string_chunk_new(4096);
	return names;
}

void timed_names_free(struct timed_names *names)
{
	if (names == NULL)
		return;
	g_array_unref(names->all);
	g_string_chunk_free(names->texts);
	g_free(names);
}

const char *timed_names_keep(struct timed_names *names, const char *text)
{
	return g_string_chunk_insert_const(names->texts, text);
}

void timed_names_add(struct timed_names *names, uint64_t key, uint64_t time_ns, const char *text)
{
	const struct name name = {
		.time_ns = time_ns,
		.key = key,
		.number = names->all->len,
		.text = timed_names_keep(names, text),
	};

	g_array_append_val(names->all, name);
	names->sorted = FALSE;
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

const char *timed_names_find(struct timed_names *names, uint64_t key, uint64_t time_ns)
{
	const struct name wanted = {.key = key, .time_ns = time_ns, .number = G_MAXUINT};
	guint low = 0, high = names->all->len;

	if (!names->sorted) {
		g_array_sort(names->all, names_compare);
		names->sorted = TRUE;
	}
	while (low < high) {
		guint middle = low + (high - low) / 2;

		if (names_compare(&g_array_index(names->all, struct name, middle), &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || g_array_index(names->all, struct name, low - 1).key != key)
		return NULL;
	return g_array_index(names->all, struct name, low - 1).text;
}
