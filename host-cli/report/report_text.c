// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "reading/phases.h"
#include "reading/vcpu_clocks.h"
#include "report/report.h"
#include "ui/column_cell.h"
#include "ui/text.h"
#include "ui/units.h"

#define NS_PER_S UINT64_C(1000000000)

#define STRONG_SHARE 0.05 /* rows from here on stand out on a terminal */
#define COLUMN_WIDTH_MAX 80
/* What a shell takes as it is. */
#define WORD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%"

static void head_print(FILE *to, const char *name, const char *text)
{
	g_autofree char *printable = text_printable(text);

	fprintf(to, "# %-8s %s\n", name, printable);
}

static void head_print_guest(const struct report *report, FILE *to)
{
	const json_t *guest = json_object_get(report->input->description, "guest");
	const char *name = member_text(guest, "name");
	g_autofree char *memory = NULL, *line = NULL;

	if (!json_is_object(guest))
		return;
	memory = units_format_bytes(member_number(guest, "memory-bytes", 0));
	line = g_strdup_printf("%s, %" G_GUINT64_FORMAT " vCPUs, %s", name ? name : "?",
	                       member_number(guest, "vcpus", 0), memory);
	head_print(to, "guest", line);
}

/* x86-64 goes without saying. */
static void head_print_arch(const struct report *report, FILE *to)
{
	const enum arch arch = recording_arch(report->input->recording);

	if (arch != ARCH_UNKNOWN && arch != ARCH_X86_64)
		head_print(to, "arch", arch_name(arch));
}

static void head_print_kernel(const struct report *report, FILE *to)
{
	const struct recording *recording = report->input->recording;
	const char *path = member_text(json_object_get(report->input->description, "guest"), "kernel");
	const char *release = recording_release(recording);
	const char *build_id = recording_kernel_build_id(recording);
	GString *line = g_string_new(path);

	if (release)
		g_string_append_printf(line, "%srelease %s", line->len != 0 ? ", " : "", release);
	if (build_id)
		g_string_append_printf(line, "%sbuild-id %s", line->len != 0 ? ", " : "", build_id);
	if (line->len != 0)
		head_print(to, "kernel", line->str);
	g_string_free(line, TRUE);
}

static void head_print_end(const struct report *report, FILE *to)
{
	const json_t *end = json_object_get(report->input->description, "end");
	const char *reason = member_text(end, "reason"), *message = member_text(end, "message");
	g_autofree char *line = NULL;

	if (!reason)
		return;
	line = g_strdup_printf("%s: %s", reason, message ? message : "");
	head_print(to, "end", line);
}

static void head_print_command(const struct report *report, FILE *to)
{
	const json_t *exec = json_object_get(report->input->description, "exec");
	const json_t *words = json_object_get(exec, "command"), *word;
	GString *line = g_string_new(NULL);
	size_t i;

	json_array_foreach(words, i, word) {
		g_autofree char *quoted = g_shell_quote(json_is_string(word) ? json_string_value(word) : "?");
		bool plain = strspn(quoted + 1, WORD_CHARACTERS) == strlen(quoted) - 2;

		g_string_append_printf(line, "%s%.*s", i != 0 ? " " : "", (int)(strlen(quoted) - (plain ? 2 : 0)),
		                       quoted + plain);
	}
	if (line->len != 0)
		head_print(to, "command", line->str);
	g_string_free(line, TRUE);
}

/* Which phases are shown, or which there are. */
static void head_print_phases(const struct report *report, FILE *to)
{
	const struct input *input = report->input;
	g_autofree char *list = phases_list(input->description), *line = NULL;

	if (!list)
		return;
	line = input->phase ? g_strdup_printf("%s, of %s", input->phase, list) : g_strdup(list);
	head_print(to, "phases", line);
}

/* So that a part is not taken for the whole. */
static void head_print_filter(const struct report *report, FILE *to)
{
	g_autofree char *text = report->input->filter ? filter_text(report->input->filter) : NULL;

	if (text)
		head_print(to, "only", text);
}

