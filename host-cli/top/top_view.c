// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_view.h"

#include "reading/kvm_exits.h"
#include "reading/vcpu_clocks.h"
#include "ui/column_cell.h"
#include "ui/text.h"

/* Clocks and exits at the end of an interval, and what they are since its begin. */
static bool view_read_clocks(struct top_view *view, struct top_source *source, GError **error)
{
	json_t *clocks = top_source_clocks(source, error);

	if (!clocks)
		return false;
	view->n_vcpus = MIN(json_array_size(clocks), VCPU_CLOCKS_MAX);
	for (size_t i = 0; i < view->n_vcpus; i++) {
		struct vcpu_clocks now = vcpu_clocks_parse(json_array_get(clocks, i));

		view->vcpus[i] = vcpu_clocks_between(&view->readings[i], &now);
		view->readings[i] = now;
	}
	g_clear_pointer(&view->exits, g_array_unref);
	view->exits = exit_rows_between(view->clocks, clocks);
	g_clear_pointer(&view->kvm_exits, g_array_unref);
	view->kvm_exits = kvm_exit_rows(view->clocks, clocks, -1);
	json_decref(view->clocks);
	view->clocks = clocks;
	view->why_no_clocks = NULL;
	/* The engine of an attached guest reads none at all. */
	if (view->n_vcpus != 0 && view->readings[0].time.wall_ns == 0) {
		view->why_no_clocks = member_text(json_array_get(clocks, 0), "missing");
		view->n_vcpus = 0;
	}
	return true;
}

static bool view_read(struct top_view *view, struct top_source *source, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *statistics;
	int64_t now_us = g_get_monotonic_time();

	if (!view_read_clocks(view, source, error))
		return false;
	statistics = top_source_statistics(source, &why);
	if (why) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	json_decref(view->statistics);
	view->statistics = statistics;
	view->seconds = (double)(now_us - view->read_us) / G_USEC_PER_SEC;
	view->read_us = now_us;
	return true;
}

bool top_view_init(struct top_view *view, struct top_source *source, GError **error)
{
	memset(view, 0, sizeof(*view));
	view->source = source;
	return view_read(view, source, error);
}

void top_view_forget(struct top_view *view)
{
	g_clear_pointer(&view->table.rows, g_free);
	g_clear_pointer(&view->table.calls, g_free);
	view->table.n_rows = 0;
}

void top_view_choose(struct top_view *view, struct top_profile *profile, const struct top_choice *choice)
{
	top_view_forget(view);
	view->choice = *choice;
	top_profile_table(profile, choice->all, &choice->columns, &view->table);
}

bool top_view_next(struct top_view *view, struct top_source *source, struct top_profile *profile,
                   const struct top_choice *choice, GError **error)
{
	if (!view_read(view, source, error))
		return false;
	top_profile_next(profile);
	top_profile_ask_modules(profile, top_source_client(source));
	top_view_choose(view, profile, choice);
	return true;
}

void top_view_clear(struct top_view *view)
{
	top_view_forget(view);
	g_clear_pointer(&view->exits, g_array_unref);
	g_clear_pointer(&view->kvm_exits, g_array_unref);
	json_decref(g_steal_pointer(&view->clocks));
	json_decref(g_steal_pointer(&view->statistics));
}

static json_t *rows_json(const struct top_view *view, size_t rows_max)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < view->table.n_rows && (rows_max == 0 || i < rows_max); i++)
		json_array_append_new(rows, column_row_json(&view->choice.columns, &view->table.rows[i],
		                                            report_share(&view->table, &view->table.rows[i])));
	return rows;
}

json_t *top_view_json(const struct top_view *view, size_t rows_max)
{
	const struct recording_event *event = top_source_event(view->source);
	const json_t *session = top_source_session(view->source);
	const struct report report = {.percent_limit = 0};
	json_t *rate = json_object_get(session, "frequency-hz");
	json_t *clocks = view->n_vcpus != 0 ? vcpu_clocks_json(view->vcpus, view->n_vcpus) : json_null();

	return json_pack("{s:s, s:i, s:f, s:O, s:s, s:o, s:O?, s:I, s:o, s:o, s:o, s:o, s:O?, s:o, s:o}", "format",
	                 "vprof-top", "version", TOP_JSON_VERSION, "seconds", view->seconds, "guest",
	                 top_source_guest(view->source), "how", top_source_how(view->source), "event",
	                 text_json(event ? event->name : NULL), "frequency-hz", rate, "samples",
	                 (json_int_t)view->table.samples, "since-start", json_boolean(view->choice.all), "clocks",
	                 clocks, "exits", exit_rows_json(view->exits), "kvm-exits", kvm_exit_rows_json(view->kvm_exits),
	                 "statistics", view->statistics, "rows", rows_json(view, rows_max), "calls",
	                 report_calls_json(&report, &view->table));
}
