// SPDX-License-Identifier: BSD-2-Clause
/* What an image is made of, on its way out of vprof-parse (include/vprof/parse.h). */
#include "lib/parser/table.h"
#include "lib/symbol/image_priv.h"

static struct vprof_parse_part part_of(const struct image *image, struct span span)
{
	return span.n > 0 ? (struct vprof_parse_part){(uint64_t)(span.data - image->bytes.data), span.n}
	                  : (struct vprof_parse_part){0, 0};
}

static void segments_add(GByteArray *answer, const struct image *image)
{
	g_autofree struct vprof_parse_segment *rows = g_new0(struct vprof_parse_segment, image->n_segments);

	for (size_t i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		rows[i] = (struct vprof_parse_segment){.gpa = segment->gpa,
		                                       .gva = segment->gva,
		                                       .memory_bytes = segment->memory_bytes,
		                                       .file = {segment->file_offset, segment->file_bytes},
		                                       .flags = segment->flags};
	}
	table_add(answer, VPROF_PARSE_TABLE_SEGMENTS, sizeof(*rows), rows, image->n_segments);
}

static void sections_add(GByteArray *answer, const struct image *image, GByteArray *text)
{
	g_autofree Elf64_Shdr *rows = g_memdup2(image->sections, image->n_sections * sizeof(*rows));

	for (size_t i = 0; i < image->n_sections; i++) {
		const char *name = span_string(image->section_names, rows[i].sh_name);

		rows[i].sh_name = name ? table_text_add(text, name) : 0;
	}
	table_add(answer, VPROF_PARSE_TABLE_HEADERS, sizeof(*rows), rows, image->n_sections);
}

GByteArray *image_encode(struct image *image, bool with_release)
{
	GByteArray *answer = g_byte_array_new();
	g_autoptr(GByteArray) text = g_byte_array_new();

	if (with_release)
		image_find_release(image);
	table_text_add(text, "");
	const struct vprof_parse_layout row = {
		.machine = arch_elf(image->arch),
		.is_linux = image->is_linux,
		.release = image->release ? table_text_add(text, image->release) : 0,
		.has_pvh_entry = image->has_pvh_entry,
		.entry = image->entry,
		.pvh_entry = image->pvh_entry,
		.build_id = part_of(image, image->build_id),
		.frame_header = part_of(image, image->frame_header),
		.frame_header_gva = image->frame_header_gva,
	};

	table_add(answer, VPROF_PARSE_TABLE_LAYOUT, sizeof(row), &row, 1);
	segments_add(answer, image);
	sections_add(answer, image, text);
	table_add(answer, VPROF_PARSE_TABLE_TEXT, 1, text->data, text->len);
	return answer;
}
