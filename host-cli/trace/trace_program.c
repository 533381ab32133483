// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_program.h"

#include <elf.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "engine/engine_process.h"
#include "lib/code/function_returns.h"
#include "lib/probe_name/probe_name.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/usdt.h"
#include "trace/trace_filter.h"
#include "ui/message.h"
#include "ui/text.h"

struct user_symbols *trace_program_copies(struct client *client, const char *symfs)
{
	json_t *guest = engine_ask(client, "query-guest", NULL, NULL);
	const struct user_symbol_sources sources = {.initrd = member_text(guest, "initrd"), .symfs = symfs};
	struct user_symbols *copies = user_symbols_new(&sources);

	json_decref(guest);
	return copies;
}

/* ---- a copy ---- */

struct program_copy {
	char *path;
	struct image *image;
	struct symtab *symtab; /* NULL: it has no symbols */
};

static void copy_clear(struct program_copy *copy)
{
	symtab_free(copy->symtab);
	image_free(copy->image);
	g_free(copy->path);
}

static bool copy_open(struct program_copy *copy, struct user_symbols *copies, const struct probe_in_program *wanted,
                      GError **error)
{
	copy->path = g_strdup(wanted->path);
	copy->image = user_symbols_open(copies, copy->path, NULL, 0);
	if (!copy->image) {
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_PROBE,
			"cannot find %s in %s: there is no copy of that file; name a folder with the guest's programs by --symfs (that is / for what `vprof run --exec` takes along), or give the offset of the function in the file, as user:%s:0x1234",
			wanted->name, copy->path, copy->path);
		return false;
	}
	copy->symtab = symtab_load(copy->image, NULL);
	return true;
}

/* Of code. */
static bool file_offset_of(const struct program_copy *copy, uint64_t address, uint64_t *offset)
{
	size_t n;
	const struct image_segment *segments = image_segments(copy->image, &n);

	for (size_t i = 0; i < n; i++) {
		if (!(segments[i].flags & PF_X) || address - segments[i].gva >= segments[i].file_bytes)
			continue;
		*offset = segments[i].file_offset + (address - segments[i].gva);
		return true;
	}
	return false;
}

static void fill_build(const struct program_copy *copy, json_t *arguments)
{
	g_autofree char *build_id = image_build_id_text(copy->image);

	if (build_id)
		json_object_set_new(arguments, "build-id", json_string(build_id));
}

static json_t *offset_json(uint64_t offset)
{
	return json_sprintf("0x%" PRIx64, offset);
}

/* ---- where a function returns ---- */

static const struct symbol *find_symbol(void *data, uint64_t address)
{
	return symtab_find(((const struct program_copy *)data)->symtab, address);
}

static bool read_code(void *data, uint64_t from, uint8_t *code, size_t n)
{
	size_t there;
	const uint8_t *bytes = image_at(((const struct program_copy *)data)->image, from, &there);

	if (!bytes || there < n)
		return false;
	memcpy(code, bytes, n);
	return true;
}

static bool fill_returns(struct program_copy *copy, const struct symbol *function, json_t *arguments, GError **error)
{
	const struct function_code code = {.find = find_symbol, .read = read_code, .data = copy};
	const struct processor_code *of = code_of(image_arch(copy->image));
	struct function_returns returns;
	g_autofree char *why = function_returns_find(of, function->address, &code, &returns);
	json_t *list;
	uint64_t offset;

	if (why) {
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_PROBE,
			"cannot tell where %s of %s returns: the function %s; probe what it calls, or what calls it",
			function->name, copy->path, why);
		return false;
	}
	list = json_array();
	for (size_t i = 0; i < returns.n; i++)
		if (file_offset_of(copy, returns.at[i], &offset))
			json_array_append_new(list, offset_json(offset));
	json_object_set_new(arguments, "returns", list);
	return true;
}

/* ---- a function ---- */

static bool fill_function(struct program_copy *copy, const struct probe_in_program *function, json_t *arguments,
                          GError **error)
{
	const struct symbol *symbol = copy->symtab ? symtab_find_name(copy->symtab, function->name) : NULL;
	uint64_t offset;

	if (!symbol || !file_offset_of(copy, symbol->address, &offset)) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE,
		            "%s has no function \"%s\" among its symbols; it may have been inlined, or stripped",
		            copy->path, function->name);
		return false;
	}
	json_object_set_new(arguments, "file-offset", offset_json(offset));
	return !function->returns || fill_returns(copy, symbol, arguments, error);
}

/* Where it begins in the file, which has no name for it. */
static bool fill_number(const struct probe_in_program *function, json_t *arguments, GError **error)
{
	const bool is_hex = g_str_has_prefix(function->name, "0x");
	guint64 offset;

	if (function->returns) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE,
		            "where the function at %s returns is not known: give its name", function->name);
		return false;
	}
	if (!g_ascii_string_to_unsigned(function->name + (is_hex ? 2 : 0), is_hex ? 16 : 10, 0, G_MAXINT64, &offset,
	                                NULL)) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE,
		            "\"%s\" is neither a function nor its offset in the file", function->name);
		return false;
	}
	json_object_set_new(arguments, "file-offset", offset_json(offset));
	return true;
}

/* ---- static probes ---- */

static char *note_name(const struct usdt_note *note)
{
	return g_strconcat(note->provider, ":", note->name, NULL);
}

