// SPDX-License-Identifier: BSD-2-Clause
#include "reading/phases.h"

#include <stdlib.h>
#include <string.h>

#include "ui/text.h"

#define LIST_MAX 12u

G_DEFINE_QUARK(vprof_phases_error, phases_error)

/* A phase that is known by its name, as the recording is read from its beginning. */
struct phase {
	GArray *spans;  /* of struct phase_span; the last one may be open */
	unsigned depth; /* begins without their ends */
};

struct phases {
	GHashTable *by_name; /* of struct phase */
	GPtrArray *names;    /* in the order in which they came; owned by the table */
};

static void phase_free(void *data)
{
	struct phase *phase = data;

	g_array_unref(phase->spans);
	g_free(phase);
}

static struct phase *phase_get(struct phases *phases, const char *name)
{
	struct phase *phase = g_hash_table_lookup(phases->by_name, name);
	char *key;

	if (phase)
		return phase;
	phase = g_new0(struct phase, 1);
	phase->spans = g_array_new(FALSE, FALSE, sizeof(struct phase_span));
	key = g_strdup(name);
	g_hash_table_insert(phases->by_name, key, phase);
	g_ptr_array_add(phases->names, key);
	return phase;
}

static void phase_begin(struct phase *phase, uint64_t time_ns)
{
	const struct phase_span span = {.begin_ns = time_ns, .end_ns = UINT64_MAX};

	if (phase->depth++ == 0)
		g_array_append_val(phase->spans, span);
}

/* An end without a begin says nothing. */
static void phase_end(struct phase *phase, uint64_t time_ns)
{
	if (phase && phase->depth != 0 && --phase->depth == 0)
		g_array_index(phase->spans, struct phase_span, phase->spans->len - 1).end_ns = time_ns;
}

static void phases_add_marks(struct phases *phases, const json_t *marks)
{
	const json_t *mark;
	size_t i;

	json_array_foreach(marks, i, mark) {
		const char *name = member_text(mark, "name"), *kind = member_text(mark, "kind");
		uint64_t time_ns = member_number(mark, "time-ns", 0);

		if (!name || !kind)
			continue;
		if (strcmp(kind, "begin") == 0)
			phase_begin(phase_get(phases, name), time_ns);
		else
			phase_end(g_hash_table_lookup(phases->by_name, name), time_ns);
	}
}

static void phases_add_port(struct phases *phases, const json_t *writes)
{
	struct phase *current = NULL;
	const json_t *write;
	size_t i;

	json_array_foreach(writes, i, write) {
		uint64_t time_ns = member_number(write, "time-ns", 0);
		char name[8];

		g_snprintf(name, sizeof(name), "0x%02x", (unsigned)(member_number(write, "value", 0) & UINT8_MAX));
		phase_end(current, time_ns);
		current = phase_get(phases, name);
		phase_begin(current, time_ns);
	}
}

static void phases_init(struct phases *phases, const json_t *description)
{
	phases->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, phase_free);
	phases->names = g_ptr_array_new();
	phases_add_marks(phases, json_object_get(description, "marks"));
	phases_add_port(phases, json_object_get(description, "phases"));
}

static void phases_deinit(struct phases *phases)
{
	g_ptr_array_unref(phases->names);
	g_hash_table_unref(phases->by_name);
}

static int span_compare(const void *a, const void *b)
{
	const struct phase_span *left = a, *right = b;

	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

static GArray *spans_merge(GArray *spans)
{
	guint n = 0;

	g_array_sort(spans, span_compare);
	for (guint i = 0; i < spans->len; i++) {
		const struct phase_span span = g_array_index(spans, struct phase_span, i);
		struct phase_span *last = n != 0 ? &g_array_index(spans, struct phase_span, n - 1) : NULL;

		if (last && span.begin_ns <= last->end_ns)
			last->end_ns = MAX(last->end_ns, span.end_ns);
		else
			g_array_index(spans, struct phase_span, n++) = span;
	}
	return g_array_set_size(spans, n);
}

GArray *phases_find(const json_t *description, const char *pattern, GError **error)
{
	GArray *spans = g_array_new(FALSE, FALSE, sizeof(struct phase_span));
	struct phases phases;

	phases_init(&phases, description);
	for (guint i = 0; i < phases.names->len; i++) {
		const char *name = g_ptr_array_index(phases.names, i);
		const struct phase *phase = g_hash_table_lookup(phases.by_name, name);

		if (g_pattern_match_simple(pattern, name))
			g_array_append_vals(spans, phase->spans->data, phase->spans->len);
	}
	phases_deinit(&phases);
	if (spans->len != 0)
		return spans_merge(spans);

	g_autofree char *list = phases_list(description), *printable = text_printable(list);

	g_array_unref(spans);
	g_set_error(error, PHASES_ERROR, PHASES_ERROR_NONE, "there is no phase \"%s\"; the recording has %s", pattern,
	            list ? printable : "none");
	return NULL;
}

static void phase_named_free(void *data)
{
	struct phase_named *named = data;

	g_array_unref(named->spans);
	g_free(named->name);
	g_free(named);
}

GPtrArray *phases_all(const json_t *description)
{
	GPtrArray *all = g_ptr_array_new_with_free_func(phase_named_free);
	struct phases phases;

	phases_init(&phases, description);
	for (guint i = 0; i < phases.names->len; i++) {
		const char *name = g_ptr_array_index(phases.names, i);
		const struct phase *phase = g_hash_table_lookup(phases.by_name, name);
		struct phase_named *named = g_new(struct phase_named, 1);

		named->name = g_strdup(name);
		named->spans = spans_merge(g_array_ref(phase->spans));
		g_ptr_array_add(all, named);
	}
	phases_deinit(&phases);
	return all;
}

static int time_compare(const void *key, const void *element)
{
	const uint64_t *time_ns = key;
	const struct phase_span *span = element;

	return *time_ns < span->begin_ns ? -1 : *time_ns >= span->end_ns;
}

bool phases_hold(const GArray *spans, uint64_t time_ns)
{
	return bsearch(&time_ns, spans->data, spans->len, sizeof(struct phase_span), time_compare) != NULL;
}

char *phases_list(const json_t *description)
{
	GString *list = g_string_new(NULL);
	struct phases phases;
	guint n;

	phases_init(&phases, description);
	n = phases.names->len;
	for (guint i = 0; i < MIN(n, LIST_MAX); i++)
		g_string_append_printf(list, "%s%s", i != 0 ? ", " : "", (char *)g_ptr_array_index(phases.names, i));
	if (n > LIST_MAX)
		g_string_append_printf(list, " and %u more", n - LIST_MAX);
	phases_deinit(&phases);
	return g_string_free(list, n == 0);
}
