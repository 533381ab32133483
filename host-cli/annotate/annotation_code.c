// SPDX-License-Identifier: BSD-2-Clause
/* Where a function's code stands: in the kernel's image, or in a copy of the program or library that was mapped. */
#include <string.h>

#include "annotate/annotation.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/text.h"

#define FUNCTION_BYTES_MAX (UINT64_C(1) << 20)

G_GNUC_PRINTF(2, 3)
static bool fail(GError **error, const char *format, ...)
{
	va_list arguments;
	g_autofree char *message = NULL;

	va_start(arguments, format);
	message = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_autofree char *printable = text_printable(message);

	g_set_error_literal(error, ANNOTATION_ERROR, ANNOTATION_ERROR_CODE, printable);
	return false;
}

/* "kernel", "initrd": what the recording says that the guest was started with; NULL. */
static const char *started_with(const struct annotation *annotation, const char *member)
{
	return member_text(json_object_get(annotation->input->description, "guest"), member);
}

/* Freestanding kernels have their user programs inside, and are then mapped under their own name. */
static bool is_in_kernel_image(const struct annotation *annotation)
{
	const char *kernel = started_with(annotation, "kernel");

	return !annotation->mapping || (kernel && strcmp(annotation->module, kernel) == 0);
}

static bool kernel_open(struct annotation *annotation, const struct annotation_options *options, GError **error)
{
	const char *path = options->kernel ? options->kernel : started_with(annotation, "kernel");

	if (!path)
		return fail(error, "%s does not say which kernel ran; --kernel IMAGE gives it",
		            annotation->input->path);
	annotation->image = image_open(path, error);
	if (!annotation->image) {
		g_prefix_error(error, "no code of %s (--kernel IMAGE says where the kernel is): ", annotation->symbol);
		return false;
	}
	/* One that the symbols come from was compared when the recording was opened. */
	if (!annotation->input->symtab &&
	    !input_check_kernel(annotation->input, annotation->image, options->force, error))
		return false;
	annotation->symtab = symtab_load(annotation->image, error);
	return annotation->symtab != NULL;
}

static bool program_open(struct annotation *annotation, const struct annotation_options *options, GError **error)
{
	const json_t *guest = json_object_get(annotation->input->description, "guest");
	const struct user_symbol_sources sources =
		symbol_options_sources(options->symbols, member_text(guest, "initrd"),
	                               recording_arch(annotation->input->recording), options->force);
	const struct mapped_file *file = annotation->mapping->file;
	struct user_symbols *programs = user_symbols_new(&sources);
	const GPtrArray *refused = user_symbols_warnings(programs);

	annotation->image = user_symbols_open(programs, file->path.raw,
	                                      file->build_id_bytes != 0 ? file->build_id : NULL, file->build_id_bytes);
	if (!annotation->image)
		fail(error,
		     "no copy of %s, where %s is%s%s; --symfs DIR or --modules DIR says below which folder it is",
		     file->name, annotation->symbol, refused->len != 0 ? ": " : "",
		     refused->len != 0 ? (const char *)g_ptr_array_index(refused, 0) : "");
	user_symbols_free(programs);
	if (annotation->image)
		annotation->symtab = symtab_load_demangled(annotation->image, UINT64_MAX, error);
	return annotation->symtab != NULL;
}

/* annotation->address, which is an offset in the mapped file, as an address of the image. */
static bool address_of_offset(struct annotation *annotation, GError **error)
{
	if (image_code_address(annotation->image, annotation->address, &annotation->address))
		return true;
	return fail(error, "%s has no code at byte 0x%" G_GINT64_MODIFIER "x", image_path(annotation->image),
	            annotation->address);
}

/* KASLR may have moved the kernel. If its slide is not known, the function is found by its name. */
static bool address_of_name(struct annotation *annotation, GError **error)
{
	const struct symbol *at, *named = NULL;
	uint64_t slide;
	size_t n;
	const struct symbol *symbols = symtab_symbols(annotation->symtab, &n);
	unsigned found = 0;

	if (annotation->address >> 63 &&
	    kernel_place_slide(&annotation->input->kernel, image_arch(annotation->image), annotation->symtab, &slide))
		annotation->address -= slide;
	at = symtab_find(annotation->symtab, annotation->address);
	if (at && at->address == annotation->address && strcmp(at->name, annotation->symbol) == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(symbols[i].name, annotation->symbol) == 0) {
			named = &symbols[i];
			found++;
		}
	if (found == 1) {
		annotation->address = named->address;
		return true;
	}
	if (found == 0)
		return fail(error, "the code of %s, of %s, is not in %s", annotation->symbol, annotation->module,
		            image_path(annotation->image));
	return fail(error, "%s has %u functions %s, and the recording does not say which of them ran",
	            image_path(annotation->image), found, annotation->symbol);
}

static bool code_read(struct annotation *annotation, bool intel, GError **error)
{
	const struct symbol *symbol = symtab_find(annotation->symtab, annotation->address);
	size_t there;
	const uint8_t *code = image_at(annotation->image, annotation->address, &there);

	if (!symbol || !code)
		return fail(error, "%s has no code of %s", image_path(annotation->image), annotation->symbol);
	annotation->bytes = MIN(symbol->size - (annotation->address - symbol->address), there);
	if (annotation->bytes > FUNCTION_BYTES_MAX)
		return fail(error, "%s says that %s has %" G_GUINT64_FORMAT " bytes; no function is that long",
		            image_path(annotation->image), annotation->symbol, annotation->bytes);
	annotation->instructions = disassemble(image_arch(annotation->image), intel, code, (size_t)annotation->bytes,
	                                       annotation->address, error);
	return annotation->instructions != NULL;
}

bool annotation_find_code(struct annotation *annotation, const struct annotation_options *options, GError **error)
{
	g_autoptr(GError) why = NULL;

	if (annotation->mode == PROFILE_HYPERVISOR)
		return fail(error,
		            g_str_has_prefix(annotation->symbol, "exit:")
		                    ? "%s is an exit, which the VMM handled: no code of the guest"
		                    : "%s is what the host did for the guest: no code of the guest",
		            annotation->symbol);
	if (is_in_kernel_image(annotation)) {
		if (!kernel_open(annotation, options, error) || !address_of_name(annotation, error))
			return false;
	} else if (!program_open(annotation, options, error) || !address_of_offset(annotation, error)) {
		return false;
	}
	if (!code_read(annotation, options->intel, error))
		return false;
	annotation->lines = source_lines_new(annotation->image, annotation->address, annotation->bytes, &why);
	g_autofree char *printable = why ? text_printable(why->message) : NULL;

	if (printable)
		warn("%s; no source lines", printable);
	return true;
}
