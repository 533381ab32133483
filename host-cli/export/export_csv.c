// SPDX-License-Identifier: BSD-2-Clause
/* Comma-separated values (RFC 4180 but for the bare line feeds), a line for each sample, for spreadsheets and data
 * frames. */
#include <string.h>

#include "export/export.h"
#include "ui/text.h"

struct printing {
	FILE *to;
	const char *event;
	struct names *names;
	GString *stack;
};

/* Always quoted. A text that begins like a formula would be one in a spreadsheet: it gets an apostrophe. */
static void text_print(const char *text, FILE *to)
{
	g_autofree char *printable = text_printable(text);

	fputs(*printable != '\0' && strchr("=+-@", *printable) ? ",\"'" : ",\"", to);
	for (const char *at = printable; *at != '\0'; at++) {
		if (*at == '"')
			fputc('"', to);
		fputc(*at, to);
	}
	fputc('"', to);
}

static bool sample_print(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                         size_t n, void *data)
{
	const struct printing *printing = data;
	FILE *to = printing->to;

	g_string_truncate(printing->stack, 0);
	for (size_t i = n; i-- > 0;)
		g_string_append_printf(printing->stack, "%s%s", i + 1 == n ? "" : ";", frames[i].place.symbol);
	fprintf(to, "%" G_GUINT64_FORMAT ",%" G_GUINT32_FORMAT ",%s", sample->time_ns, sample->cpu,
	        profile_mode_name(frames[0].mode));
	text_print(printing->event, to);
	fprintf(to, ",%" G_GUINT64_FORMAT ",%d,%d", sample->period, (int32_t)sample->pid, (int32_t)sample->tid);
	text_print(comm, to);
	fprintf(to, ",0x%016" G_GINT64_MODIFIER "x", sample->ip);
	text_print(frames[0].place.symbol, to);
	fprintf(to, ",%" G_GUINT64_FORMAT, frames[0].place.offset);
	text_print(frames[0].place.module, to);
	text_print(printing->stack->str, to);
	text_print(names_cgroup(printing->names, sample), to);
	fputs("\n", to);
	return ferror(to) == 0;
}

static bool csv_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct printing printing = {
		.to = to,
		.event = profile->event,
		.names = profile->input->names,
		.stack = g_string_new(NULL),
	};

	(void)error;
	fputs("time_ns,vcpu,mode,event,period,pid,tid,comm,ip,symbol,offset,module,stack,cgroup\n", to);
	export_samples_each(profile, sample_print, &printing);
	g_string_free(printing.stack, TRUE);
	return true;
}

const struct exporter export_csv = {
	.name = "csv",
	.summary = "a line for each sample: spreadsheets, pandas, DuckDB",
	.by_sample = true,
	.write = csv_write,
};
