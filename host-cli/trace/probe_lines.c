// SPDX-License-Identifier: BSD-2-Clause
#include "trace/probe_lines.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "engine/engine_process.h"
#include "lib/probe_name/probe_name.h"
#include "lib/symbol/source_lines.h"
#include "lib/symbol/symtab.h"
#include "trace/trace_filter.h"
#include "ui/message.h"
#include "ui/text.h"

#define OFFSET_MAX UINT16_MAX /* behind a function, as engines take it */

/* Of the kernel's debug information, one file. */
struct listing {
	const char *probe, *file; /* as given */
	const char *line;         /* a number or a pattern */
	struct image *image;
	struct symtab *symtab;
	struct source_lines *lines;
};

static bool fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool fail(GError **error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *why = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error_literal(error, TRACE_ERROR, TRACE_ERROR_PROBE, why);
	return false;
}

/* ---- the debug information ---- */

/* A copy of the kernel with debug information, as packages of distributions have it. Steals `image`. */
static struct image *copy_open(struct image *image)
{
	static const char *const places[] = {"/usr/lib/debug/boot/vmlinux-%s", "/usr/lib/debug/lib/modules/%s/vmlinux",
	                                     "/usr/lib/debug/usr/lib/modules/%s/vmlinux"};
	g_autofree char *wanted = image_build_id_text(image);
	const char *release = image_release(image);
	struct image *copy = NULL;

	for (size_t i = 0; wanted && release && !strchr(release, '/') && i < G_N_ELEMENTS(places) && !copy; i++) {
		g_auto(GStrv) parts = g_strsplit(places[i], "%s", 2);
		g_autofree char *path = g_strconcat(parts[0], release, parts[1], NULL);

		copy = image_open(path, NULL);
		g_autofree char *found = copy ? image_build_id_text(copy) : NULL;
		if (g_strcmp0(found, wanted) != 0)
			g_clear_pointer(&copy, image_free);
	}
	image_free(image);
	return copy;
}

static bool lines_open(struct listing *listing, const char *kernel, GError **error)
{
	listing->image = image_open(kernel, error);
	if (!listing->image)
		return false;
	listing->lines = source_lines_new_file(listing->image, listing->file, error);
	if (!listing->lines && !*error)
		listing->image = copy_open(listing->image);
	if (!listing->lines && !*error && listing->image)
		listing->lines = source_lines_new_file(listing->image, listing->file, error);
	if (!listing->lines && !*error)
		fail(error,
		     "cannot place %s: %s has no debug information, and no copy with the same build-id is installed below /usr/lib/debug; boot a vmlinux with CONFIG_DEBUG_INFO, or name a function",
		     listing->probe, kernel);
	listing->symtab = listing->lines ? symtab_load(listing->image, error) : NULL;
	if (listing->symtab)
		symtab_index_names(listing->symtab);
	return listing->symtab != NULL;
}

static bool no_code(const struct listing *listing, GError **error)
{
	return fail(error, "cannot place %s: the kernel has no code of a source file %s", listing->probe,
	            listing->file);
}

/* Which of several files is meant is not known. */
static bool is_one_file(const struct listing *listing, GError **error)
{
	struct source_place first, other;

	if (!source_lines_place(listing->lines, 0, &first))
		return no_code(listing, error);
	for (size_t i = 1; source_lines_place(listing->lines, i, &other); i++)
		if (strcmp(first.file, other.file) != 0)
			return fail(error, "cannot place %s: it may be in %s or %s; give more of the path",
			            listing->probe, first.file, other.file);
	return true;
}

static bool listing_open(struct listing *listing, struct client *client, GError **error)
{
	json_t *guest = engine_ask(client, "query-guest", NULL, error);
	const char *kernel = member_text(guest, "kernel");
	const bool done = kernel ? lines_open(listing, kernel, error) && is_one_file(listing, error)
	                         : guest && fail(error, "cannot place %s: the file of the guest's kernel is not known",
	                                         listing->probe);

	json_decref(guest);
	return done;
}

static void listing_clear(struct listing *listing)
{
	source_lines_free(listing->lines);
	symtab_free(listing->symtab);
	image_free(listing->image);
}

/* ---- what there is ---- */

/* NULL: no code of the kernel's; what the linker has left out is at addresses of nothing. */
static char *place_name(const struct listing *listing, uint64_t address)
{
	const struct symbol *symbol = symtab_find(listing->symtab, address), *named;
	size_t there;

	if (!symbol || !strchr("tTwW", symbol->type) || !image_at(listing->image, address, &there))
		return NULL;
	named = symtab_find_name(listing->symtab, symbol->name);
	if (!named || named->address != symbol->address || address - symbol->address > OFFSET_MAX)
		return g_strdup_printf(PROBE_NAME_FUNCTION "0x%" PRIx64, address);
	if (address == symbol->address)
		return g_strconcat(PROBE_NAME_FUNCTION, symbol->name, NULL);
	return g_strdup_printf(PROBE_NAME_FUNCTION "%s+0x%" PRIx64, symbol->name, address - symbol->address);
}

static bool list_places(const struct listing *listing, json_t *names, GError **error)
{
	const guint64 wanted = g_ascii_strtoull(listing->line, NULL, 10);
	struct source_place place;
	guint64 found = 0;
	int last = 0;

	for (size_t i = 0; source_lines_place(listing->lines, i, &place); i++) {
		g_autofree char *name = place_name(listing, place.address);

		if (!name)
			continue;
		last = place.line;
		if (found == 0 && (guint64)place.line >= wanted)
			found = (guint64)place.line;
		if ((guint64)place.line == found)
			json_array_append_new(names, text_json(name));
	}
	if (last == 0)
		return no_code(listing, error);
	if (found == 0)
		return fail(error, "cannot place %s: the last line of %s that has code is %d", listing->probe,
		            listing->file, last);
	if (found != wanted)
		say("line %s of %s has no code; the next that has some is %" G_GUINT64_FORMAT, listing->line,
		    listing->file, found);
	return true;
}

static void list_lines(const struct listing *listing, json_t *names)
{
	struct source_place place;
	int last = 0;

	for (size_t i = 0; source_lines_place(listing->lines, i, &place); i++) {
		g_autofree char *number = g_strdup_printf("%d", place.line);
		g_autofree char *name = NULL;

		if (place.line == last || fnmatch(listing->line, number, 0) != 0)
			continue;
		name = place_name(listing, place.address);
		if (name)
			json_array_append_new(names,
			                      json_sprintf(PROBE_NAME_FUNCTION "%s:%d", listing->file, place.line));
		last = name ? place.line : last;
	}
}

bool probe_lines_list(struct client *client, const char *text, json_t *names, GError **error)
{
	const char *line = probe_name_line(text);
	g_autofree char *file =
		g_strndup(text + strlen(PROBE_NAME_FUNCTION), (gsize)(line - 1 - (text + strlen(PROBE_NAME_FUNCTION))));
	struct listing listing = {.probe = text, .file = file, .line = line};
	g_autoptr(GError) why = NULL;
	bool done = listing_open(&listing, client, &why);

	if (done && strspn(listing.line, "0123456789") == strlen(listing.line))
		done = list_places(&listing, names, &why);
	else if (done)
		list_lines(&listing, names);
	listing_clear(&listing);
	if (why)
		g_propagate_error(error, g_steal_pointer(&why));
	return done;
}
