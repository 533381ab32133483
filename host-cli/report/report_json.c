// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"
#include "ui/column_cell.h"
#include "ui/text.h"

static json_t *lateness_json(const struct lateness *lateness)
{
	return json_pack("{s:f, s:f, s:f}", "median", lateness_quantile(lateness, 0.5), "p90",
	                 lateness_quantile(lateness, 0.9), "p99", lateness_quantile(lateness, 0.99));
}

static json_t *table_json(const struct report *report, const struct report_table *table)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < table->n_rows; i++)
		json_array_append_new(
			rows, column_row_json(&report->columns, &table->rows[i], report_share(table, &table->rows[i])));
	json_t *object =
		json_pack("{s:o, s:I, s:I, s:I, s:o}", "event", text_json(table->event ? table->event->name : NULL),
	                  "samples", (json_int_t)table->samples, "period", (json_int_t)table->period, "rows-left-out",
	                  (json_int_t)table->n_left_out, "rows", rows);

	if (table->calls)
		json_object_set_new(object, "calls", report_calls_json(report, table));
	if (table->lateness && table->lateness->samples > 0)
		json_object_set_new(object, "lateness", lateness_json(table->lateness));
	return object;
}

/* A member of the description, or null. */
static json_t *described(const struct report *report, const char *name)
{
	json_t *value = json_object_get(report->input->description, name);

	return value ? json_incref(value) : json_null();
}

/* Samples with a call chain, by the reason why it ends. */
static json_t *chain_ends_json(const uint64_t counts[VPROF_CHAIN_END_COUNT])
{
	json_t *ends = json_object();

#define X(id, name, text) json_object_set_new(ends, name, json_integer((json_int_t)counts[id]));
	VPROF_CHAIN_ENDS(X)
#undef X
	return ends;
}

static json_t *chain_parts_json(const struct report *report)
{
	return json_pack("{s:o, s:o}", "kernel", chain_ends_json(report->counts.kernel_chain_ends), "user",
	                 chain_ends_json(report->counts.user_chain_ends));
}

static json_t *recording_json(const struct report *report)
{
	const struct recording *recording = report->input->recording;
	g_autofree char *filter = report->input->filter ? filter_text(report->input->filter) : NULL;
	json_t *warnings = json_array();

	for (guint i = 0; i < report->input->warnings->len; i++)
		json_array_append_new(warnings, text_json(g_ptr_array_index(report->input->warnings, i)));
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}",
		"file", text_json(report->input->path), "cut-off", recording_cut_off(recording), "warnings", warnings,
		"guest", described(report, "guest"), "arch", arch_uname(recording_arch(recording)), "release",
		text_json(recording_release(recording)), "build-id", text_json(recording_kernel_build_id(recording)),
		"end", described(report, "end"), "statistics", described(report, "statistics"), "phases",
		described(report, "phases"), "marks", described(report, "marks"), "exec", described(report, "exec"),
		"phase", text_json(report->input->phase), "filter", text_json(filter), "missing",
		described(report, "missing"), "unwind-tables", described(report, "unwind-tables"), "time",
		report_time_json(report), "chain-ends", chain_parts_json(report), "samples",
		(json_int_t)report->counts.samples, "lost", (json_int_t)record_losses_samples(&report->input->losses),
		"lost-others", (json_int_t)record_losses_others(&report->input->losses), "first-ns",
		(json_int_t)report->counts.first_ns, "last-ns", (json_int_t)report->counts.last_ns);
}

void report_print_json(const struct report *report, FILE *to)
{
	json_t *tables = json_array(), *recordings = json_array();
	json_t *document;

	for (size_t i = 0; i < report->n_tables; i++)
		json_array_append_new(tables, table_json(report, &report->tables[i]));
	for (size_t i = 0; i < report->n_parts; i++)
		json_array_append_new(recordings, recording_json(report->parts[i]));
	document = json_pack("{s:s, s:i}", "format", "vprof-report", "version", REPORT_JSON_VERSION);
	if (report->n_parts == 0)
		json_object_set_new(document, "recording", recording_json(report));
	else
		json_object_set(document, "recordings", recordings);
	json_object_set_new(document, "tables", tables);
	json_decref(recordings);
	text_print_json(document, 6, to);
	json_decref(document);
}