/* The losses in the recording, and every other way to lose or change a sample that the engine counted. */
static void head_print_samples(const struct report *report, FILE *to)
{
	static const struct {
		const char *member, *words;
	} causes[] = {
		{"throttled", "throttled or coalesced by the host"},
		{"quirk", "inside a host quirk's page, not guest code"},
		{"added", "made by hand, among them"},
	};
	const json_t *statistics = json_object_get(report->input->description, "statistics");
	const json_t *total = json_object_get(statistics, "total");
	GString *line = g_string_new(NULL);

	g_string_append_printf(line, "%" G_GUINT64_FORMAT " over %.3f s, lost %" G_GUINT64_FORMAT, report->samples,
	                       (double)(report->last_ns - report->first_ns) / 1e9, report->lost);
	for (size_t i = 0; i < G_N_ELEMENTS(causes); i++) {
		uint64_t number = member_number(total, causes[i].member, 0);

		if (number != 0)
			g_string_append_printf(line, "; %" G_GUINT64_FORMAT " %s", number, causes[i].words);
	}
	if (report->samples == 0 && !report->input->filter && !report->input->phase) {
		g_autofree char *idle = vcpu_clocks_sentence(json_object_get(report->input->description, "time"));

		g_string_append_printf(line, "%s%s", idle ? ": " : "", idle ? idle : "");
	}
	head_print(to, "samples", line->str);
	g_string_free(line, TRUE);
}

/* How many of the call chains are whole in that part, and where the others were cut. */
static void head_print_chain_part(const char *part, const uint64_t ends[VPROF_CHAIN_END_COUNT], FILE *to)
{
	static const char *const words[] = {
#define X(id, name, text) [id] = text,
		VPROF_CHAIN_ENDS(X)
#undef X
	};
	g_autoptr(GString) line = g_string_new(part);
	const char *gap = "";
	uint64_t n = 0;

	for (unsigned end = VPROF_CHAIN_WHOLE; end < VPROF_CHAIN_END_COUNT; end++)
		n += ends[end];
	for (unsigned end = VPROF_CHAIN_WHOLE; end < VPROF_CHAIN_END_COUNT; end++) {
		if (ends[end] == 0)
			continue;
		g_string_append_printf(line, "%s%.2f %% %s", gap, (double)ends[end] * 100 / (double)n, words[end]);
		gap = ", ";
	}
	if (n != 0)
		head_print(to, "chains", line->str);
}

/* What leads from a frame to its caller, in the words of the architecture's procedure call standard. */
static const char *frames_name(const struct report *report)
{
	return recording_arch(report->input->recording) == ARCH_ARM64 ? "frame records" : "frame pointers";
}

/* "user space, by unwind tables of 5 files (4 in initramfs, 1 in --symfs), else by frame pointers: ". New string. */
static char *user_unwinder(const struct report *report)
{
	const json_t *tables = json_object_get(report->input->description, "unwind-tables");
	const json_t *sources = json_object_get(tables, "sources"), *number;
	g_autoptr(GString) list = g_string_new(NULL);
	const char *source;
	json_int_t n = 0;

	json_object_foreach((json_t *)sources, source, number) {
		g_autofree char *name = text_printable(source);

		n += json_integer_value(number);
		g_string_append_printf(list, "%s%" JSON_INTEGER_FORMAT " in %s", list->len != 0 ? ", " : "",
		                       json_integer_value(number), name);
	}
	if (n == 0)
		return g_strdup_printf("user space, by %s: ", frames_name(report));
	return g_strdup_printf("user space, by unwind tables of %" JSON_INTEGER_FORMAT " file%s (%s), else by %s: ", n,
	                       n == 1 ? "" : "s", list->str, frames_name(report));
}

static void head_print_chains(const struct report *report, FILE *to)
{
	const char *unwinder = member_text(report->input->description, "unwinder");
	const char *way = unwinder && strcmp(unwinder, "orc") == 0 ? "ORC" : frames_name(report);
	g_autofree char *kernel = unwinder ? g_strdup_printf("kernel, by %s: ", way) : g_strdup("kernel: ");
	g_autofree char *user = user_unwinder(report);

	head_print_chain_part(kernel, report->kernel_chain_ends, to);
	head_print_chain_part(user, report->user_chain_ends, to);
}

struct count {
	const char *member, *words;
};

/* A line with those of the members that are not 0. */
static void head_print_counts(const char *title, const char *begin, const json_t *members, const struct count *counts,
                              size_t n, FILE *to)
{
	g_autoptr(GString) line = g_string_new(begin);
	const char *gap = "";

	for (size_t i = 0; i < n; i++) {
		uint64_t number = member_number(members, counts[i].member, 0);

		if (number == 0)
			continue;
		g_string_append_printf(line, "%s%" G_GUINT64_FORMAT " %s", gap, number, counts[i].words);
		gap = ", ";
	}
	if (*gap != '\0')
		head_print(to, title, line->str);
}

static const json_t *statistics_total(const struct report *report)
{
	return json_object_get(json_object_get(report->input->description, "statistics"), "total");
}

