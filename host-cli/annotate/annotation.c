// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/annotation.h"

#include <stdlib.h>
#include <string.h>

#include "lib/profile/hash.h"
#include "ui/text.h"

#define NEAR_SLIPS_MAX 3u
#define NEAR_LISTED 5u

G_DEFINE_QUARK(vprof_annotation_error, annotation_error)

/* Samples of one instruction pointer; symbols are looked up once for each. */
struct spot {
	uint64_t ip;
	const struct mapping *mapping;
	enum profile_mode mode;
	uint64_t samples, period;
};

struct reading {
	struct annotation *annotation;
	GHashTable *spots; /* of struct spot, which are their own keys, owned */
};

static guint spot_hash(gconstpointer key)
{
	const struct spot *spot = key;

	return (guint)hash_mix(spot->ip ^ hash_mix((uintptr_t)spot->mapping ^ spot->mode));
}

static gboolean spot_equal(gconstpointer a, gconstpointer b)
{
	const struct spot *left = a, *right = b;

	return left->ip == right->ip && left->mapping == right->mapping && left->mode == right->mode;
}

static bool sample_read(const struct record_sample *sample, unsigned event, void *data)
{
	struct reading *reading = data;
	struct annotation *annotation = reading->annotation;
	struct spot key = {.ip = sample->ip, .mode = profile_mode_of(sample->misc)};
	struct spot *spot;

	if (event != 0)
		return true;
	key.mapping = names_mapping(annotation->input->names, key.mode, sample->pid, sample->ip, sample->time_ns);
	spot = g_hash_table_lookup(reading->spots, &key);
	if (!spot) {
		spot = g_memdup2(&key, sizeof(key));
		g_hash_table_add(reading->spots, spot);
	}
	spot->samples++;
	spot->period += sample->period;
	annotation->all_samples++;
	annotation->all_period += sample->period;
	return true;
}

/* A function that was sampled: where it starts tells functions of one name apart. */
struct function {
	const char *symbol, *module;
	enum profile_mode mode;
	const struct mapping *mapping;
	uint64_t start; /* address; byte of the file where a file is mapped */
	uint64_t samples, period;
	GArray *hits;
};

static void function_free(void *data)
{
	struct function *function = data;

	g_array_unref(function->hits);
	g_free(function);
}

static uint64_t function_start(const struct spot *spot, const struct place *place)
{
	uint64_t at = spot->mapping ? mapping_file_offset(spot->mapping, spot->ip) : spot->ip;

	return at - place->offset;
}

static struct function *function_get(GPtrArray *functions, const struct spot *spot, const struct place *place)
{
	uint64_t start = function_start(spot, place);
	struct function *function;

	for (guint i = 0; i < functions->len; i++) {
		function = g_ptr_array_index(functions, i);
		if (function->start == start && function->mode == spot->mode &&
		    strcmp(function->module, place->module) == 0)
			return function;
	}
	function = g_new0(struct function, 1);
	*function = (struct function){place->symbol, place->module, spot->mode, spot->mapping, start, 0, 0, NULL};
	function->hits = g_array_new(FALSE, FALSE, sizeof(struct annotation_hit));
	g_ptr_array_add(functions, function);
	return function;
}

static void function_add(struct function *function, const struct spot *spot, uint64_t offset)
{
	const struct annotation_hit hit = {offset, spot->samples, spot->period};

	g_array_append_val(function->hits, hit);
	function->samples += spot->samples;
	function->period += spot->period;
}

static int hits_compare(const void *a, const void *b)
{
	const struct annotation_hit *left = a, *right = b;

	return (left->offset > right->offset) - (left->offset < right->offset);
}

/* The functions of that name, their copies, and the names near it. */
struct search {
	const struct annotation_options *options;
	GPtrArray *functions; /* of struct function, owned */
	GPtrArray *copies;    /* the same: of functions of that name, under other names */
	GHashTable *near;     /* names; a set */
};

/* What GCC and Clang append to the name of a part or a variant of a function. A dot alone is in names of Go, too. */
static bool is_copy(const char *symbol, const char *of)
{
	static const char *const suffixes[] = {".part.", ".constprop.", ".isra.", ".cold", ".lto_priv.", ".llvm."};
	const size_t n = strlen(of);

	if (strncmp(symbol, of, n) != 0)
		return false;
	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++)
		if (g_str_has_prefix(symbol + n, suffixes[i]))
			return true;
	return false;
}

static void place_search(struct search *search, const struct spot *spot, const struct place *place)
{
	const struct annotation_options *options = search->options;
	const bool same = strcmp(place->symbol, options->symbol) == 0;

	if (!place->known)
		return;
	if (!same && !is_copy(place->symbol, options->symbol)) {
		if (slips_between(place->symbol, options->symbol) <= NEAR_SLIPS_MAX)
			g_hash_table_add(search->near, (gpointer)place->symbol);
	} else if (!options->module || strcmp(place->module, options->module) == 0) {
		function_add(function_get(same ? search->functions : search->copies, spot, place), spot, place->offset);
	}
}

