// SPDX-License-Identifier: BSD-2-Clause
/*
 * The Firefox Profiler's "processed" format (firefox-devtools/profiler, docs-developer/processed-profile-format.md and
 * src/types/profile.js, at version 49, which later versions of the site upgrade): a thread for each task of the guest,
 * tables by column.
 */
#include <jansson.h>
#include <stdlib.h>

#include "export/export.h"
#include "export/pair_table.h"
#include "export/text_table.h"
#include "ui/text.h"

#define PROCESSED_VERSION 49 /* of these tables */
#define GECKO_VERSION 24     /* of the format that they are made from in Firefox */
#define NONE (-1)            /* no prefix; no resource */
#define RESOURCE_LIBRARY 1
#define MARKER_INTERVAL 1
#define MARKER_TYPE "Phase" /* of data, and of the schema that says where it is shown */

/*
 * What the tables may take, with the document of one thread, which is about what the Firefox Profiler can load. The
 * costs are measured: a recording that is packed can hold ten thousand times its size.
 */
#define MEMORY_BYTES_MAX (UINT64_C(1) << 30)
#define THREAD_COST 4096u
#define FUNCTION_COST 1024u /* a frame for each mode */
#define STACK_COST 192u
#define SAMPLE_COST 160u

struct firefox_sample {
	uint64_t time_ns, period;
	int stack;
};

/* A stack is a frame and what called it; a frame is a function in a mode. */
struct thread {
	uint32_t pid, tid;
	const char *comm;
	struct text_table strings;
	struct pair_table functions; /* name and resource's name */
	struct pair_table stacks;    /* frame and prefix; a frame is function * modes + mode */
	GArray *samples;             /* of struct firefox_sample */
};

static int string_index(struct thread *thread, const char *text)
{
	return (int)text_table_number(&thread->strings, text);
}

static struct thread *thread_new(const struct record_sample *sample, const char *comm)
{
	struct thread *thread = g_new0(struct thread, 1);

	thread->pid = sample->pid;
	thread->tid = sample->tid;
	thread->comm = comm;
	text_table_init(&thread->strings);
	pair_table_init(&thread->functions);
	pair_table_init(&thread->stacks);
	thread->samples = g_array_new(FALSE, FALSE, sizeof(struct firefox_sample));
	return thread;
}

static void thread_free(void *data)
{
	struct thread *thread = data;

	text_table_deinit(&thread->strings);
	pair_table_deinit(&thread->functions);
	pair_table_deinit(&thread->stacks);
	g_array_unref(thread->samples);
	g_free(thread);
}

/* ---- reading ---- */

struct reading {
	GHashTable *threads; /* "PID TID COMM" -> struct thread * */
	uint64_t cost;       /* bytes, about */
};

#define MODES 4 /* enum profile_mode */

static uint64_t tables_cost(const struct thread *thread)
{
	return (uint64_t)FUNCTION_COST * thread->functions.pairs->len +
	       (uint64_t)STACK_COST * thread->stacks.pairs->len + (uint64_t)SAMPLE_COST * thread->samples->len;
}

