// SPDX-License-Identifier: BSD-2-Clause
/* What an image is made of, by vprof-parse: its answer is checked as the file itself would have to be. */
#include "lib/parser/parser.h"
#include "lib/parser/table.h"
#include "lib/symbol/image_priv.h"

#define ANSWER_BYTES_MAX (16u << 20)
#define SECTIONS_MAX 65535u

/* No bytes are no span. */
static bool part_take(const struct image *image, struct vprof_parse_part part, struct span *span)
{
	*span = (struct span){NULL, 0};
	return part.bytes == 0 || span_slice(image->bytes, part.offset, part.bytes, span);
}

static bool layout_take(struct image *image, const struct vprof_parse_layout *row, struct span text)
{
	const char *release = span_string(text, row->release);

	if (row->machine > UINT16_MAX || arch_of_elf((uint16_t)row->machine) == ARCH_UNKNOWN || !release ||
	    !part_take(image, row->build_id, &image->build_id) || image->build_id.n > IMAGE_BUILD_ID_BYTES_MAX ||
	    !part_take(image, row->frame_header, &image->frame_header))
		return false;
	image->arch = arch_of_elf((uint16_t)row->machine);
	image->is_linux |= row->is_linux != 0;
	image->entry = row->entry;
	image->has_pvh_entry = row->has_pvh_entry != 0;
	image->pvh_entry = row->pvh_entry;
	image->frame_header_gva = row->frame_header_gva;
	if (!image->release) /* that of a bzImage's header comes first */
		image->release = image_release_from((struct span){(const uint8_t *)release, strlen(release)});
	return true;
}

static bool segments_take(struct image *image, const struct vprof_parse_segment *rows, size_t n)
{
	uint64_t end;

	for (size_t i = 0; i < n; i++) {
		const struct vprof_parse_segment *row = &rows[i];
		const uint64_t before = i > 0 ? rows[i - 1].gpa + rows[i - 1].memory_bytes : 0;

		if (row->memory_bytes == 0 || row->file.bytes > row->memory_bytes || row->gpa < before ||
		    __builtin_add_overflow(row->gpa, row->memory_bytes, &end) ||
		    __builtin_add_overflow(row->gva, row->memory_bytes, &end) ||
		    (row->file.bytes > 0 && !span_holds(image->bytes, row->file.offset, row->file.bytes)))
			return false;
		image->segments[i] = (struct image_segment){.gpa = row->gpa,
		                                            .gva = row->gva,
		                                            .file_offset = row->file.offset,
		                                            .file_bytes = row->file.bytes,
		                                            .memory_bytes = row->memory_bytes,
		                                            .flags = row->flags};
	}
	image->n_segments = n;
	return true;
}

static bool sections_take(struct image *image, const Elf64_Shdr *rows, size_t n, struct span text)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].sh_name >= text.n || (rows[i].sh_type != SHT_NOBITS && rows[i].sh_type != SHT_NULL &&
		                                  !span_holds(image->bytes, rows[i].sh_offset, rows[i].sh_size)))
			return false;
	image->sections = g_memdup2(rows, n * sizeof(*rows));
	image->n_sections = n;
	image->section_names = text;
	return true;
}

bool image_decode(struct image *image, GBytes *answer)
{
	size_t n, n_segments, n_sections;
	struct span text = {NULL, 0};
	const void *layout = table_find(answer, VPROF_PARSE_TABLE_LAYOUT, sizeof(struct vprof_parse_layout), &n);
	const void *segments =
		table_find(answer, VPROF_PARSE_TABLE_SEGMENTS, sizeof(struct vprof_parse_segment), &n_segments);
	const void *sections = table_find(answer, VPROF_PARSE_TABLE_HEADERS, sizeof(Elf64_Shdr), &n_sections);

	text.data = (const uint8_t *)table_text(answer, &text.n);
	if (!text.data || !layout || n != 1 || !segments || n_segments < 1 || n_segments > IMAGE_SEGMENTS_MAX ||
	    !sections || n_sections > SECTIONS_MAX)
		return false;
	image->layout = g_bytes_ref(answer);
	return layout_take(image, layout, text) && segments_take(image, segments, n_segments) &&
	       sections_take(image, sections, n_sections, text);
}

static bool fail(const struct image *image, const GError *why, GError **error)
{
	const char *reason = why->message;

	if (g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		return image_fail(image, error, IMAGE_ERROR_FORMAT, "%s", reason + strlen(PARSER_UNREADABLE));
	return image_fail(image, error, IMAGE_ERROR_FORMAT, "it %s", reason);
}

bool image_ask_layout(struct image *image, GError **error)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(GBytes) answer = image_ask(image, VPROF_PARSE_LAYOUT, ANSWER_BYTES_MAX, &why);

	if (!answer)
		return fail(image, why, error);
	return image_decode(image, answer) ||
	       image_fail(image, error, IMAGE_ERROR_FORMAT,
	                  "it cannot be read: what vprof-parse says of it contradicts itself");
}
