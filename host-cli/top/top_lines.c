// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_lines.h"

#include <string.h>

#include "reading/kvm_exits.h"
#include "reading/vcpu_clocks.h"
#include "ui/column_cell.h"
#include "ui/text.h"
#include "ui/units.h"

#define STRONG_SHARE 0.05
#define COLUMN_WIDTH_MAX 60
#define EXITS_MAX 6u
#define BAR_WIDTH_MIN 10u
#define BAR_TEXT_WIDTH 84u /* what stands beside the bar */
#define DEPTH_MAX 256u
#define PATH_PERCENT_MIN 0.5

/* ---- the head ---- */

static void title_add(GArray *lines, const struct top_view *view, bool paused)
{
	const json_t *guest = top_source_guest(view->source);
	const char *release = member_text(guest, "release");
	g_autofree char *memory = units_format_bytes(member_number(guest, "memory-bytes", 0));

	terminal_line_add(lines, TERMINAL_TITLE,
	                  g_strdup_printf("vprof top: %s, %" G_GUINT64_FORMAT " vCPUs, %s%s%s%s",
	                                  member_text(guest, "name"), member_number(guest, "vcpus", 0), memory,
	                                  release ? ", " : "", release ? release : "", paused ? "  PAUSED" : ""));
}

static void samples_add(GArray *lines, const struct top_view *view)
{
	const struct recording_event *event = top_source_event(view->source);
	uint64_t hz = member_number(top_source_session(view->source), "frequency-hz", 0);
	g_autoptr(GString) line = g_string_new(NULL);

	if (event) {
		g_string_append(line, event->name);
		if (hz != 0)
			g_string_append_printf(line, " %" G_GUINT64_FORMAT " Hz", hz);
		g_string_append_printf(line, ", %" G_GUINT64_FORMAT " samples ", view->table.samples);
		if (view->choice.all)
			g_string_append(line, "since the start; ");
		else
			g_string_append_printf(line, "in %.1f s; ", view->seconds);
	}
	g_string_append(line, top_source_how(view->source));
	terminal_line_add(lines, TERMINAL_PLAIN, g_strdup(line->str));
}

static unsigned cells_of(int64_t ns, uint64_t wall_ns, unsigned width)
{
	return wall_ns != 0 && ns > 0 ? (unsigned)((double)ns * width / (double)wall_ns + 0.5) : 0;
}

/* "####==++~~    ": guest, KVM, VMM, waiting for a host CPU; the rest is halted. */
static void bar_append(GString *line, const struct vcpu_time_parts *parts, unsigned width)
{
	const struct {
		char letter;
		uint64_t ns;
	} pieces[] = {{'#', parts->guest_ns}, {'=', parts->kvm_ns}, {'+', parts->vmm_ns}, {'~', parts->runnable_ns}};
	unsigned left = width;

	g_string_append_c(line, '[');
	for (size_t i = 0; i < G_N_ELEMENTS(pieces); i++) {
		unsigned n = MIN(cells_of((int64_t)pieces[i].ns, parts->wall_ns, width), left);

		left -= n;
		while (n-- != 0)
			g_string_append_c(line, pieces[i].letter);
	}
	g_string_append_printf(line, "%*s]", (int)left, "");
}

static double percent_of(uint64_t ns, uint64_t wall_ns)
{
	return wall_ns != 0 ? 100.0 * (double)ns / (double)wall_ns : 0;
}

static void bar_add(GArray *lines, const char *name, const struct vcpu_clocks *clocks, double seconds, unsigned width)
{
	const struct vcpu_time_parts parts = clocks->parts;
	g_autoptr(GString) line = g_string_new(NULL);

	g_string_append_printf(line, "vCPU %-3s ", name);
	bar_append(line, &parts, width > BAR_TEXT_WIDTH + BAR_WIDTH_MIN ? width - BAR_TEXT_WIDTH : BAR_WIDTH_MIN);
	g_string_append_printf(line, " %5.1f # guest %5.1f = KVM %5.1f + VMM %5.1f ~ waiting %9.0f exits/s",
	                       percent_of(parts.guest_ns, parts.wall_ns), percent_of(parts.kvm_ns, parts.wall_ns),
	                       percent_of(parts.vmm_ns, parts.wall_ns), percent_of(parts.runnable_ns, parts.wall_ns),
	                       seconds > 0 ? (double)clocks->exits / seconds : 0);
	terminal_line_add(lines, TERMINAL_BAR, g_strdup(line->str));
}