static bool sample_take(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                        size_t n, void *data)
{
	struct reading *reading = data;
	/* A task that has got another name is another one to look at. */
	g_autofree char *key = g_strdup_printf("%u %u %s", sample->pid, sample->tid, comm);
	struct thread *thread = g_hash_table_lookup(reading->threads, key);
	struct firefox_sample taken = {.time_ns = sample->time_ns, .period = sample->period, .stack = NONE};

	if (!thread) {
		thread = thread_new(sample, comm);
		g_hash_table_insert(reading->threads, g_steal_pointer(&key), thread);
		reading->cost += THREAD_COST;
	}
	reading->cost -= tables_cost(thread);
	for (size_t i = n; i-- > 0;) {
		int module = string_index(thread, frames[i].place.module);
		int symbol = string_index(thread, frames[i].place.symbol);
		int function = pair_table_number(&thread->functions, symbol, module);

		taken.stack = pair_table_number(&thread->stacks, function * MODES + (int)frames[i].mode, taken.stack);
	}
	g_array_append_val(thread->samples, taken);
	reading->cost += tables_cost(thread);
	return reading->cost <= MEMORY_BYTES_MAX;
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
	const size_t n = (size_t)thread->functions.pairs->len * MODES;
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
	const size_t n = thread->functions.pairs->len;
	size_t n_resources;

	for (size_t i = 0; i < n; i++) {
		const struct pair *function = pair_table_pair(&thread->functions, (guint)i);
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
	const size_t n = thread->stacks.pairs->len;

	for (size_t i = 0; i < n; i++) {
		const struct pair *stack = pair_table_pair(&thread->stacks, (guint)i);

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

struct markers {
	const struct export_profile *profile;
	struct thread *thread;
	json_t *names, *starts, *ends, *data;
};

static void marker_add(const char *name, uint64_t begin_ns, uint64_t end_ns, void *data)
{
	const struct markers *markers = data;

	json_array_append_new(markers->names, json_integer(string_index(markers->thread, name)));
	json_array_append_new(markers->starts, json_real(milliseconds(markers->profile, begin_ns)));
	json_array_append_new(markers->ends, json_real(milliseconds(markers->profile, end_ns)));
	json_array_append_new(markers->data, json_pack("{s:s}", "type", MARKER_TYPE));
}

/* The phases of the guest, or none. */
static json_t *markers_json(const struct export_profile *profile, struct thread *thread, bool with_phases)
{
	struct markers markers = {profile, thread, json_array(), json_array(), json_array(), json_array()};
	size_t n;

	if (with_phases)
		export_phases_each(profile, marker_add, &markers);
	n = json_array_size(markers.names);
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "length", (json_int_t)n, "name", markers.names,
	                 "startTime", markers.starts, "endTime", markers.ends, "phase",
	                 column_of(n, json_integer(MARKER_INTERVAL)), "category", column_of(n, json_integer(MODES)),
	                 "data", markers.data);
}

static json_t *thread_json(const struct export_profile *profile, struct thread *thread, bool with_phases)
{
	json_t *texts = json_array(), *resources, *functions = functions_json(thread, &resources);
	json_t *markers = markers_json(profile, thread, with_phases);
	g_autofree char *pid = g_strdup_printf("%d", (int32_t)thread->pid);

	for (guint i = 0; i < thread->strings.texts->len; i++)
		json_array_append_new(texts, text_json(g_ptr_array_index(thread->strings.texts, i)));
	return json_pack(
		"{s:o, s:s, s:i, s:o, s:b, s:s, s:f, s:n, s:f, s:n, s:[], s:o, s:o, s:o, s:o, s:o, s:o, s:{s:i, s:[], s:[], s:[], s:[]}, s:o}",
		"name", text_json(thread->comm), "pid", pid, "tid", (int32_t)thread->tid, "processName",
		text_json(thread->comm), "isMainThread", thread->pid == thread->tid, "processType", "default",
		"processStartupTime", 0.0, "processShutdownTime", "registerTime", 0.0, "unregisterTime", "pausedRanges",
		"frameTable", frames_json(thread), "funcTable", functions, "resourceTable", resources, "stackTable",
		stacks_json(thread), "samples", samples_json(profile, thread), "stringArray", texts, "nativeSymbols",
		"length", 0, "address", "functionSize", "libIndex", "name", "markers", markers);
}

/* Categories are the modes, in their order, and what phases are. */
static json_t *categories_json(void)
{
	static const char *const colours[MODES] = {"orange", "green", "blue", "grey"};
	json_t *categories = json_array();

	for (int mode = 0; mode < MODES; mode++)
		json_array_append_new(categories,
		                      json_pack("{s:s, s:s, s:[s]}", "name", profile_mode_name((enum profile_mode)mode),
		                                "color", colours[mode], "subcategories", "Other"));
	json_array_append_new(categories, json_pack("{s:s, s:s, s:[s]}", "name", MARKER_TYPE, "color", "purple",
	                                            "subcategories", "Other"));
	return categories;
}

static json_t *meta_json(const struct export_profile *profile)
{
	const double interval_ms =
		profile->samples > 1 ? milliseconds(profile, profile->last_ns) / (double)profile->samples : 1;

	return json_pack(
		"{s:i, s:i, s:o, s:f, s:f, s:i, s:s, s:b, s:b, s:b, s:b, s:[{s:s, s:[s, s, s], s:[]}], s:o, s:{s:s, s:s, s:s}, s:{s:i, s:[], s:[], s:[]}}",
		"preprocessedProfileVersion", PROCESSED_VERSION, "version", GECKO_VERSION, "product",
		text_json(profile->path), "startTime", 0.0, "interval", interval_ms, "processType", 0, "importedFrom",
		"vprof", "symbolicated", 1, "debug", 0, "usesOnlyOneStackType", 1, "sourceCodeIsNotOnSearchfox", 1,
		"markerSchema", "name", MARKER_TYPE, "display", "marker-chart", "marker-table", "timeline-overview",
		"data", "categories", categories_json(), "sampleUnits", "time", "ms", "eventDelay", "ms",
		"threadCPUDelta", "ns", "extensions", "length", 0, "baseURL", "id", "name");
}

static int threads_compare(gconstpointer left, gconstpointer right)
{
	const struct thread *x = *(struct thread *const *)left, *y = *(struct thread *const *)right;

	if (x->samples->len != y->samples->len)
		return x->samples->len > y->samples->len ? -1 : 1;
	return x->tid != y->tid ? (x->tid > y->tid) - (x->tid < y->tid) : g_strcmp0(x->comm, y->comm);
}

static void part_write(json_t *value, FILE *to)
{
	json_write(value, JSON_COMPACT | JSON_REAL_PRECISION(12), to);
	json_decref(value);
}

/* One after the other: the documents of all of them would take many times the tables. */
static void threads_write(const struct export_profile *profile, GHashTable *threads, FILE *to)
{
	g_autoptr(GPtrArray) sorted = g_ptr_array_new();
	GHashTableIter iterator;
	gpointer thread;

	g_hash_table_iter_init(&iterator, threads);
	while (g_hash_table_iter_next(&iterator, NULL, &thread))
		g_ptr_array_add(sorted, thread);
	g_ptr_array_sort(sorted, threads_compare);
	for (guint i = 0; i < sorted->len; i++) {
		if (i > 0)
			fputc(',', to);
		/* Phases are the guest's; the first track is the one that is looked at. */
		part_write(thread_json(profile, g_ptr_array_index(sorted, i), i == 0), to);
	}
}

static bool firefox_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct reading reading = {.threads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, thread_free)};
	bool fits;

	export_samples_each(profile, sample_take, &reading);
	fits = reading.cost <= MEMORY_BYTES_MAX;
	if (fits) {
		fputs("{\"meta\":", to);
		part_write(meta_json(profile), to);
		fputs(",\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\"threads\":[", to);
		threads_write(profile, reading.threads, to);
		fputs("]}\n", to);
	} else {
		g_set_error(
			error, G_FILE_ERROR, G_FILE_ERROR_NOMEM,
			"cannot export %s: its tracks take more than 1 GiB, which the Firefox Profiler cannot load; --comm, --pid or --time selects a part",
			profile->path);
	}
	g_hash_table_unref(reading.threads);
	return fits;
}

const struct exporter export_firefox = {
	.name = "firefox",
	.summary = "profiler.firefox.com: a track for each task, phases as markers",
	.by_sample = true,
	.write = firefox_write,
};
