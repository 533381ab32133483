// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/resolver.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <vprof/exit.h>

#include "lib/record/exit_name.h"
#include "lib/record/text.h"

struct resolver_ops {
	bool (*find)(const void *source, uint64_t ip, struct place *place);
};

#define FOUND_SLOTS 4096u

/* What was found before, in the slot of its address. */
struct found {
	uint64_t ip;
	const struct mapping *mapping;
	enum profile_mode mode;
	struct place place; /* its symbol is NULL in an empty slot */
};

struct resolver {
	const struct resolver_ops *ops;
	const void *source;
	const struct recording *recording; /* NULL: it has no user symbols */
	struct user_symbols *user;         /* NULL */
	GHashTable *learned;               /* struct learned by its ip */
	GStringChunk *texts;               /* names that are put together here */
	struct found *found;               /* FOUND_SLOTS */
};

struct learned {
	uint64_t ip; /* first: it is the key */
	const char *file, *symbol;
	uint64_t offset;
};

static bool recording_find(const void *source, uint64_t ip, struct place *place)
{
	const struct recording_symbol *symbol = recording_symbol_find(source, ip);

	if (!symbol)
		return false;
	place->symbol = symbol->name;
	place->offset = ip - symbol->address;
	if (symbol->module[0] != '\0')
		place->module = symbol->module;
	return true;
}

static bool image_find(const void *source, uint64_t ip, struct place *place)
{
	const struct symbol *symbol = source ? symtab_find(source, ip) : NULL;

	if (!symbol)
		return false;
	place->symbol = symbol->name;
	place->offset = ip - symbol->address;
	return true;
}

static const struct resolver_ops recording_ops = {.find = recording_find};
static const struct resolver_ops image_ops = {.find = image_find};

static struct resolver *resolver_new(const struct resolver_ops *ops, const void *source)
{
	struct resolver *resolver = g_new0(struct resolver, 1);

	resolver->ops = ops;
	resolver->source = source;
	resolver->learned = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
	resolver->texts = g_string_chunk_new(1024);
	resolver->found = g_new0(struct found, FOUND_SLOTS);
	return resolver;
}

struct resolver *resolver_new_recording(const struct recording *recording)
{
	struct resolver *resolver = resolver_new(&recording_ops, recording);

	resolver->recording = recording;
	return resolver;
}

struct resolver *resolver_new_symtab(const struct symtab *symtab, const struct recording *recording)
{
	struct resolver *resolver = resolver_new(&image_ops, symtab);

	resolver->recording = recording;
	return resolver;
}

/* By Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4). */
static struct found *found_slot(struct resolver *resolver, uint64_t ip)
{
	return &resolver->found[ip * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}
_Static_assert(FOUND_SLOTS == 1u << (64 - 52), "the hash has a slot");

void resolver_set_user(struct resolver *resolver, struct user_symbols *user)
{
	resolver->user = user;
	memset(resolver->found, 0, FOUND_SLOTS * sizeof(*resolver->found));
}

void resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return;
	g_hash_table_unref(resolver->learned);
	g_string_chunk_free(resolver->texts);
	g_free(resolver->found);
	g_free(resolver);
}

void resolver_learn(struct resolver *resolver, uint64_t ip, const char *file, const char *symbol, uint64_t offset)
{
	g_autofree char *its_file = text_printable(file), *name = text_printable(symbol);
	struct learned *learned = g_new(struct learned, 1);

	*learned = (struct learned){ip, g_string_chunk_insert_const(resolver->texts, its_file),
	                            g_string_chunk_insert_const(resolver->texts, name), offset};
	g_hash_table_replace(resolver->learned, &learned->ip, learned);
	found_slot(resolver, ip)->place.symbol = NULL;
}

/* Work of the host for the guest; without a name, its address is all that is known. */
static bool host_find(struct resolver *resolver, uint64_t ip, struct place *place)
{
	const struct recording_symbol *symbol =
		resolver->recording ? recording_host_symbol_find(resolver->recording, ip) : NULL;
	char address[2 + 16 + 1];

	place->module = "[host]";
	if (symbol) {
		place->symbol = symbol->name;
		place->module = symbol->module;
		place->offset = ip - symbol->address;
		/* A single byte is a place in a file without symbols (lib/symbol/host_symbols.h). */
		return symbol->size > 1;
	}
	snprintf(address, sizeof(address), "0x%" PRIx64, ip);
	place->symbol = g_string_chunk_insert_const(resolver->texts, address);
	return false;
}

