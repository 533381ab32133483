// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "reading/recording_head.h"
#include "report/report.h"
#include "ui/column_cell.h"
#include "ui/text.h"

#define STRONG_SHARE 0.05 /* rows from here on stand out on a terminal */
#define COLUMN_WIDTH_MAX 80
static void head_print(const char *name, const char *text, void *to)
{
	fprintf(to, "# %-8s %s\n", name, text);
}

/* Of an event, where all the recordings agree; else NULL. */
static char *common_rate_text(const struct report *report, const struct report_table *table)
{
	char *rate = NULL;

	if (report->n_parts == 0)
		return recording_rate_text(report->input, table->event);
	for (size_t i = 0; i < report->n_parts; i++) {
		const struct report *part = report->parts[i];

		for (size_t t = 0; t < part->n_tables; t++) {
			if (strcmp(part->tables[t].event->name, table->event->name) != 0)
				continue;
			g_autofree char *own = recording_rate_text(part->input, part->tables[t].event);

			if (rate && strcmp(rate, own) != 0) {
				g_free(rate);
				return NULL;
			}
			g_free(rate);
			rate = g_steal_pointer(&own);
		}
	}
	return rate;
}

static void table_print_title(const struct report *report, const struct report_table *table, FILE *to)
{
	g_autofree char *rate = NULL, *line = NULL, *name = NULL;

	fputs("#\n", to);
	if (!table->event)
		return;
	name = text_printable(table->event->name);
	rate = common_rate_text(report, table);
	line = g_strdup_printf("%s%s%s: %" G_GUINT64_FORMAT " samples", name, rate ? ", " : "", rate ? rate : "",
	                       table->samples);
	head_print("event", line, to);
}

static void lateness_print(const struct lateness *lateness, FILE *to)
{
	g_autofree char *line = g_strdup_printf(
		"from one sample to the next: median %.2f periods, 90 %% at most %.2f, 99 %% at most %.2f",
		lateness_quantile(lateness, 0.5), lateness_quantile(lateness, 0.9), lateness_quantile(lateness, 0.99));

	head_print("lateness", line, to);
}

static void table_print(const struct report *report, const struct report_table *table, FILE *to)
{
	const struct column_list *list = &report->columns;
	struct text_style style = text_style_for(to);
	g_autoptr(GString) head = g_string_new(NULL);
	int widths[COLUMN_LIST_MAX];

	table_print_title(report, table, to);
	if (table->lateness && table->lateness->samples > 0)
		lateness_print(table->lateness, to);
	for (size_t i = 0; i < list->n; i++) {
		widths[i] = column_cells_width(list->column[i], table->rows, table->n_rows, COLUMN_WIDTH_MAX);
		column_cell_append(head, list->column[i], list->column[i]->header, widths[i], i + 1 == list->n);
	}
	fprintf(to, "# %6s  %9s%s\n", "Share", "Samples", head->str);
	for (size_t row = 0; row < table->n_rows; row++) {
		double share = report_share(table, &table->rows[row]);
		bool strong = share >= STRONG_SHARE;
		g_autoptr(GString) cells = g_string_new(NULL);

		for (size_t i = 0; i < list->n; i++) {
			g_autofree char *text = column_cell_text(list->column[i], &table->rows[row]);

			column_cell_append(cells, list->column[i], text, widths[i], i + 1 == list->n);
		}
		fprintf(to, "%s%7.2f%%  %9" G_GUINT64_FORMAT "%s%s\n", strong ? style.strong : "", share * 100,
		        table->rows[row].samples, cells->str, strong ? style.plain : "");
	}
	if (table->n_left_out != 0)
		fprintf(to, "# %zu more rows\n", table->n_left_out);
	if (table->calls)
		report_print_calls(report, table, to);
}

static void head_print_all(const struct report *report, FILE *to)
{
	recording_head(report->input, &report->counts, head_print, to);
	report_print_time(report, to);
}

void report_print_text(const struct report *report, FILE *to)
{
	for (size_t i = 0; i < report->n_parts; i++) {
		if (i > 0)
			fputs("#\n", to);
		head_print_all(report->parts[i], to);
	}
	if (report->n_parts == 0)
		head_print_all(report, to);
	for (size_t i = 0; i < report->n_tables; i++)
		table_print(report, &report->tables[i], to);
}
