// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/user_symbols.h"

#include <string.h>

#include "lib/record/hex.h"
#include "lib/symbol/image.h"
#include "lib/symbol/module_file.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_file.h"

/* A copy of a file, or what there is instead: nothing. */
struct copy {
	struct symtab *symtab; /* NULL: no copy, or one without symbols */
	struct image_segment *segments;
	size_t n_segments;
};

struct user_symbols {
	char *symfs, *initrd;
	struct module_folder *modules; /* NULL */
	bool debuginfod, force;
	GHashTable *copies; /* "NAME BUILD-ID" -> struct copy * */
	GPtrArray *warnings;
};

static void copy_free(void *data)
{
	struct copy *copy = data;

	symtab_free(copy->symtab);
	g_free(copy->segments);
	g_free(copy);
}

struct user_symbols *user_symbols_new(const struct user_symbol_sources *sources)
{
	struct user_symbols *symbols = g_new0(struct user_symbols, 1);

	symbols->symfs = g_strdup(sources->symfs);
	symbols->initrd = g_strdup(sources->initrd);
	symbols->modules = sources->modules ? module_folder_new(sources->modules) : NULL;
	symbols->debuginfod = sources->debuginfod;
	symbols->force = sources->force;
	symbols->copies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, copy_free);
	symbols->warnings = g_ptr_array_new_with_free_func(g_free);
	return symbols;
}

void user_symbols_free(struct user_symbols *symbols)
{
	if (!symbols)
		return;
	g_hash_table_unref(symbols->copies);
	g_ptr_array_unref(symbols->warnings);
	module_folder_free(symbols->modules);
	g_free(symbols->symfs);
	g_free(symbols->initrd);
	g_free(symbols);
}

const GPtrArray *user_symbols_warnings(const struct user_symbols *symbols)
{
	return symbols->warnings;
}

bool user_symbols_have_debuginfod(void)
{
#ifdef VPROF_HAVE_DEBUGINFOD
	return true;
#else
	return false;
#endif
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

static GBytes *module_read(struct user_symbols *symbols, const char *name, char **path)
{
	g_autofree char *module = g_strndup(name + 1, strcspn(name + 1, "]"));
	const char *found = module_folder_find(symbols->modules, module);
	g_autoptr(GError) error = NULL;
	GBytes *bytes = found ? module_file_read(found, &error) : NULL;

	if (error)
		g_ptr_array_add(symbols->warnings, g_strdup(error->message));
	*path = g_strdup(found);
	return bytes;
}

/* The copy that one source has, and where; NULL when it has none. */
static GBytes *source_read(struct user_symbols *symbols, enum source source, const char *name, const uint8_t *build_id,
                           size_t n, char **path)
{
	if ((source == SOURCE_MODULES) != is_module(name))
		return NULL;
	switch (source) {
	case SOURCE_SYMFS:
		*path = symbols->symfs != NULL ? g_strconcat(symbols->symfs, name, NULL) : NULL;
		return symbols->symfs ? user_file_symfs(symbols->symfs, name) : NULL;
	case SOURCE_INITRD:
		*path = g_strdup_printf("%s in %s", name + 1, symbols->initrd != NULL ? symbols->initrd : "");
		return symbols->initrd ? user_file_initrd(symbols->initrd, name) : NULL;
	case SOURCE_DEBUGINFOD:
		*path = g_strdup("what debuginfod has");
		return symbols->debuginfod && build_id ? user_file_debuginfod(build_id, n) : NULL;
	default:
		return symbols->modules ? module_read(symbols, name, path) : NULL;
	}
}

/* The same, if it is of the guest's build. */
static struct image *source_open(struct user_symbols *symbols, enum source source, const char *name,
                                 const uint8_t *build_id, size_t n)
{
	g_autofree char *path = NULL;
	g_autoptr(GBytes) bytes = source_read(symbols, source, name, build_id, n, &path);
	struct image *image = NULL;

	/* A file other than ELF is a script, or data that is executed: it has no symbols, which needs no message. */
	if (bytes)
		image = is_module(name) ? image_new_module(path, bytes, NULL) : image_new_program(path, bytes, NULL);
	if (!image || is_same_build(symbols, image, name, build_id, n))
		return image;
	image_free(image);
	return NULL;
}

/* From the first source that has one with symbols. */
static struct copy *copy_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t n)
{
	struct copy *copy = g_new0(struct copy, 1);

	for (enum source source = 0; source < SOURCE_COUNT && !copy->symtab; source++) {
		struct image *image = source_open(symbols, source, name, build_id, n);
		const struct image_segment *segments;

		if (!image)
			continue;
		segments = image_segments(image, &copy->n_segments);
		g_free(copy->segments);
		copy->segments = g_memdup2(segments, copy->n_segments * sizeof(*segments));
		copy->symtab = symtab_load_program(image, NULL);
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

static const struct copy *copy_get(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t n)
{
	g_autofree char *build = hex_encode(build_id, build_id ? n : 0);
	g_autofree char *key = g_strdup_printf("%s %s", name, build);
	struct copy *copy = g_hash_table_lookup(symbols->copies, key);

	if (!copy) {
		copy = copy_find(symbols, name, build_id, n);
		g_hash_table_insert(symbols->copies, g_steal_pointer(&key), copy);
	}
	return copy;
}

bool user_symbols_find(struct user_symbols *symbols, const char *name, const uint8_t *build_id, size_t build_id_bytes,
                       uint64_t file_offset, struct user_symbol *symbol)
{
	const struct copy *copy = is_file(name) ? copy_get(symbols, name, build_id, build_id_bytes) : NULL;

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
