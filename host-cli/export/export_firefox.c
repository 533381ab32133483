// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Firefox Profiler's "processed" format (firefox-devtools/profiler, docs-developer/processed-profile-format.md and
 * src/types/profile.js, at version 49, which later versions of the site upgrade): a thread for each task of the guest,
 * tables by column.
 */
#include <jansson.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/text_table.h"
#include "ui/text.h"

#define PROCESSED_VERSION 49 /* of these tables */
#define GECKO_VERSION 24     /* of the format that they are made from in Firefox */
#define NONE (-1)            /* no prefix; no resource */
#define RESOURCE_LIBRARY 1

struct firefox_sample {
	uint64_t time_ns, period;
	int stack;
};

/* A stack is a frame and what called it; a frame is a function in a mode. */
struct thread {
	uint32_t pid, tid;
	const char *comm;
	struct text_table strings;
	GHashTable *functions, *stacks; /* struct pair -> index + 1 */
	GArray *function_pairs;         /* name and resource's name */
	GArray *stack_pairs;            /* frame and prefix; a frame is function * modes + mode */
	GArray *samples;                /* of struct firefox_sample */
};

struct pair {
	int a, b;
};

static guint pair_hash(gconstpointer key)
{
	const struct pair *pair = key;

	return (guint)pair->a * 2654435761u ^ (guint)pair->b;
}

static gboolean pair_equal(gconstpointer left, gconstpointer right)
{
	const struct pair *x = left, *y = right;

	return x->a == y->a && x->b == y->b;
}

static int string_index(struct thread *thread, const char *text)
{
	return (int)text_table_number(&thread->strings, text);
}

static int pair_index(GHashTable *table, GArray *list, int a, int b)
{
	const struct pair pair = {a, b};
	gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(table, &pair));

	if (number != 0)
		return (int)number - 1;
	g_array_append_val(list, pair);
	g_hash_table_insert(table, g_memdup2(&pair, sizeof(pair)), GSIZE_TO_POINTER(list->len));
	return (int)list->len - 1;
}

static GHashTable *pair_table(void)
{
	return g_hash_table_new_full(pair_hash, pair_equal, g_free, NULL);
}

static struct thread *thread_new(const struct record_sample *sample, const char *comm)
{
	struct thread *thread = g_new0(struct thread, 1);

	thread->pid = sample->pid;
	thread->tid = sample->tid;
	thread->comm = comm;
	text_table_init(&thread->strings);
	thread->functions = pair_table();
	thread->stacks = pair_table();
	thread->function_pairs = g_array_new(FALSE, FALSE, sizeof(struct pair));
	thread->stack_pairs = g_array_new(FALSE, FALSE, sizeof(struct pair));
	thread->samples = g_array_new(FALSE, FALSE, sizeof(struct firefox_sample));
	return thread;
}

static void thread_free(void *data)
{
	struct thread *thread = data;

	text_table_deinit(&thread->strings);
	g_hash_table_unref(thread->functions);
	g_hash_table_unref(thread->stacks);
	g_array_unref(thread->function_pairs);
	g_array_unref(thread->stack_pairs);
	g_array_unref(thread->samples);
	g_free(thread);
}

/* ---- reading ---- */

#define MODES 4 /* enum profile_mode */

static bool sample_take(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                        size_t n, void *data)
{
	GHashTable *threads = data;
	/* A task that has got another name is another one to look at. */
	g_autofree char *key = g_strdup_printf("%u %u %s", sample->pid, sample->tid, comm);
	struct thread *thread = g_hash_table_lookup(threads, key);
	struct firefox_sample taken = {.time_ns = sample->time_ns, .period = sample->period, .stack = NONE};

	if (!thread) {
		thread = thread_new(sample, comm);
		g_hash_table_insert(threads, g_steal_pointer(&key), thread);
	}
	for (size_t i = n; i-- > 0;) {
		int function = pair_index(thread->functions, thread->function_pairs,
		                          string_index(thread, frames[i].place.symbol),
		                          string_index(thread, frames[i].place.module));

		taken.stack = pair_index(thread->stacks, thread->stack_pairs, function * MODES + (int)frames[i].mode,
		                         taken.stack);
	}
	g_array_append_val(thread->samples, taken);
	return true;
}

/* ---- writing ---- */

static json_t *number_or_null(int number)
{
	return number == NONE ? json_null() : json_integer(number);
}

/* A column of n times the same. */
static json_t *column_of(size_t n, json_t *value)
{
	json_t *column = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append(column, value);
	json_decref(value);
	return column;
}