static void bars_add(GArray *lines, const struct top_view *view, bool each_vcpu, unsigned width)
{
	const struct vcpu_clocks sum = vcpu_clocks_sum(view->vcpus, view->n_vcpus);

	if (view->why_no_clocks)
		terminal_line_add(lines, TERMINAL_DIM, g_strdup_printf("vCPU time: %s", view->why_no_clocks));
	for (size_t i = 0; each_vcpu && i < view->n_vcpus; i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);

		bar_add(lines, name, &view->vcpus[i], view->seconds, width);
	}
	if (!each_vcpu && view->n_vcpus != 0)
		bar_add(lines, "all", &sum, view->seconds, width);
}

static void exits_add(GArray *lines, const struct top_view *view)
{
	g_autoptr(GString) line = g_string_new("exits/s:");

	if (view->n_vcpus == 0)
		return;
	const bool traced = view->kvm_exits->len > 0;
	const guint n = MIN(traced ? view->kvm_exits->len : view->exits->len, EXITS_MAX);

	for (guint i = 0; i < n; i++) {
		const struct kvm_exit_row *exit = &g_array_index(view->kvm_exits, struct kvm_exit_row, i);
		const struct exit_row *row = &g_array_index(view->exits, struct exit_row, i);
		const uint64_t count = traced ? exit->count : row->count;

		g_string_append_printf(line, "%s %.0f %s", i != 0 ? "," : "",
		                       view->seconds > 0 ? (double)count / view->seconds : 0,
		                       traced ? exit->name : row->name);
	}
	terminal_line_add(lines, TERMINAL_PLAIN, g_strdup_printf("%s%s", line->str, n == 0 ? " none" : ""));
}

/* Every way to lose a sample that the engine counts, where it happened. */
static void lost_add(GArray *lines, const struct top_view *view)
{
	static const struct {
		const char *member, *words;
	} causes[] = {
		{"dropbuf-sample", "ring full"},         {"throttled", "throttled or coalesced by the host"},
		{"quirk", "inside a host quirk's page"}, {"no-task", "of unknown tasks"},
		{"truncated", "call chains cut short"},
	};
	g_autoptr(GString) line = g_string_new(NULL);

	if (!view->statistics)
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(causes); i++) {
		uint64_t number = member_number(view->statistics, causes[i].member, 0);

		/* The first is always shown: users look for its 0. */
		if (number != 0 || i == 0)
			g_string_append_printf(line, "%s %" G_GUINT64_FORMAT " %s", i != 0 ? "," : "", number,
			                       causes[i].words);
	}
	terminal_line_add(lines, TERMINAL_PLAIN, g_strdup_printf("dropped in the session:%s", line->str));
}

void top_lines_head(GArray *lines, const struct top_view *view, bool paused, bool each_vcpu, unsigned width)
{
	title_add(lines, view, paused);
	samples_add(lines, view);
	bars_add(lines, view, each_vcpu, width);
	exits_add(lines, view);
	lost_add(lines, view);
	terminal_line_add(lines, TERMINAL_PLAIN, g_strdup(""));
}

/* ---- the table ---- */