/* What became of searches for the stack pointer, on hosts that do not give it. */
static void head_print_stacks(const struct report *report, FILE *to)
{
	static const struct count results[] = {
		{"stack-found", "found"},
		{"stack-none", "without a chain"},
		{"stack-ambiguous", "ambiguous"},
		{"stack-switching", "in code that changes stacks"},
		{"stack-no-table", "in code whose calls are not known"},
		{"stack-work", "given up"},
	};

	head_print_counts("stacks", "searched in memory: ", statistics_total(report), results, G_N_ELEMENTS(results),
	                  to);
}

/* What is not in the unwind tables of programs and libraries. */
static void head_print_tables(const struct report *report, FILE *to)
{
	static const struct count left_out[] = {
		{"rows-of-no-form", "rows of a form that is not walked"},
		{"corrupt", "functions with corrupt entries"},
		{"missing", "functions that the guest did not have in memory"},
	};
	const json_t *tables = json_object_get(report->input->description, "unwind-tables");

	head_print_counts("tables", "without ", json_object_get(tables, "left-out"), left_out, G_N_ELEMENTS(left_out),
	                  to);
}

/* Looks at the tasks that wait, their waits, and what was not recorded of them. */
static void head_print_waits(const struct report *report, FILE *to)
{
	static const struct count looks[] = {
		{"wall-looks", "looks"},
		{"wall-broken", "that did not see all tasks"},
		{"wall-later", "samples left to the next look"},
		{"wall-no-frame", "dropped without a frame"},
		{"wall-torn", "dropped because the task ran meanwhile"},
		{"off-cpu-dropped", "waits not recorded for lack of room"},
		{"off-cpu-unread", "waits not recorded because the task cannot be read"},
	};

	head_print_counts("waits", "", statistics_total(report), looks, G_N_ELEMENTS(looks), to);
}

/* What could not be known of the guest. */
static void head_print_missing(const struct report *report, FILE *to)
{
	const json_t *missing = json_object_get(report->input->description, "missing"), *sentence;
	size_t i;

	json_array_foreach(missing, i, sentence)
		if (json_is_string(sentence))
			head_print(to, "missing", json_string_value(sentence));
}

/* "999 Hz" or "every 100003"; the engine adapts periods itself, so an attr of ours has no frequency. New string. */
static char *rate_text(const struct report *report, const struct recording_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	uint64_t hz = member_number(json_object_get(report->input->description, "rate"), "frequency-hz",
	                            attr->freq ? attr->sample_freq : 0);

	/* It has a rate of its own: looks at the tasks. */
	if (strcmp(event->name, VPROF_WALL_EVENT) == 0 && attr->sample_period != 0)
		hz = NS_PER_S / attr->sample_period;
	if (strcmp(event->name, VPROF_OFF_CPU_EVENT) == 0)
		return g_strdup("every wait");
	if (hz != 0)
		return g_strdup_printf("%" G_GUINT64_FORMAT " Hz", hz);
	return g_strdup_printf("every %" G_GUINT64_FORMAT, (uint64_t)attr->sample_period);
}

/* The same where all the recordings agree; else NULL. */
static char *common_rate_text(const struct report *report, const struct report_table *table)
{
	char *rate = NULL;

	if (report->n_parts == 0)
		return rate_text(report, table->event);
	for (size_t i = 0; i < report->n_parts; i++) {
		const struct report *part = report->parts[i];

		for (size_t t = 0; t < part->n_tables; t++) {
			if (strcmp(part->tables[t].event->name, table->event->name) != 0)
				continue;
			g_autofree char *own = rate_text(part, part->tables[t].event);

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
	g_autofree char *rate = NULL, *line = NULL;

	fputs("#\n", to);
	if (!table->event)
		return;
	rate = common_rate_text(report, table);
	line = g_strdup_printf("%s%s%s: %" G_GUINT64_FORMAT " samples", table->event->name, rate ? ", " : "",
	                       rate ? rate : "", table->samples);
	head_print(to, "event", line);
}

static void table_print(const struct report *report, const struct report_table *table, FILE *to)
{
	const struct column_list *list = &report->columns;
	struct text_style style = text_style_for(to);
	g_autoptr(GString) head = g_string_new(NULL);
	int widths[COLUMN_LIST_MAX];

	table_print_title(report, table, to);
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
	head_print_guest(report, to);
	head_print_arch(report, to);
	head_print_kernel(report, to);
	head_print_end(report, to);
	head_print_command(report, to);
	head_print_phases(report, to);
	head_print_filter(report, to);
	head_print_samples(report, to);
	head_print_chains(report, to);
	head_print_stacks(report, to);
	head_print_tables(report, to);
	head_print_waits(report, to);
	head_print_missing(report, to);
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
