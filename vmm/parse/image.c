// SPDX-License-Identifier: BSD-2-Clause
/* Parts, symbols, call frame information and static probes of a kernel, a program or a module, and functions of a perf
 * map, by lib/symbol. */
#include "lib/symbol/image.h"

#include "lib/parser/table.h"
#include "lib/symbol/cfi.h"
#include "lib/symbol/perf_map.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/usdt.h"
#include "parse/parse.h"

static struct image *open_input(const struct parse_input *input, const struct vprof_parse_request *request,
                                GError **error)
{
	static const enum image_kind kinds[VPROF_PARSE_IMAGES] = {[VPROF_PARSE_KERNEL] = IMAGE_KERNEL,
	                                                          [VPROF_PARSE_PROGRAM] = IMAGE_PROGRAM,
	                                                          [VPROF_PARSE_PROGRAM_PART] = IMAGE_PROGRAM,
	                                                          [VPROF_PARSE_MODULE] = IMAGE_MODULE};
	g_autoptr(GBytes) bytes = g_bytes_new_static(input->bytes, input->n);
	struct image *image =
		image_new_unpacked(kinds[request->image], bytes, request->packing != VPROF_PARSE_ANY, error);

	if (image && request->image == VPROF_PARSE_PROGRAM_PART)
		image_find_holes(image, input->fd);
	return image;
}

bool parse_layout(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	struct image *image = open_input(input, request, error);

	if (!image)
		return false;
	GByteArray *tables = image_encode(image, request->with_release);

	return parse_answer_put(answer, tables->data, tables->len, error);
}

static symtab_name_fn names_of(const struct vprof_parse_request *request)
{
#ifdef VPROF_HAVE_LIBIBERTY
	if (request->what == VPROF_PARSE_DEMANGLED)
		return parse_demangled;
#endif
	(void)request;
	return NULL;
}

bool parse_symbols(const struct parse_input *input, const struct vprof_parse_request *request,
                   struct parse_answer *answer, GError **error)
{
	struct image *image = open_input(input, request, error);
	struct symtab *symtab;
	GError *why = NULL;

	if (!image)
		return false;
	symtab = symtab_parse(image, request->answer_bytes, &why);
	if (why) {
		g_propagate_error(error, why);
		return false;
	}
	GByteArray *tables =
		symtab ? symtab_encode(symtab, names_of(request), request->answer_bytes) : g_byte_array_new();

	return parse_answer_put(answer, tables->data, tables->len, error);
}

bool parse_frames(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	struct image *image = open_input(input, request, error);
	GByteArray *tables = g_byte_array_new();
	struct cfi_statistics statistics;
	size_t n;

	if (!image)
		return false;
	GBytes *table = request->image == VPROF_PARSE_PROGRAM_PART ? cfi_table_make_of_partial(image, &statistics)
	                                                           : cfi_table_make_of_image(image, &statistics);

	table_add(tables, VPROF_PARSE_TABLE_COUNTS, sizeof(uint64_t), &statistics,
	          sizeof(statistics) / sizeof(uint64_t));
	if (table) {
		const void *bytes = g_bytes_get_data(table, &n);

		table_add(tables, VPROF_PARSE_TABLE_FRAMES, 1, bytes, n);
	}
	return parse_answer_put(answer, tables->data, tables->len, error);
}

bool parse_map(const struct parse_input *input, const struct vprof_parse_request *request, struct parse_answer *answer,
               GError **error)
{
	g_autoptr(GByteArray) tables = perf_map_encode((const char *)input->bytes, input->n, request->answer_bytes);

	return parse_answer_put(answer, tables->data, tables->len, error);
}

bool parse_notes(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error)
{
	struct image *image = open_input(input, request, error);

	if (!image)
		return false;
	GByteArray *tables = usdt_notes_encode(image);

	return parse_answer_put(answer, tables->data, tables->len, error);
}