void top_lines_table(GArray *lines, const struct top_view *view, size_t rows_max)
{
	const struct column_list *list = &view->choice.columns;
	const struct report_table *table = &view->table;
	size_t n = rows_max != 0 ? MIN(rows_max, table->n_rows) : table->n_rows;
	g_autoptr(GString) head = g_string_new(NULL);
	int widths[COLUMN_LIST_MAX];

	g_string_append_printf(head, "%7s  %9s", "SHARE", "SAMPLES");
	for (size_t i = 0; i < list->n; i++) {
		g_autofree char *name = g_ascii_strup(list->column[i]->header, -1);

		widths[i] = column_cells_width(list->column[i], table->rows, n, COLUMN_WIDTH_MAX);
		column_cell_append(head, list->column[i], name, widths[i], i + 1 == list->n);
	}
	terminal_line_add(lines, TERMINAL_HEAD, g_strdup(head->str));
	for (size_t row = 0; row < n; row++) {
		double share = report_share(table, &table->rows[row]);
		g_autoptr(GString) line = g_string_new(NULL);

		g_string_append_printf(line, "%6.2f%%  %9" G_GUINT64_FORMAT, share * 100, table->rows[row].samples);
		for (size_t i = 0; i < list->n; i++) {
			g_autofree char *text = column_cell_text(list->column[i], &table->rows[row]);

			column_cell_append(line, list->column[i], text, widths[i], i + 1 == list->n);
		}
		terminal_line_add(lines, share >= STRONG_SHARE ? TERMINAL_STRONG : TERMINAL_PLAIN, g_strdup(line->str));
	}
}

/* ---- the call tree ---- */

struct tree {
	GArray *lines;
	const struct report_table *table;
	GHashTable *folded;
	GPtrArray *paths;
};

static double share_percent(const struct report_table *table, uint64_t period, uint64_t samples)
{
	return 100 * report_share(table, &(struct profile_row){.period = period, .samples = samples});
}

static void nodes_add(const struct tree *tree, size_t first, const char *above, unsigned depth)
{
	for (size_t i = first; i != 0 && depth < DEPTH_MAX; i = tree->table->calls[i].next_sibling) {
		const struct call_node *node = &tree->table->calls[i];
		double total = share_percent(tree->table, node->period, node->samples);
		g_autofree char *path = NULL;
		bool folded;

		/* Children come largest first: after one that is too small there is no larger one. */
		if (total < PATH_PERCENT_MIN)
			break;
		path = g_strdup_printf("%s;%s", above, node->symbol);
		folded = g_hash_table_contains(tree->folded, path);
		g_ptr_array_add(tree->paths, g_strdup(path));
		terminal_line_add(tree->lines, total >= 100 * STRONG_SHARE ? TERMINAL_STRONG : TERMINAL_PLAIN,
		                  g_strdup_printf("%6.2f%%  %6.2f%%  %-6s  %*s%c %s", total,
		                                  share_percent(tree->table, node->self_period, node->self_samples),
		                                  profile_mode_name(node->mode), (int)(2 * depth), "",
		                                  node->first_child == 0 ? ' '
		                                  : folded               ? '+'
		                                                         : '-',
		                                  node->symbol));
		if (!folded)
			nodes_add(tree, node->first_child, path, depth + 1);
	}
}

void top_lines_calls(GArray *lines, const struct top_view *view, GHashTable *folded, GPtrArray *paths)
{
	const struct tree tree = {.lines = lines, .table = &view->table, .folded = folded, .paths = paths};

	terminal_line_add(lines, TERMINAL_HEAD,
	                  g_strdup_printf("%7s  %7s  %-6s  %s", "TOTAL", "SELF", "MODE", "CALLS"));
	if (view->table.calls)
		nodes_add(&tree, view->table.calls[0].first_child, "", 0);
}

/* ---- help ---- */

void top_lines_help(GArray *lines)
{
	static const char *const texts[] = {
		"q, F10           quit, or go back to all guests",
		"Ctrl-C           quit",
		"h, ?, F1         this help; any key leaves it",
		"space            show what there is now",
		"s, d             the next interval: 1, 2, 5 or 10 seconds",
		"p, Z             pause, and go on",
		"a                all samples since the start, or those of the last interval",
		"z                start afresh",
		"> <              group by function, task, task and function, module, vCPU",
		"t, F5            call tree, and back",
		"Enter            fold what the selected call leads to, and unfold it",
		"1                a bar for each vCPU, or one for all",
		"arrows, PgUp, PgDn, Home, End, j, k   select",
		"Ctrl-L           draw anew",
		NULL,
	};

	terminal_lines_keys(lines, texts);
	terminal_line_add(lines, TERMINAL_PLAIN, g_strdup(""));
	terminal_line_add(
		lines, TERMINAL_PLAIN,
		g_strdup("Bars: # guest, + the VMM handles an exit, ~ waiting for a host CPU, blank: halted"));
}
