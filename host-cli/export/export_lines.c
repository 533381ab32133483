// SPDX-License-Identifier: BSD-2-Clause
#include "export/export_lines.h"

#include <string.h>

#include "lib/symbol/source_lines.h"
#include "ui/message.h"
#include "ui/text.h"

#define WINDOW_BYTES (UINT64_C(1) << 20) /* what one question to vprof-parse may cover */

struct code {
	struct image *image; /* NULL: there is no copy, or it has no debug information */
	uint64_t slide;      /* from its addresses to those of the guest; of the kernel's */
	GHashTable *windows; /* number of the window -> struct source_lines */
};

struct export_lines {
	struct input *input;
	GHashTable *files; /* struct mapped_file, NULL for the kernel -> struct code */
};

static void code_free(void *data)
{
	struct code *code = data;

	image_free(code->image);
	g_hash_table_unref(code->windows);
	g_free(code);
}

static const char *kernel_path(const struct input *input)
{
	return input->image_path ? input->image_path
	                         : member_text(json_object_get(input->description, "guest"), "kernel");
}

/* The image that was given, or the one that was booted if it is still there. */
static void kernel_open(struct code *code, struct input *input)
{
	const char *path = kernel_path(input);
	struct symtab *symtab = NULL;

	code->image = path ? image_open(path, NULL) : NULL;
	if (input->symtab) {
		code->slide = input->slide;
		return;
	}
	if (code->image && !input_check_kernel(input, code->image, false, NULL))
		g_clear_pointer(&code->image, image_free);
	if (code->image)
		symtab = symtab_load(code->image, NULL);
	if (symtab)
		kernel_place_slide(&input->kernel, image_arch(code->image), symtab, &code->slide);
	symtab_free(symtab);
}

static struct code *code_open(struct export_lines *lines, const struct mapping *mapping)
{
	struct code *code = g_new0(struct code, 1);

	code->windows = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, (GDestroyNotify)source_lines_free);
	if (!mapping)
		kernel_open(code, lines->input);
	else if (lines->input->user_symbols)
		code->image = user_symbols_open(lines->input->user_symbols, mapping->file->path.raw,
		                                mapping->file->build_id_bytes != 0 ? mapping->file->build_id : NULL,
		                                mapping->file->build_id_bytes);
	return code;
}

/* Freestanding kernels have their user programs inside, and are then mapped under their own name. */
static bool is_kernel(const struct export_lines *lines, const struct mapping *mapping)
{
	return !mapping || g_strcmp0(mapping->file->name, kernel_path(lines->input)) == 0;
}

static bool address_of(const struct code *code, uint64_t ip, const struct mapping *mapping, uint64_t *address)
{
	if (mapping)
		return image_code_address(code->image, mapping_file_offset(mapping, ip), address);
	*address = ip >> 63 != 0 ? ip - code->slide : ip;
	return true;
}

/* NULL: the image has no debug information, and is not asked again. */
static const struct source_lines *window_get(struct code *code, uint64_t address)
{
	gpointer key = GSIZE_TO_POINTER(address / WINDOW_BYTES);
	struct source_lines *window = g_hash_table_lookup(code->windows, key);
	g_autoptr(GError) why = NULL;

	if (window)
		return window;
	window = source_lines_new(code->image, address / WINDOW_BYTES * WINDOW_BYTES, WINDOW_BYTES, &why);
	if (window) {
		g_hash_table_insert(code->windows, key, window);
		return window;
	}
	if (why) {
		g_autofree char *printable = text_printable(why->message);

		warn("%s; no source lines of it", printable);
	}
	g_clear_pointer(&code->image, image_free);
	return NULL;
}

struct export_lines *export_lines_new(struct input *input)
{
	struct export_lines *lines = g_new0(struct export_lines, 1);

	lines->input = input;
	lines->files = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, code_free);
	return lines;
}

void export_lines_free(struct export_lines *lines)
{
	g_hash_table_unref(lines->files);
	g_free(lines);
}

bool export_lines_find(struct export_lines *lines, enum profile_mode mode, uint64_t ip, const struct mapping *mapping,
                       const char **file, int *line)
{
	const struct source_lines *window;
	struct code *code;
	uint64_t address;

	if (mode == PROFILE_HYPERVISOR || (mode == PROFILE_USER && !mapping))
		return false;
	if (is_kernel(lines, mapping))
		mapping = NULL;
	code = g_hash_table_lookup(lines->files, mapping ? mapping->file : NULL);
	if (!code) {
		code = code_open(lines, mapping);
		g_hash_table_insert(lines->files, (gpointer)(mapping ? mapping->file : NULL), code);
	}
	if (!code->image || !address_of(code, ip, mapping, &address))
		return false;
	window = window_get(code, address);
	return window && source_lines_find(window, address, file, line);
}
