// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <string.h>

#include "annotate/annotation.h"
#include "ui/text.h"

#define SOURCE_BYTES_MAX (8u << 20)

/* A file of source, read once; lines are NULL where it is not on this host. */
struct source {
	char *path;
	char **lines;
	guint n;
};

static void source_clear(struct source *source)
{
	g_free(source->path);
	g_strfreev(source->lines);
	*source = (struct source){0};
}

static void source_open(struct source *source, const char *path)
{
	g_autofree char *text = NULL;
	gsize n;

	if (source->path && strcmp(source->path, path) == 0)
		return;
	source_clear(source);
	source->path = g_strdup(path);
	if (!g_file_test(path, G_FILE_TEST_IS_REGULAR) || !g_file_get_contents(path, &text, &n, NULL) ||
	    n > SOURCE_BYTES_MAX)
		return;
	source->lines = g_strsplit(text, "\n", -1);
	source->n = g_strv_length(source->lines);
}

/* The line an instruction comes from, when it is another one than that of the instruction above. */
struct line {
	const char *file;
	int number;
};

static void line_print(struct line *above, const struct line *line, struct source *source, FILE *to)
{
	g_autofree char *path = NULL, *text = NULL;

	if (above->file && above->number == line->number && strcmp(above->file, line->file) == 0)
		return;
	*above = *line;
	source_open(source, line->file);
	path = text_printable(line->file);
	if (source->lines && (guint)line->number <= source->n)
		text = text_printable(g_strstrip(source->lines[line->number - 1]));
	fprintf(to, "  %s:%d%s%s\n", path, line->number, text ? "  " : "", text ? text : "");
}

static double share_of(const struct annotation *annotation, const struct annotation_hit *hit)
{
	if (annotation->period != 0)
		return (double)hit->period / (double)annotation->period;
	return annotation->samples != 0 ? (double)hit->samples / (double)annotation->samples : 0;
}

static void head_print(const struct annotation *annotation, FILE *to)
{
	g_autofree char *symbol = text_printable(annotation->symbol), *module = text_printable(annotation->module),
			*event = text_printable(annotation->event),
			*path = text_printable(image_path(annotation->image));
	double share = annotation->all_period != 0 ? (double)annotation->period / (double)annotation->all_period : 0;

	fprintf(to, "# function %s, %s, %s\n", symbol, profile_mode_name(annotation->mode), module);
	fprintf(to, "# samples  %" PRIu64 " of %" PRIu64 ", %.2f%% of %s\n", annotation->samples,
	        annotation->all_samples, 100 * share, event);
	fprintf(to, "# code     %s, 0x%" PRIx64 ", %" PRIu64 " bytes%s\n", path, annotation->address, annotation->bytes,
	        !annotation->lines ? ", no source lines" : "");
	if (annotation->n_others != 0)
		fprintf(to,
		        annotation->is_copy
		                ? "# others   %u more of the function's copies, with fewer samples; `vprof report` has their names\n"
		                : "# others   %u of the same name, with fewer samples; --module NAME may tell them apart\n",
		        annotation->n_others);
	fprintf(to, "#\n#  Share    Samples    Offset  Instruction\n");
}

void annotation_print_text(const struct annotation *annotation, FILE *to)
{
	struct line above = {0}, line;
	struct source source = {0};

	head_print(annotation, to);
	for (guint i = 0; i < annotation->instructions->len; i++) {
		const struct instruction *instruction = &g_array_index(annotation->instructions, struct instruction, i);
		const struct annotation_hit hit = annotation_hit_of(annotation, i);
		g_autofree char *target = annotation_target(annotation, instruction);

		if (annotation->lines && source_lines_find(annotation->lines, annotation->address + instruction->offset,
		                                           &line.file, &line.number))
			line_print(&above, &line, &source, to);
		if (hit.samples != 0)
			fprintf(to, "%7.2f%% %10" PRIu64, 100 * share_of(annotation, &hit), hit.samples);
		else
			fprintf(to, "%8s %10s", "", "");
		fprintf(to, "  %8" PRIx64 "  %s%s%s%s\n", instruction->offset, instruction->text, target ? " <" : "",
		        target ? target : "", target ? ">" : "");
	}
	source_clear(&source);
}

static json_t *hexadecimal(uint64_t number)
{
	char text[24];

	g_snprintf(text, sizeof(text), "0x%" PRIx64, number);
	return json_string(text);
}

static json_t *instruction_json(const struct annotation *annotation, guint i)
{
	const struct instruction *instruction = &g_array_index(annotation->instructions, struct instruction, i);
	const struct annotation_hit hit = annotation_hit_of(annotation, i);
	g_autofree char *target = annotation_target(annotation, instruction);
	json_t *json = json_pack("{s:I, s:I, s:s, s:o, s:I, s:I, s:f}", "offset", (json_int_t)instruction->offset,
	                         "bytes", (json_int_t)instruction->bytes, "text", instruction->text, "target",
	                         text_json(target), "samples", (json_int_t)hit.samples, "period",
	                         (json_int_t)hit.period, "share", share_of(annotation, &hit));
	struct line line;

	if (annotation->lines &&
	    source_lines_find(annotation->lines, annotation->address + instruction->offset, &line.file, &line.number)) {
		json_object_set_new(json, "file", text_json(line.file));
		json_object_set_new(json, "line", json_integer(line.number));
	}
	return json;
}

void annotation_print_json(const struct annotation *annotation, FILE *to)
{
	json_t *instructions = json_array(), *document;

	for (guint i = 0; i < annotation->instructions->len; i++)
		json_array_append_new(instructions, instruction_json(annotation, i));
	document = json_pack("{s:s, s:i, s:o, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:o}", "format",
	                     "vprof-annotate", "version", ANNOTATION_JSON_VERSION, "symbol",
	                     text_json(annotation->symbol), "module", text_json(annotation->module), "mode",
	                     profile_mode_name(annotation->mode), "event", text_json(annotation->event), "samples",
	                     (json_int_t)annotation->samples, "period", (json_int_t)annotation->period, "all-samples",
	                     (json_int_t)annotation->all_samples, "all-period", (json_int_t)annotation->all_period,
	                     "image", text_json(image_path(annotation->image)), "address",
	                     hexadecimal(annotation->address), "bytes", (json_int_t)annotation->bytes, "others",
	                     (json_int_t)annotation->n_others, "instructions", instructions);
	text_print_json(document, 9, to);
	json_decref(document);
}