/* A frame of the table for each function and mode, whether or not a stack has it: then the two need no table. */
static json_t *frames_json(const struct thread *thread)
{
	const size_t n = (size_t)thread->function_pairs->len * MODES;
	json_t *functions = json_array(), *categories = json_array();

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(functions, json_integer((json_int_t)(i / MODES)));
		json_array_append_new(categories, json_integer((json_int_t)(i % MODES)));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "length", (json_int_t)n, "address",
	                 column_of(n, json_integer(-1)), "inlineDepth", column_of(n, json_integer(0)), "category",
	                 categories, "subcategory", column_of(n, json_integer(0)), "func", functions, "nativeSymbol",
	                 column_of(n, json_null()), "innerWindowID", column_of(n, json_null()), "implementation",
	                 column_of(n, json_null()), "line", column_of(n, json_null()), "column",
	                 column_of(n, json_null()));
}

/* Resources are the modules: one for each name that functions have. *resources: their table. */
static json_t *functions_json(const struct thread *thread, json_t **resources)
{
	g_autoptr(GHashTable) numbers = g_hash_table_new(NULL, NULL);
	json_t *names = json_array(), *resource = json_array(), *resource_names = json_array();
	const size_t n = thread->function_pairs->len;
	size_t n_resources;

	for (size_t i = 0; i < n; i++) {
		const struct pair *function = &g_array_index(thread->function_pairs, struct pair, i);
		gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(numbers, GINT_TO_POINTER(function->b)));

		if (number == 0) {
			number = g_hash_table_size(numbers) + 1;
			g_hash_table_insert(numbers, GINT_TO_POINTER(function->b), GSIZE_TO_POINTER(number));
			json_array_append_new(resource_names, json_integer(function->b));
		}
		json_array_append_new(names, json_integer(function->a));
		json_array_append_new(resource, json_integer((json_int_t)number - 1));
	}
	n_resources = json_array_size(resource_names);
	*resources = json_pack("{s:I, s:o, s:o, s:o, s:o}", "length", (json_int_t)n_resources, "lib",
	                       column_of(n_resources, json_null()), "name", resource_names, "host",
	                       column_of(n_resources, json_null()), "type",
	                       column_of(n_resources, json_integer(RESOURCE_LIBRARY)));
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "length", (json_int_t)n, "name", names, "isJS",
	                 column_of(n, json_false()), "relevantForJS", column_of(n, json_false()), "resource", resource,
	                 "fileName", column_of(n, json_null()), "lineNumber", column_of(n, json_null()), "columnNumber",
	                 column_of(n, json_null()));
}

static json_t *stacks_json(const struct thread *thread)
{
	json_t *frames = json_array(), *prefixes = json_array(), *categories = json_array();
	const size_t n = thread->stack_pairs->len;

	for (size_t i = 0; i < n; i++) {
		const struct pair *stack = &g_array_index(thread->stack_pairs, struct pair, i);

		json_array_append_new(frames, json_integer(stack->a));
		json_array_append_new(prefixes, number_or_null(stack->b));
		json_array_append_new(categories, json_integer(stack->a % MODES));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:o}", "length", (json_int_t)n, "frame", frames, "prefix", prefixes,
	                 "category", categories, "subcategory", column_of(n, json_integer(0)));
}