static bool exit_find(struct resolver *resolver, uint64_t ip, struct place *place)
{
	char name[EXIT_NAME_BYTES];

	exit_name_format(ip, name);
	if (vprof_exit_reason(ip) == VPROF_EXIT_REASON_NESTED)
		place->module = "[nested]";
	place->symbol = g_string_chunk_insert_const(resolver->texts, name);
	return true;
}

/* Of the file that was mapped there at the time. */
static bool learned_find(const struct resolver *resolver, const struct mapped_file *file, uint64_t ip,
                         struct place *place)
{
	const struct learned *learned = g_hash_table_lookup(resolver->learned, &ip);

	if (!learned || strcmp(learned->file, file->name) != 0)
		return false;
	place->symbol = learned->symbol;
	place->offset = learned->offset;
	return true;
}

/* In the file that is mapped there. */
static bool file_find(struct resolver *resolver, const struct mapping *mapping, uint64_t ip, struct place *place)
{
	const struct mapped_file *file = mapping->file;
	const uint8_t *build_id = file->build_id_bytes != 0 ? file->build_id : NULL;
	uint64_t offset = mapping_file_offset(mapping, ip);
	const struct recording_symbol *recorded;
	struct user_symbol symbol;

	if (file->python) {
		place->symbol = file->python;
		place->offset = offset;
		return true;
	}
	if (resolver->user &&
	    user_symbols_find(resolver->user, file->path.raw, build_id, file->build_id_bytes, offset, &symbol)) {
		place->symbol = symbol.name;
		place->offset = offset - symbol.file_offset;
		return true;
	}
	if (learned_find(resolver, file, ip, place))
		return true;
	/* A recording has the symbols of the first file of that path. */
	if (!resolver->recording || file->is_another)
		return false;
	recorded = recording_user_symbol_find(resolver->recording, file->name, offset);
	if (!recorded)
		return false;
	place->symbol = recorded->name;
	place->offset = offset - recorded->address;
	return true;
}

/* What is said of a file without symbols. */
static void file_describe(struct resolver *resolver, const struct mapping *mapping, uint64_t ip, struct place *place)
{
	const char *slash = strrchr(mapping->file->name, '/');
	g_autofree char *text = g_strdup_printf("%s+0x%" G_GINT64_MODIFIER "x", slash ? slash + 1 : mapping->file->name,
	                                        mapping_file_offset(mapping, ip));

	place->symbol = g_string_chunk_insert_const(resolver->texts, text);
}

static void place_find(struct resolver *resolver, enum profile_mode mode, uint64_t ip, const struct mapping *mapping,
                       struct place *place)
{
	static const char *const modules[] = {
		[PROFILE_KERNEL] = "[kernel]",
		[PROFILE_USER] = "[user]",
		[PROFILE_HYPERVISOR] = "[vmm]",
		[PROFILE_OTHER] = "[other]",
	};

	*place = (struct place){.symbol = "[unknown]", .module = mapping ? mapping->file->name : modules[mode]};
	if (mode == PROFILE_HYPERVISOR)
		place->known = vprof_exit_is_host(ip) ? host_find(resolver, ip, place) : exit_find(resolver, ip, place);
	else if (mode == PROFILE_KERNEL && vprof_is_real_mode(ip))
		*place = (struct place){VPROF_REAL_MODE_NAME, RESOLVER_REAL_MODE, ip - VPROF_REAL_MODE, true};
	else
		place->known = (mapping && file_find(resolver, mapping, ip, place)) ||
		               resolver->ops->find(resolver->source, ip, place);
	if (!place->known && mapping)
		file_describe(resolver, mapping, ip, place);
}

void resolver_find(struct resolver *resolver, enum profile_mode mode, uint64_t ip, const struct mapping *mapping,
                   struct place *place)
{
	struct found *found = found_slot(resolver, ip);

	if (!found->place.symbol || found->ip != ip || found->mapping != mapping || found->mode != mode) {
		*found = (struct found){.ip = ip, .mapping = mapping, .mode = mode};
		place_find(resolver, mode, ip, mapping, &found->place);
	}
	*place = found->place;
}
