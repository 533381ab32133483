// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/user_symbols.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/record/hex.h"
#include "lib/record/record.h"
#include "lib/symbol/image.h"
#include "lib/symbol/module_file.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_file.h"

/* What is used of a copy of a file, or what there is instead: nothing. */
struct user_copy {
	struct symtab *symtab; /* NULL: no copy, or one without symbols */
	struct image_segment *segments;
	size_t n_segments;
};

struct user_symbols {
	char *symfs;
	struct user_archive *initrd;   /* NULL */
	struct module_folder *modules; /* NULL */
	enum arch arch;
	bool debuginfod, executables, force;
	bool unavailable;   /* a warning says that vprof-parse is */
	GHashTable *copies; /* "NAME BUILD-ID" -> struct user_copy * */
	GHashTable *given;  /* build-id in digits -> struct user_copy * */
	GPtrArray *warnings;
};

void user_copy_free(struct user_copy *copy)
{
	if (!copy)
		return;
	symtab_free(copy->symtab);
	g_free(copy->segments);
	g_free(copy);
}

/* `copy` has nothing, or what a source without symbols has left. */
static void copy_take(struct user_copy *copy, const struct image *image, uint64_t bytes_max, GError **error)
{
	const struct image_segment *segments = image_segments(image, &copy->n_segments);

	g_free(copy->segments);
	copy->segments = g_memdup2(segments, copy->n_segments * sizeof(*segments));
	copy->symtab = symtab_load_demangled(image, bytes_max, error);
	/* That a file has none needs no message. */
	if (error && g_error_matches(*error, SYMTAB_ERROR, SYMTAB_ERROR_NONE))
		g_clear_error(error);
}

struct user_copy *user_copy_new(const struct image *image, uint64_t bytes_max, GError **error)
{
	struct user_copy *copy = g_new0(struct user_copy, 1);

	copy_take(copy, image, bytes_max, error);
	return copy;
}

uint64_t user_copy_bytes(const struct user_copy *copy)
{
	return copy->symtab ? symtab_bytes(copy->symtab) : 0;
}

char *user_copy_left_out_text(const struct user_copy *copy)
{
	return copy->symtab ? symtab_left_out_text(copy->symtab) : NULL;
}

static void copy_destroy(gpointer data)
{
	user_copy_free(data);
}

struct user_symbols *user_symbols_new(const struct user_symbol_sources *sources)
{
	struct user_symbols *symbols = g_new0(struct user_symbols, 1);

	symbols->symfs = g_strdup(sources->symfs);
	symbols->initrd = sources->initrd ? user_archive_new(sources->initrd) : NULL;
	symbols->modules = sources->modules ? module_folder_new(sources->modules) : NULL;
	symbols->debuginfod = sources->debuginfod;
	symbols->executables = sources->executables;
	/* Beside what comes before the first file. */
	if (symbols->symfs || symbols->initrd || symbols->modules || sources->debuginfod)
		(void)parser_start(NULL);
	symbols->arch = sources->arch;
	symbols->force = sources->force;
	symbols->copies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, copy_destroy);
	symbols->given = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, copy_destroy);
	symbols->warnings = g_ptr_array_new_with_free_func(g_free);
	return symbols;
}

void user_symbols_free(struct user_symbols *symbols)
{
	if (!symbols)
		return;
	g_hash_table_unref(symbols->copies);
	g_hash_table_unref(symbols->given);
	g_ptr_array_unref(symbols->warnings);
	module_folder_free(symbols->modules);
	g_free(symbols->symfs);
	user_archive_free(symbols->initrd);
	g_free(symbols);
}

const GPtrArray *user_symbols_warnings(const struct user_symbols *symbols)
{
	return symbols->warnings;
}

bool user_symbols_have_debuginfod(GError **error)
{
	return user_file_debuginfod_load(error);
}

static bool is_same_arch(struct user_symbols *symbols, const struct image *image, const char *name)
{
	if (symbols->arch == ARCH_UNKNOWN || image_arch(image) == symbols->arch)
		return true;
	g_ptr_array_add(symbols->warnings,
	                g_strdup_printf("%s is not the guest's %s: it is for %s, the guest is %s", image_path(image),
	                                name, arch_name(image_arch(image)), arch_name(symbols->arch)));
	return false;
}

/* Symbols of another build would be wrong without a sign of it. */
static bool is_same_build(struct user_symbols *symbols, const struct image *image, const char *name,
                          const uint8_t *build_id, size_t n)
{
	size_t have_bytes;
	const uint8_t *have = image_build_id(image, &have_bytes);

	if (!build_id || (have && have_bytes >= n && memcmp(have, build_id, n) == 0))
		return true;
	g_autofree char *ours = have ? hex_encode(have, have_bytes) : g_strdup("none");
	g_autofree char *theirs = hex_encode(build_id, n);

	g_ptr_array_add(symbols->warnings,
	                g_strdup_printf("%s is not the guest's %s: its build-id is %s, the guest's %s%s",
	                                image_path(image), name, ours, theirs,
	                                symbols->force ? "; its symbols are used all the same" : ""));
	return symbols->force;
}

enum source { SOURCE_SYMFS, SOURCE_INITRD, SOURCE_DEBUGINFOD, SOURCE_MODULES, SOURCE_COUNT };

/* "[virtio_blk]" is a kernel module; "/bin/sh" a program or library. */
static bool is_module(const char *name)
{
	return name[0] == '[';
}

static bool is_file(const char *name)
{
	return is_module(name) || (name[0] == '/' && name[1] != '/');
}

