// SPDX-License-Identifier: BSD-2-Clause
/* The symbols of an image, by vprof-parse. */
#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"
#include "lib/symbol/symtab.h"

#define ANSWER_BYTES_MAX (UINT64_C(512) << 20) /* of a file that the user named: eight times those of allyesconfig */

/* The limit of what is made of the image. */
static uint64_t answer_bytes_max(const struct image *image)
{
	if (!image->is_of_guest)
		return ANSWER_BYTES_MAX;
	return image->kind == IMAGE_KERNEL ? SYMTAB_KERNEL_BYTES_MAX : SYMTAB_PROGRAM_BYTES_MAX;
}

static struct symtab *none(const struct image *image, GError **error)
{
	if (image->kind == IMAGE_KERNEL)
		g_set_error(
			error, SYMTAB_ERROR, SYMTAB_ERROR_NONE,
			"%s has no symbols of its code, neither .symtab nor kallsyms; give an image that is not stripped, or build Linux with CONFIG_KALLSYMS",
			image->path);
	else
		g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_NONE, "%s is stripped", image->path);
	return NULL;
}

/* `answer`: NULL: none, because of `why`. */
static struct symtab *take(const struct image *image, GBytes *answer, GError *why, GError **error)
{
	g_autofree char *what = g_strdup_printf("the symbol table of %s ", image->path);
	struct symtab *symtab = NULL;

	if (answer && g_bytes_get_size(answer) == 0)
		return none(image, error);
	if (answer && g_bytes_get_size(answer) <= answer_bytes_max(image))
		symtab = symtab_decode(answer, image->slide);
	if (g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		why->domain = SYMTAB_ERROR, why->code = SYMTAB_ERROR_CORRUPT;
	if (why)
		g_propagate_prefixed_error(error, why, "%s", what);
	else if (!symtab)
		g_set_error(error, SYMTAB_ERROR, SYMTAB_ERROR_CORRUPT,
		            "%scannot be read: what vprof-parse says of it contradicts itself", what);
	return symtab;
}

static struct symtab *ask(const struct image *image, enum vprof_parse_what what, uint64_t bytes_max, GError **error)
{
	GError *why = NULL;
	g_autoptr(GBytes) answer = image_ask(image, what, MIN(bytes_max, answer_bytes_max(image)), &why);

	return take(image, answer, why, error);
}

struct symtab *symtab_load(const struct image *image, GError **error)
{
	GError *why = NULL;

	if (image->symbols < 0)
		return ask(image, VPROF_PARSE_SYMBOLS, UINT64_MAX, error);
	g_autoptr(GBytes) answer = image_answer_map(image->symbols, &why);

	return take(image, answer, why, error);
}

struct symtab *symtab_load_demangled(const struct image *image, uint64_t bytes_max, GError **error)
{
	return ask(image, VPROF_PARSE_DEMANGLED, bytes_max, error);
}

struct symtab *symtab_load_keeping(struct image *image, GError **error)
{
	GError *why = NULL;

	if (image->symbols < 0)
		image->symbols = image_ask_memory(image, VPROF_PARSE_SYMBOLS, answer_bytes_max(image), &why);
	g_autoptr(GBytes) answer = image->symbols >= 0 ? image_answer_map(image->symbols, &why) : NULL;

	return take(image, answer, why, error);
}
