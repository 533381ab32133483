// SPDX-License-Identifier: BSD-2-Clause
/* What a vprof-parse that was taken over may say of source lines, of structures, and of code that is made at run time.
 */
#include "fuzz_target.h"
#include "guest/dwarf_types.h"
#include "lib/symbol/image_priv.h"
#include "lib/symbol/perf_map.h"
#include "lib/symbol/source_lines.h"

#define START 0x401000u
#define BYTES 0x1000u

static void lines_try(GBytes *answer)
{
	struct source_lines *lines = source_lines_decode(answer, START, BYTES);
	struct source_place place;
	const char *file;
	int line;

	for (uint64_t at = START - 1; lines && at <= START + BYTES; at += 0x3f)
		if (source_lines_find(lines, at, &file, &line) && (line <= 0 || at < START || strlen(file) > 4096))
			g_error("a line %d of %s", line, file);
	source_lines_free(lines);
	lines = source_lines_decode_file(answer);
	for (size_t i = 0; lines && source_lines_place(lines, i, &place); i++)
		if (place.line <= 0 || strlen(place.file) > 4096)
			g_error("a place at line %d of %s", place.line, place.file);
	source_lines_free(lines);
}

static void types_try(GBytes *answer)
{
	struct dwarf_types *types = dwarf_types_decode(answer);
	uint32_t value = 0, bytes;

	if (types && dwarf_types_member(types, "file", "f_path", &value, &bytes) && value == UINT32_MAX)
		g_error("a member at %u", value);
	if (types && dwarf_types_size(types, "file", &value) && value == 0)
		g_error("a structure without a size");
	dwarf_types_free(types);
}

static void map_try(GBytes *answer)
{
	struct perf_map *map = perf_map_decode(answer);
	struct perf_map_symbol found;

	if (map && perf_map_find(map, START, &found) &&
	    (START - found.start >= found.size || !g_utf8_validate(found.name, -1, NULL)))
		g_error("a function at 0x%" G_GINT64_MODIFIER "x", found.start);
	perf_map_free(map);
}

/* Of a kernel of BYTES bytes: what is asked of it later stays in there. */
static void image_try(GBytes *answer)
{
	static const uint8_t file[BYTES];
	struct image *image = g_new0(struct image, 1);
	size_t n, bytes;
	uint64_t address;

	image->sealed = image->unpacked = image->source = image->symbols = -1;
	image->bytes = (struct span){file, sizeof(file)};
	if (image_decode(image, answer)) {
		const struct image_segment *segments = image_segments(image, &n);

		for (size_t i = 0; i < n; i++)
			if (image_at(image, segments[i].gva, &bytes) && bytes > BYTES)
				g_error("a segment of %zu bytes", bytes);
		if (image_section(image, ".text", &bytes, &address) && bytes > BYTES)
			g_error("a section of %zu bytes", bytes);
		if (image_build_id(image, &bytes) && bytes > IMAGE_BUILD_ID_BYTES_MAX)
			g_error("a build-id of %zu bytes", bytes);
		(void)image_build_id_address(image, &address);
		image_set_slide(image, 0x1000);
		image_forget(image);
	}
	image_free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* An answer begins at a page. */
	g_autoptr(GBytes) answer = g_bytes_new(data, size);

	lines_try(answer);
	types_try(answer);
	map_try(answer);
	image_try(answer);
	return 0;
}
