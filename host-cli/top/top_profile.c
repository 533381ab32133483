// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_profile.h"

#include <string.h>
#include <vprof/recording.h>

#include "engine/engine_modules.h"
#include "lib/profile/call_tree.h"
#include "lib/profile/histogram.h"

#define LEARNED_MAX 1000000u /* records about tasks and mappings that are kept; then all begins anew */

struct sums {
	struct histogram *histogram;
	struct call_tree *calls;
	struct call_tree_room room;
};

struct top_profile {
	const struct symtab *symtab;
	struct user_symbols *user;
	struct resolver *resolver;
	struct names *names;
	struct histogram *frames; /* every address of a sample or its callers */
	GHashTable *asked;        /* of those in modules: what the engine was asked about */
	bool no_modules;          /* and had no answer */
	guint learned;
	bool has_tasks;
	struct sums interval, last, all;
};

static void sums_init(struct sums *sums, const struct top_profile *profile)
{
	sums->histogram = histogram_new(profile->names, COLUMN_KEYS_ALL);
	sums->room = (struct call_tree_room){0};
	sums->calls = call_tree_new(profile->names, &sums->room);
}

static void sums_deinit(struct sums *sums)
{
	histogram_free(sums->histogram);
	call_tree_free(sums->calls);
}

/* The tasks that the engine does not name are those that a recording names, too. */
static void names_init(struct top_profile *profile)
{
	profile->resolver = resolver_new_symtab(profile->symtab, NULL);
	resolver_set_user(profile->resolver, profile->user);
	profile->names = names_new();
	names_take_comm(profile->names, 0, 0, untrusted(profile->has_tasks ? "swapper" : "guest"));
	names_take_comm(profile->names, VPROF_PID_UNKNOWN, 0, untrusted("[unknown]"));
	profile->frames = histogram_new(profile->names, 0);
	profile->asked = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	profile->no_modules = false;
	profile->learned = 0;
}

static void names_deinit(struct top_profile *profile)
{
	resolver_free(profile->resolver);
	histogram_free(profile->frames);
	g_hash_table_unref(profile->asked);
	names_free(profile->names);
}

static void all_init(struct top_profile *profile)
{
	sums_init(&profile->interval, profile);
	sums_init(&profile->last, profile);
	sums_init(&profile->all, profile);
}

static void all_deinit(struct top_profile *profile)
{
	sums_deinit(&profile->interval);
	sums_deinit(&profile->last);
	sums_deinit(&profile->all);
}

struct top_profile *top_profile_new(const struct symtab *symtab, struct user_symbols *user)
{
	struct top_profile *profile = g_new0(struct top_profile, 1);

	profile->symtab = symtab;
	profile->user = user;
	names_init(profile);
	all_init(profile);
	return profile;
}

void top_profile_free(struct top_profile *profile)
{
	if (!profile)
		return;
	all_deinit(profile);
	names_deinit(profile);
	g_free(profile);
}

void top_profile_next(struct top_profile *profile)
{
	sums_deinit(&profile->last);
	profile->last = profile->interval;
	sums_init(&profile->interval, profile);
}

void top_profile_reset(struct top_profile *profile)
{
	all_deinit(profile);
	all_init(profile);
}

void top_profile_begin(struct top_profile *profile, bool has_tasks)
{
	profile->has_tasks = has_tasks;
	all_deinit(profile);
	names_deinit(profile);
	names_init(profile);
	all_init(profile);
}

bool top_profile_is_full(const struct top_profile *profile)
{
	return profile->learned > LEARNED_MAX || profile->all.room.cut != 0;
}

/* ---- records ---- */

typedef void record_visitor(struct top_profile *profile, const struct perf_event_header *record, size_t bytes,
                            const struct recording_event *event);

static void records_each(struct top_profile *profile, const GByteArray *records, const struct recording_event *event,
                         record_visitor *visit)
{
	const struct perf_event_header *record;

	for (size_t at = 0; at < records->len; at += record->size) {
		record = record_check(records->data + at, records->len - at);
		if (!record)
			return;
		visit(profile, record, record->size, event);
	}
}

static void record_learn(struct top_profile *profile, const struct perf_event_header *record, size_t bytes,
                         const struct recording_event *event)
{
	if (record->type == PERF_RECORD_SAMPLE)
		return;
	names_take(profile->names, record, bytes, event->attr.sample_type);
	profile->learned++;
}

static void record_count(struct top_profile *profile, const struct perf_event_header *record, size_t bytes,
                         const struct recording_event *event)
{
	struct record_sample sample;

	if (record->type != PERF_RECORD_SAMPLE ||
	    !record_sample_decode(record, bytes, event->attr.sample_type, &sample))
		return;
	for (size_t i = 0; i < event->n_ids; i++)
		if (event->ids[i] == sample.id) {
			histogram_add(profile->interval.histogram, &sample, 0);
			histogram_add(profile->all.histogram, &sample, 0);
			call_tree_add(profile->interval.calls, &sample);
			call_tree_add(profile->all.calls, &sample);
			if (!profile->no_modules)
				histogram_add_frames(profile->frames, &sample);
			return;
		}
}

void top_profile_add(struct top_profile *profile, const GByteArray *records, const struct recording_event *event)
{
	/* Names first: the record that names a sample may come later, from the ring of another vCPU. */
	records_each(profile, records, event, record_learn);
	records_each(profile, records, event, record_count);
}

static void module_symbol_learn(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	struct top_profile *profile = data;
	const struct mapping *mapping =
		names_mapping(profile->names, PROFILE_KERNEL, VPROF_PID_UNKNOWN, address, UINT64_MAX);

	if (mapping && strcmp(mapping->file->name, symbol->module) == 0)
		resolver_learn(profile->resolver, address, symbol->module, symbol->name,
		               mapping_file_offset(mapping, address) - symbol->address);
}

void top_profile_ask_modules(struct top_profile *profile, struct client *client)
{
	g_autoptr(GArray) addresses = NULL;

	if (profile->no_modules)
		return;
	addresses = module_addresses(profile->frames, profile->asked);
	profile->no_modules = !module_symbols_ask(client, addresses, module_symbol_learn, profile, NULL);
}

void top_profile_table(struct top_profile *profile, bool all, const struct column_list *list,
                       struct report_table *table)
{
	const struct sums *sums = all ? &profile->all : &profile->last;
	const char *const no_names[] = {""};
	size_t n_calls;

	*table = (struct report_table){
		.samples = histogram_samples(sums->histogram),
		.period = histogram_period(sums->histogram),
		.calls = call_tree_resolve(sums->calls, profile->resolver, &n_calls),
	};
	table->rows = histogram_rows(sums->histogram, list, profile->resolver, no_names, &table->n_rows);
}
