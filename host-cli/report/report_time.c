// SPDX-License-Identifier: BSD-2-Clause
/* Where the vCPUs' time went while a recording was made, as `vprof stat` prints it. */
#include <stdlib.h>
#include <string.h>

#include "reading/kvm_exits.h"
#include "reading/vcpu_clocks.h"
#include "report/report.h"

#define REASONS 10u /* printed; JSON has all */

struct report_time {
	size_t n;
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];
	GArray *exits; /* struct kvm_exit_row */
};

/* False: the recording has none. The names belong to it. */
static bool time_read(const struct report *report, struct report_time *time)
{
	const json_t *answers = json_object_get(report->input->description, "time");

	time->n = MIN(json_array_size(answers), VCPU_CLOCKS_MAX);
	if (time->n == 0)
		return false;
	for (size_t i = 0; i < time->n; i++)
		time->vcpus[i] = vcpu_clocks_parse(json_array_get(answers, i));
	time->exits = kvm_exit_rows(NULL, answers, -1);
	return true;
}

static void tables_print(const struct report_time *time, FILE *to)
{
	const uint64_t wall_ns = vcpu_clocks_sum(time->vcpus, time->n).parts.wall_ns;
	const guint reasons = time->exits->len;

	vcpu_clocks_print_table(time->vcpus, time->n, to);
	g_array_set_size(time->exits, MIN(reasons, REASONS));
	kvm_exit_rows_print(time->exits, wall_ns, to);
	if (reasons > REASONS)
		fprintf(to, "%u more reasons\n", reasons - REASONS);
}

/* In the head of a report, each line is a comment. */
static void lines_print(const char *text, FILE *to)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", 0);

	for (char **line = lines; *line && (line[0][0] != '\0' || line[1]); line++)
		fprintf(to, "#%s%s\n", **line != '\0' && **line != '#' ? " " : "", *line + (**line == '#'));
}

void report_print_time(const struct report *report, FILE *to)
{
	struct report_time time;
	char *text = NULL;
	size_t bytes;
	FILE *stream;

	if (!time_read(report, &time))
		return;
	stream = open_memstream(&text, &bytes);
	if (stream) {
		tables_print(&time, stream);
		fclose(stream);
		fputs("#\n", to);
		lines_print(text, to);
	}
	free(text);
	g_array_unref(time.exits);
}

json_t *report_time_json(const struct report *report)
{
	struct report_time time;

	if (!time_read(report, &time))
		return json_null();
	json_t *object = vcpu_clocks_json(time.vcpus, time.n);
	g_autoptr(GArray) returns = exit_rows_sum(json_object_get(report->input->description, "time"));

	json_object_set_new(object, "exits", exit_rows_json(returns));
	json_object_set_new(object, "kvm-exits", kvm_exit_rows_json(time.exits));
	g_array_unref(time.exits);
	return object;
}
