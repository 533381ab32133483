// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"

#include <string.h>

#include "lib/profile/histogram.h"
#include "ui/text.h"

struct load {
	struct report *report;
	struct histogram **histograms; /* one for each table */
	struct call_tree **call_trees; /* one for each table; NULL elements: not asked for */
	struct call_tree_room room;
	bool one_table;
	uint64_t *periods; /* one for each table: recording_counted_period */
};

static bool load_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct load *load = data;
	struct report *report = load->report;
	const size_t table = load->one_table ? 0 : event;

	histogram_add(load->histograms[table], sample, event);
	if (load->call_trees[table])
		call_tree_add(load->call_trees[table], sample);
	if (report->tables[table].lateness)
		lateness_add(report->tables[table].lateness, sample->period, load->periods[table]);
	recording_counts_take(&report->counts, sample);
	return true;
}

double report_share(const struct report_table *table, const struct profile_row *row)
{
	if (table->period != 0)
		return (double)row->period / (double)table->period;
	return table->samples != 0 ? (double)row->samples / (double)table->samples : 0;
}

/* The rows are sorted by share: those within the limits come first. */
static void table_limit(struct report_table *table, const struct report_options *options)
{
	size_t n = table->n_rows;

	if (options->limit != 0 && n > options->limit)
		n = options->limit;
	while (n != 0 && report_share(table, &table->rows[n - 1]) * 100 < options->percent_limit)
		n--;
	table->n_left_out = table->n_rows - n;
	table->n_rows = n;
}

static const char **event_names(const struct recording *recording)
{
	size_t n = recording_n_events(recording);
	const char **names = g_new(const char *, n);

	for (size_t i = 0; i < n; i++)
		names[i] = recording_event(recording, i)->name;
	return names;
}

const char *report_domain(const struct input *input)
{
	const char *name = member_text(json_object_get(input->description, "guest"), "name");
	const char *slash = strrchr(input->path, '/');

	return name ? name : slash ? slash + 1 : input->path;
}

static void report_fill(struct report *report, const struct load *load, const struct report_options *options)
{
	const char **names = event_names(report->input->recording);

	for (size_t i = 0; i < report->n_tables; i++) {
		struct report_table *table = &report->tables[i];

		table->event = load->one_table ? NULL : recording_event(report->input->recording, i);
		table->samples = histogram_samples(load->histograms[i]);
		table->period = histogram_period(load->histograms[i]);
		table->rows = histogram_rows(load->histograms[i], &report->columns, report->input->resolver, names,
		                             &table->n_rows);
		for (size_t row = 0; row < table->n_rows; row++)
			table->rows[row].domain = report_domain(report->input);
		if (load->call_trees[i])
			table->calls = call_tree_resolve(load->call_trees[i], report->input->resolver, &table->n_calls);
		table_limit(table, options);
	}
	g_free(names);
}

/* Of each event with a period of its own. */
static void measure_lateness(struct load *load)
{
	const struct report *report = load->report;

	load->periods = g_new0(uint64_t, report->n_tables);
	for (size_t i = 0; !load->one_table && i < report->n_tables; i++) {
		load->periods[i] =
			recording_counted_period(report->input, recording_event(report->input->recording, i));
		if (load->periods[i] != 0)
			report->tables[i].lateness = g_new0(struct lateness, 1);
	}
}

static void table_clear(struct report_table *table)
{
	g_free(table->rows);
	g_free(table->calls);
	g_free(table->lateness);
}

/* Those of events that are left out would be empty. */
static void tables_choose(struct report *report)
{
	size_t n = 0;

	for (size_t i = 0; i < report->n_tables; i++)
		if (filter_chooses_event(report->input->filter, (unsigned)i))
			report->tables[n++] = report->tables[i];
		else
			table_clear(&report->tables[i]);
	report->n_tables = n;
}

struct report *report_new(struct input *input, const struct report_options *options)
{
	static const struct input_visitor visitor = {.sample = load_sample};
	struct report *report = g_new0(struct report, 1);
	struct load load = {.report = report, .one_table = column_list_has(&options->columns, "event")};

	report->input = input;
	report->columns = options->columns;
	report->percent_limit = options->percent_limit;
	report->n_tables = load.one_table ? 1 : recording_n_events(input->recording);
	report->tables = g_new0(struct report_table, report->n_tables);
	load.histograms = g_new(struct histogram *, report->n_tables);
	load.call_trees = g_new(struct call_tree *, report->n_tables);
	for (size_t i = 0; i < report->n_tables; i++) {
		load.histograms[i] = histogram_new(input->names, column_list_keys(&options->columns));
		load.call_trees[i] = options->call_tree ? call_tree_new(input->names, &load.room) : NULL;
	}
	measure_lateness(&load);
	input_walk(input, &visitor, &load);
	input_warn_cut(input, load.room.cut);
	report_fill(report, &load, options);
	for (size_t i = 0; i < report->n_tables; i++) {
		histogram_free(load.histograms[i]);
		call_tree_free(load.call_trees[i]);
	}
	g_free(load.histograms);
	g_free(load.call_trees);
	g_free(load.periods);
	if (!load.one_table && input->filter)
		tables_choose(report);
	return report;
}

/* The table for the event of `part`, made if it is new. */
static struct report_table *table_of(struct report *report, const struct report_table *part)
{
	for (size_t i = 0; i < report->n_tables; i++) {
		const struct recording_event *event = report->tables[i].event;

		if (event == part->event || (event && part->event && strcmp(event->name, part->event->name) == 0))
			return &report->tables[i];
	}
	report->tables = g_renew(struct report_table, report->tables, report->n_tables + 1);
	report->tables[report->n_tables] = (struct report_table){.event = part->event};
	return &report->tables[report->n_tables++];
}

static void table_append(struct report_table *table, const struct report_table *part)
{
	table->rows = g_renew(struct profile_row, table->rows, table->n_rows + part->n_rows);
	for (size_t i = 0; i < part->n_rows; i++)
		table->rows[table->n_rows++] = part->rows[i];
	table->samples += part->samples;
	table->period += part->period;
}

struct report *report_new_several(struct input *const *inputs, size_t n, const struct report_options *options)
{
	const struct report_options whole = {.columns = options->columns};
	struct report *report = g_new0(struct report, 1);

	report->input = inputs[0];
	report->columns = options->columns;
	report->percent_limit = options->percent_limit;
	report->parts = g_new(struct report *, n);
	for (size_t i = 0; i < n; i++) {
		struct report *part = report_new(inputs[i], &whole);

		report->parts[report->n_parts++] = part;
		for (size_t t = 0; t < part->n_tables; t++)
			table_append(table_of(report, &part->tables[t]), &part->tables[t]);
	}
	for (size_t t = 0; t < report->n_tables; t++) {
		struct report_table *table = &report->tables[t];

		table->n_rows = profile_rows_group(table->rows, table->n_rows, &report->columns);
		table_limit(table, options);
	}
	return report;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->n_parts; i++)
		report_free(report->parts[i]);
	g_free(report->parts);
	for (size_t i = 0; i < report->n_tables; i++)
		table_clear(&report->tables[i]);
	g_free(report->tables);
	g_free(report);
}
