// SPDX-License-Identifier: BSD-2-Clause
#include "linux/syscall_table.h"

#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 2048u
#define TEXT_BYTES_MAX 64u
#define PREFIX "sys_"

struct parameter {
	char *name, *type;
};

struct call {
	char *name;
	unsigned n;
	struct parameter parameters[SYSCALL_PARAMETERS_MAX];
};

struct syscall_table {
	GHashTable *calls; /* name to struct call */
	char **names;
};

/*
 * struct syscall_metadata, its beginning: it has never changed, but that from Linux 6.18 on a number of parameters has
 * 7 bits, and flags are behind it.
 */
struct metadata {
	uint64_t name;
	int32_t number;
	uint8_t parameters, flags[3];
	uint64_t types, names;
};
_Static_assert(sizeof(struct metadata) == 32, "no padding");
#define PARAMETERS_MASK 0x7fu

static void call_free(gpointer data)
{
	struct call *call = data;

	for (unsigned i = 0; i < SYSCALL_PARAMETERS_MAX; i++) {
		g_free(call->parameters[i].name);
		g_free(call->parameters[i].type);
	}
	g_free(call->name);
	g_free(call);
}

/* ---- what is read in the image ---- */

static bool read_at(const struct image *image, uint64_t address, void *to, size_t bytes)
{
	size_t n;
	const uint8_t *data = image_at(image, address, &n);

	if (!data || n < bytes)
		return false;
	memcpy(to, data, bytes);
	return true;
}

/* The text to which the word at `address` points: a name or a type as C writes it. */
static char *text_at(const struct image *image, uint64_t address)
{
	uint64_t pointer;
	size_t n;

	if (!read_at(image, address, &pointer, sizeof(pointer)))
		return NULL;
	const char *data = (const char *)image_at(image, pointer + image_slide(image), &n);
	const size_t length = data ? strnlen(data, MIN(n, TEXT_BYTES_MAX)) : 0;

	if (length == 0 || length == MIN(n, TEXT_BYTES_MAX))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (!g_ascii_isalnum(data[i]) && !strchr("_ *", data[i]))
			return NULL;
	return g_strndup(data, length);
}

static bool parameters_read(const struct image *image, const struct metadata *metadata, struct call *call)
{
	const uint64_t slide = image_slide(image);

	call->n = metadata->parameters & PARAMETERS_MASK;
	if (call->n > SYSCALL_PARAMETERS_MAX)
		return false;
	for (unsigned i = 0; i < call->n; i++) {
		call->parameters[i].name = text_at(image, metadata->names + slide + i * sizeof(uint64_t));
		call->parameters[i].type = text_at(image, metadata->types + slide + i * sizeof(uint64_t));
		if (!call->parameters[i].name || !call->parameters[i].type)
			return false;
	}
	return true;
}

static void call_read(struct syscall_table *table, const struct image *image, uint64_t address)
{
	struct metadata metadata;
	g_autofree char *name = text_at(image, address + offsetof(struct metadata, name));

	if (!name || !g_str_has_prefix(name, PREFIX) || !read_at(image, address, &metadata, sizeof(metadata)))
		return;
	struct call *call = g_new0(struct call, 1);

	call->name = g_strdup(name + strlen(PREFIX));
	if (parameters_read(image, &metadata, call))
		g_hash_table_replace(table->calls, call->name, call);
	else
		call_free(call);
}

static void table_read(struct syscall_table *table, const struct image *image, const struct symtab *symtab)
{
	const uint64_t start = symtab_address(symtab, "__start_syscalls_metadata"),
		       end = symtab_address(symtab, "__stop_syscalls_metadata");
	uint64_t pointer;

	if (start == 0 || end <= start || end - start > CALLS_MAX * sizeof(pointer))
		return;
	for (uint64_t at = start; at < end && read_at(image, at, &pointer, sizeof(pointer)); at += sizeof(pointer))
		call_read(table, image, pointer + image_slide(image));
}

static int compare_names(gconstpointer left, gconstpointer right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

struct syscall_table *syscall_table_load(const struct image *image, const struct symtab *symtab)
{
	struct syscall_table *table = g_new0(struct syscall_table, 1);
	guint n;

	table->calls = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, call_free);
	table_read(table, image, symtab);
	table->names = (char **)g_hash_table_get_keys_as_array(table->calls, &n);
	qsort(table->names, n, sizeof(*table->names), compare_names);
	return table;
}

void syscall_table_free(struct syscall_table *table)
{
	if (!table)
		return;
	g_free(table->names);
	g_hash_table_unref(table->calls);
	g_free(table);
}

const char *const *syscall_table_names(const struct syscall_table *table)
{
	return (const char *const *)table->names;
}

bool syscall_table_has(const struct syscall_table *table, const char *name)
{
	return g_hash_table_contains(table->calls, name);
}

bool syscall_table_parameter(const struct syscall_table *table, const struct btf *btf, const char *name, unsigned i,
                             char **parameter, struct btf_value *value)
{
	const struct call *call = g_hash_table_lookup(table->calls, name);

	if (!call || i >= call->n)
		return false;
	*parameter = g_strdup(call->parameters[i].name);
	btf_value_named(btf, call->parameters[i].type, value);
	return true;
}