/* Takes the reason over, as a warning. That vprof-parse is not there is the same for all files. */
static void warning_take(struct user_symbols *symbols, GError *why)
{
	const bool unavailable = g_error_matches(why, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE);

	if (why && !(unavailable && symbols->unavailable))
		g_ptr_array_add(symbols->warnings, g_strdup(why->message));
	symbols->unavailable = symbols->unavailable || unavailable;
	g_clear_error(&why);
}

static int module_read(struct user_symbols *symbols, const char *name, char **path)
{
	g_autofree char *module = g_strndup(name + 1, strcspn(name + 1, "]"));
	const char *found = symbols->modules ? module_folder_find(symbols->modules, module) : NULL;
	GError *why = NULL;
	int fd = found ? module_file_read(found, &why) : -1;

	warning_take(symbols, why);
	*path = g_strdup(found);
	return fd;
}

static int initrd_read(struct user_symbols *symbols, const char *name, char **path)
{
	GError *why = NULL;
	int fd = symbols->initrd ? user_archive_find(symbols->initrd, name, &why) : -1;

	warning_take(symbols, why);
	*path = g_strdup_printf("%s in %s", name + 1, symbols->initrd ? user_archive_path(symbols->initrd) : "");
	return fd;
}

/* The copy that one source has, and where: a file or sealed memory; -1 when it has none. */
static int source_read(struct user_symbols *symbols, enum source source, const char *name, const uint8_t *build_id,
                       size_t n, char **path)
{
	if ((source == SOURCE_MODULES) != is_module(name))
		return -1;
	switch (source) {
	case SOURCE_SYMFS:
		*path = symbols->symfs ? g_strconcat(symbols->symfs, name, NULL) : NULL;
		return symbols->symfs ? user_file_symfs(symbols->symfs, name) : -1;
	case SOURCE_INITRD:
		return initrd_read(symbols, name, path);
	case SOURCE_DEBUGINFOD:
		*path = g_strdup("what debuginfod has");
		return symbols->debuginfod && build_id ? user_file_debuginfod(build_id, n, symbols->executables) : -1;
	default:
		return module_read(symbols, name, path);
	}
}

/* The same, if it is of the guest's build. */
static struct image *source_open(struct user_symbols *symbols, enum source source, const char *name,
                                 const uint8_t *build_id, size_t n)
{
	g_autofree char *path = NULL;
	int fd = source_read(symbols, source, name, build_id, n, &path);
	struct image *image = NULL;

	/* A file other than ELF is a script, or data that is executed: it has no symbols, which needs no message. */
	if (fd >= 0) {
		image = image_open_fd(path, is_module(name) ? IMAGE_MODULE : IMAGE_PROGRAM, fd, NULL);
		close(fd);
	}
	if (!image || (is_same_arch(symbols, image, name) && is_same_build(symbols, image, name, build_id, n)))
		return image;
	image_free(image);
	return NULL;
}

/* From the first source that has one with symbols. */
static struct user_copy *copy_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t n)
{
	struct user_copy *copy = g_new0(struct user_copy, 1);

	for (enum source source = 0; source < SOURCE_COUNT && !copy->symtab; source++) {
		struct image *image = source_open(symbols, source, name, build_id, n);

		GError *why = NULL;

		if (image)
			copy_take(copy, image, UINT64_MAX, &why);
		warning_take(symbols, why);
		image_free(image);
	}
	return copy;
}

struct image *user_symbols_open(struct user_symbols *symbols, const char *name, const uint8_t *build_id,
                                size_t build_id_bytes)
{
	struct image *image = NULL;

	for (enum source source = 0; is_file(name) && source < SOURCE_COUNT && !image; source++)
		image = source_open(symbols, source, name, build_id, build_id_bytes);
	return image;
}

static char *given_key(const uint8_t *build_id, size_t n)
{
	return hex_encode(build_id, MIN(n, RECORD_BUILD_ID_BYTES_MAX));
}

void user_symbols_give(struct user_symbols *symbols, const uint8_t *build_id, size_t build_id_bytes,
                       struct user_copy *copy)
{
	g_hash_table_replace(symbols->given, given_key(build_id, build_id_bytes), copy);
}

/* What no source has symbols of may have been given. */
static const struct user_copy *given_get(const struct user_symbols *symbols, const uint8_t *build_id, size_t n)
{
	g_autofree char *key = build_id ? given_key(build_id, n) : NULL;

	return key ? g_hash_table_lookup(symbols->given, key) : NULL;
}

static const struct user_copy *copy_get(struct user_symbols *symbols, const char *name, const uint8_t *build_id,
                                        size_t n)
{
	g_autofree char *build = hex_encode(build_id, build_id ? n : 0);
	g_autofree char *key = g_strdup_printf("%s %s", name, build);
	struct user_copy *copy = g_hash_table_lookup(symbols->copies, key);

	if (!copy) {
		copy = copy_find(symbols, name, build_id, n);
		g_hash_table_insert(symbols->copies, g_steal_pointer(&key), copy);
	}
	const struct user_copy *given = copy->symtab ? NULL : given_get(symbols, build_id, n);

	return given ? given : copy;
}

bool user_symbols_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t build_id_bytes,
                       uint64_t file_offset, struct user_symbol *symbol)
{
	const struct user_copy *copy = is_file(name) ? copy_get(symbols, name, build_id, build_id_bytes) : NULL;

	for (size_t i = 0; copy && copy->symtab && i < copy->n_segments; i++) {
		const struct image_segment *segment = &copy->segments[i];
		uint64_t offset = file_offset - segment->file_offset;
		const struct symbol *found =
			offset < segment->memory_bytes ? symtab_find(copy->symtab, segment->gva + offset) : NULL;

		if (!found || found->address < segment->gva)
			continue;
		*symbol = (struct user_symbol){found->name, segment->file_offset + (found->address - segment->gva),
		                               found->size};
		return true;
	}
	return false;
}