/* The places in its code with the name PROVIDER:NAME. */
static json_t *note_places(const struct program_copy *copy, const struct usdt_notes *notes, const char *wanted,
                           bool *has_semaphore)
{
	json_t *list = json_array();

	for (size_t i = 0; i < notes->n; i++) {
		const struct usdt_note *note = &notes->all[i];
		g_autofree char *name = note_name(note);
		uint64_t offset;

		if (!g_str_equal(name, wanted) || !file_offset_of(copy, note->address, &offset))
			continue;
		g_autofree char *place = g_strdup_printf("0x%" PRIx64 " %s", offset, note->operands);
		json_array_append_new(list, text_json(place));
		*has_semaphore |= note->has_semaphore;
	}
	return list;
}

static bool fill_notes(const struct program_copy *copy, const char *wanted, json_t *arguments, GError **error)
{
	struct usdt_notes *notes = usdt_notes_load(copy->image, error);
	bool has_semaphore = false;

	if (!notes)
		return false;
	json_t *places = note_places(copy, notes, wanted, &has_semaphore);
	const bool found = json_array_size(places) > 0;

	json_object_set_new(arguments, "notes", places);
	if (!found)
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE,
		            "%s has no static probe \"%s\"; `vprof probe list '" PROBE_NAME_NOTE
		            "%s:*:*'` shows those that there are",
		            copy->path, wanted, copy->path);
	else if (has_semaphore)
		say(PROBE_NAME_NOTE
		    "%s:%s is passed only while a tracer in the guest has switched it on: it has a semaphore",
		    copy->path, wanted);
	usdt_notes_free(notes);
	return found;
}

static bool fill_by_copy(const struct probe_in_program *function, struct program_copy *copy, json_t *arguments,
                         GError **error)
{
	fill_build(copy, arguments);
	return function->is_note ? fill_notes(copy, function->name, arguments, error)
	                         : fill_function(copy, function, arguments, error);
}

bool trace_program_fill(struct user_symbols *copies, const char *probe, json_t *arguments, GError **error)
{
	struct program_copy copy = {NULL};
	struct probe_in_program function = {NULL};
	bool done;

	if (!probe_in_program_parse(probe, &function))
		done = true; /* the engine says how it is written */
	else if (!function.is_note && g_ascii_isdigit(function.name[0]))
		done = fill_number(&function, arguments, error);
	else
		done = copy_open(&copy, copies, &function, error) && fill_by_copy(&function, &copy, arguments, error);
	copy_clear(&copy);
	probe_in_program_clear(&function);
	return done;
}

json_t *trace_program_arguments(struct user_symbols *copies, const char *probe, GError **error)
{
	json_t *places = json_object(), *names = json_array(), *types = json_array();
	const bool found = trace_program_fill(copies, probe, places, error);
	const char *place = json_string_value(json_array_get(json_object_get(places, "notes"), 0));
	g_auto(GStrv) words = g_strsplit(place ? place : "", " ", -1);

	/* Behind the offset. */
	for (char **word = words; *word && word[1]; word++) {
		json_array_append_new(names, json_sprintf("arg%zu", json_array_size(names)));
		json_array_append_new(types, text_json(word[1]));
	}
	json_decref(places);
	if (found)
		return json_pack("{s:o, s:o, s:o}", "name", text_json(probe), "arguments", names, "types", types);
	json_decref(names);
	json_decref(types);
	return NULL;
}

/* ---- all that match ---- */

static void list_functions(const struct program_copy *copy, const struct probe_in_program *function, json_t *names)
{
	size_t n = 0;
	const struct symbol *symbols = copy->symtab ? symtab_symbols(copy->symtab, &n) : NULL;
	uint64_t offset;

	for (size_t i = 0; i < n; i++) {
		const char *name = symbols[i].name;

		/* A name may stand for several functions; the first is the one that is found. */
		if (!strchr("tTwW", symbols[i].type) || fnmatch(function->name, name, 0) != 0 ||
		    symtab_find_name(copy->symtab, name) != &symbols[i] || strpbrk(name, ":+") ||
		    !file_offset_of(copy, symbols[i].address, &offset))
			continue;
		g_autofree char *probe = g_strconcat(PROBE_NAME_PROGRAM, copy->path, ":", name,
		                                     function->returns ? PROBE_NAME_RETURN : "", NULL);
		json_array_append_new(names, text_json(probe));
	}
}

/* Each name once. */
static bool list_notes(const struct program_copy *copy, const char *pattern, json_t *names, GError **error)
{
	struct usdt_notes *notes = usdt_notes_load(copy->image, error);
	g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	uint64_t offset;

	for (size_t i = 0; notes && i < notes->n; i++) {
		char *name = note_name(&notes->all[i]);
		g_autofree char *probe = g_strconcat(PROBE_NAME_NOTE, copy->path, ":", name, NULL);

		if (fnmatch(pattern, name, 0) == 0 && file_offset_of(copy, notes->all[i].address, &offset) &&
		    !g_hash_table_contains(known, name))
			json_array_append_new(names, text_json(probe));
		g_hash_table_add(known, name);
	}
	usdt_notes_free(notes);
	return notes;
}

bool trace_program_list(struct user_symbols *copies, const char *pattern, json_t *names, GError **error)
{
	struct program_copy copy = {NULL};
	struct probe_in_program function = {NULL};
	bool done = false;

	if (!probe_in_program_parse(pattern, &function))
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_PROBE, "\"%s\" names no program; it is written %s", pattern,
		            probe_name_is_note(pattern) ? PROBE_NAME_NOTE "BINARY:PROVIDER:NAME"
		                                        : PROBE_NAME_PROGRAM "BINARY:FUNCTION");
	else
		done = copy_open(&copy, copies, &function, error);
	if (done && function.is_note)
		done = list_notes(&copy, function.name, names, error);
	else if (done)
		list_functions(&copy, &function, names);
	copy_clear(&copy);
	probe_in_program_clear(&function);
	return done;
}