static int samples_compare(gconstpointer left, gconstpointer right)
{
	const struct firefox_sample *x = left, *y = right;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static double milliseconds(const struct export_profile *profile, uint64_t time_ns)
{
	return (double)(time_ns - profile->first_ns) / 1e6;
}

/* Of an event that is a clock, the period is the CPU time since the sample before: what the graph of a track shows. */
static json_t *samples_json(const struct export_profile *profile, const struct thread *thread)
{
	const bool is_clock = g_str_equal(profile->unit, "nanoseconds");
	json_t *stacks = json_array(), *times = json_array(), *weights = json_array();
	json_t *cpu = is_clock ? json_array() : NULL;

	g_array_sort(thread->samples, samples_compare);
	for (guint i = 0; i < thread->samples->len; i++) {
		const struct firefox_sample *sample = &g_array_index(thread->samples, struct firefox_sample, i);

		json_array_append_new(stacks, number_or_null(sample->stack));
		json_array_append_new(times, json_real(milliseconds(profile, sample->time_ns)));
		json_array_append_new(weights, json_integer(1));
		if (is_clock)
			json_array_append_new(cpu, json_integer((json_int_t)sample->period));
	}
	return json_pack("{s:I, s:o, s:o, s:o, s:s, s:o*}", "length", (json_int_t)thread->samples->len, "stack", stacks,
	                 "time", times, "weight", weights, "weightType", "samples", "threadCPUDelta", cpu);
}

static json_t *thread_json(const struct export_profile *profile, const struct thread *thread)
{
	json_t *texts = json_array(), *resources, *functions = functions_json(thread, &resources);
	g_autofree char *pid = g_strdup_printf("%d", (int32_t)thread->pid);

	for (guint i = 0; i < thread->strings.texts->len; i++)
		json_array_append_new(texts, text_json(g_ptr_array_index(thread->strings.texts, i)));
	return json_pack(
		"{s:o, s:s, s:i, s:o, s:b, s:s, s:f, s:n, s:f, s:n, s:[], s:o, s:o, s:o, s:o, s:o, s:o, s:{s:i, s:[], s:[], s:[], s:[]}, s:{s:i, s:[], s:[], s:[], s:[], s:[], s:[]}}",
		"name", text_json(thread->comm), "pid", pid, "tid", (int32_t)thread->tid, "processName",
		text_json(thread->comm), "isMainThread", thread->pid == thread->tid, "processType", "default",
		"processStartupTime", 0.0, "processShutdownTime", "registerTime", 0.0, "unregisterTime", "pausedRanges",
		"frameTable", frames_json(thread), "funcTable", functions, "resourceTable", resources, "stackTable",
		stacks_json(thread), "samples", samples_json(profile, thread), "stringArray", texts, "nativeSymbols",
		"length", 0, "address", "functionSize", "libIndex", "name", "markers", "length", 0, "category", "data",
		"endTime", "name", "phase", "startTime");
}

/* Categories are the modes, in their order. */
static json_t *categories_json(void)
{
	static const char *const colours[MODES] = {"orange", "green", "blue", "grey"};
	json_t *categories = json_array();

	for (int mode = 0; mode < MODES; mode++)
		json_array_append_new(categories,
		                      json_pack("{s:s, s:s, s:[s]}", "name", profile_mode_name((enum profile_mode)mode),
		                                "color", colours[mode], "subcategories", "Other"));
	return categories;
}

static json_t *meta_json(const struct export_profile *profile)
{
	const double interval_ms =
		profile->samples > 1 ? milliseconds(profile, profile->last_ns) / (double)profile->samples : 1;

	return json_pack(
		"{s:i, s:i, s:o, s:f, s:f, s:i, s:s, s:b, s:b, s:b, s:b, s:[], s:o, s:{s:s, s:s, s:s}, s:{s:i, s:[], s:[], s:[]}}",
		"preprocessedProfileVersion", PROCESSED_VERSION, "version", GECKO_VERSION, "product",
		text_json(profile->path), "startTime", 0.0, "interval", interval_ms, "processType", 0, "importedFrom",
		"vprof", "symbolicated", 1, "debug", 0, "usesOnlyOneStackType", 1, "sourceCodeIsNotOnSearchfox", 1,
		"markerSchema", "categories", categories_json(), "sampleUnits", "time", "ms", "eventDelay", "ms",
		"threadCPUDelta", "ns", "extensions", "length", 0, "baseURL", "id", "name");
}

static int threads_compare(gconstpointer left, gconstpointer right)
{
	const struct thread *x = *(struct thread *const *)left, *y = *(struct thread *const *)right;

	if (x->samples->len != y->samples->len)
		return x->samples->len > y->samples->len ? -1 : 1;
	return x->tid != y->tid ? (x->tid > y->tid) - (x->tid < y->tid) : g_strcmp0(x->comm, y->comm);
}

static json_t *threads_json(const struct export_profile *profile, GHashTable *threads)
{
	g_autoptr(GPtrArray) sorted = g_ptr_array_new();
	json_t *list = json_array();
	GHashTableIter iterator;
	gpointer thread;

	g_hash_table_iter_init(&iterator, threads);
	while (g_hash_table_iter_next(&iterator, NULL, &thread))
		g_ptr_array_add(sorted, thread);
	g_ptr_array_sort(sorted, threads_compare);
	for (guint i = 0; i < sorted->len; i++)
		json_array_append_new(list, thread_json(profile, g_ptr_array_index(sorted, i)));
	return list;
}

static bool firefox_write(const struct export_profile *profile, FILE *to, GError **error)
{
	GHashTable *threads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, thread_free);
	json_t *document;

	(void)error;
	export_samples_each(profile, sample_take, threads);
	document = json_pack("{s:o, s:[], s:[], s:[], s:[], s:o}", "meta", meta_json(profile), "libs", "pages",
	                     "profilerOverhead", "counters", "threads", threads_json(profile, threads));
	json_dumpf(document, to, JSON_COMPACT | JSON_REAL_PRECISION(12));
	fputc('\n', to);
	json_decref(document);
	g_hash_table_unref(threads);
	return true;
}

const struct exporter export_firefox = {
	.name = "firefox",
	.summary = "profiler.firefox.com: a track for each task",
	.by_sample = true,
	.write = firefox_write,
};