static void spots_search(struct search *search, GHashTable *spots, struct resolver *resolver)
{
	GHashTableIter iterator;
	gpointer key;

	g_hash_table_iter_init(&iterator, spots);
	while (g_hash_table_iter_next(&iterator, &key, NULL)) {
		const struct spot *spot = key;
		struct place place;

		resolver_find(resolver, spot->mode, spot->ip, spot->mapping, &place);
		place_search(search, spot, &place);
	}
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void fail_without_samples(const struct search *search, GError **error)
{
	g_autofree char *symbol = text_printable(search->options->symbol);
	guint n = g_hash_table_size(search->near);
	g_autofree gpointer *names = g_hash_table_get_keys_as_array(search->near, NULL);
	GString *list = g_string_new(NULL);

	qsort(names, n, sizeof(*names), names_compare);
	for (guint i = 0; i < MIN(n, NEAR_LISTED); i++) {
		g_autofree char *name = text_printable(names[i]);

		g_string_append_printf(list, "%s%s", i == 0 ? " (did you mean " : ", ", name);
	}
	g_string_append(list, n != 0 ? "?)" : "");
	g_set_error(error, ANNOTATION_ERROR, ANNOTATION_ERROR_SYMBOL,
	            "no sample fell into a function %s%s%s%s; `vprof report` lists those with samples", symbol,
	            search->options->module ? " of " : "", search->options->module ? search->options->module : "",
	            list->str);
	g_string_free(list, TRUE);
}

/* The one with the most of the event. */
static bool function_choose(struct annotation *annotation, const struct search *search, GError **error)
{
	const GPtrArray *functions = search->functions->len != 0 ? search->functions : search->copies;
	const struct function *best = NULL;

	for (guint i = 0; i < functions->len; i++) {
		const struct function *function = g_ptr_array_index(functions, i);

		if (!best || function->period > best->period ||
		    (function->period == best->period && function->start < best->start))
			best = function;
	}
	if (!best) {
		fail_without_samples(search, error);
		return false;
	}
	annotation->symbol = g_strdup(best->symbol);
	annotation->is_copy = functions == search->copies;
	annotation->module = best->module;
	annotation->mode = best->mode;
	annotation->mapping = best->mapping;
	annotation->address = best->start;
	annotation->samples = best->samples;
	annotation->period = best->period;
	annotation->hits = g_array_ref(best->hits);
	annotation->n_others = functions->len - 1;
	g_array_sort(annotation->hits, hits_compare);
	return true;
}

static bool function_find(struct annotation *annotation, const struct annotation_options *options, GError **error)
{
	static const struct input_visitor visitor = {.sample = sample_read};
	struct reading reading = {annotation, g_hash_table_new_full(spot_hash, spot_equal, g_free, NULL)};
	struct search search = {
		.options = options,
		.functions = g_ptr_array_new_with_free_func(function_free),
		.copies = g_ptr_array_new_with_free_func(function_free),
		.near = g_hash_table_new(g_str_hash, g_str_equal),
	};
	bool found;

	input_walk(annotation->input, &visitor, &reading);
	spots_search(&search, reading.spots, annotation->input->resolver);
	found = function_choose(annotation, &search, error);
	g_hash_table_unref(reading.spots);
	g_hash_table_unref(search.near);
	g_ptr_array_unref(search.functions);
	g_ptr_array_unref(search.copies);
	return found;
}

struct annotation *annotation_new(struct input *input, const struct annotation_options *options, GError **error)
{
	struct annotation *annotation = g_new0(struct annotation, 1);

	annotation->input = input;
	if (recording_n_events(input->recording) != 0)
		annotation->event = recording_event(input->recording, 0)->name;
	if (function_find(annotation, options, error) && annotation_find_code(annotation, options, error))
		return annotation;
	annotation_free(annotation);
	return NULL;
}

void annotation_free(struct annotation *annotation)
{
	if (!annotation)
		return;
	g_clear_pointer(&annotation->hits, g_array_unref);
	g_clear_pointer(&annotation->instructions, g_array_unref);
	source_lines_free(annotation->lines);
	symtab_free(annotation->symtab);
	image_free(annotation->image);
	g_free(annotation->symbol);
	g_free(annotation);
}

struct annotation_hit annotation_hit_of(const struct annotation *annotation, guint i)
{
	const struct instruction *instruction = &g_array_index(annotation->instructions, struct instruction, i);
	struct annotation_hit sum = {.offset = instruction->offset};

	for (guint at = 0; at < annotation->hits->len; at++) {
		const struct annotation_hit *hit = &g_array_index(annotation->hits, struct annotation_hit, at);

		if (hit->offset >= instruction->offset && hit->offset - instruction->offset < instruction->bytes) {
			sum.samples += hit->samples;
			sum.period += hit->period;
		}
	}
	return sum;
}

char *annotation_target(const struct annotation *annotation, const struct instruction *instruction)
{
	const struct symbol *symbol =
		instruction->target != 0 ? symtab_find(annotation->symtab, instruction->target) : NULL;

	if (!symbol)
		return NULL;
	if (symbol->address == instruction->target)
		return g_strdup(symbol->name);
	return g_strdup_printf("%s+0x%" G_GINT64_MODIFIER "x", symbol->name, instruction->target - symbol->address);
}
