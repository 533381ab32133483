// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/resolver.h"

#include <glib.h>

#include "lib/record/exit_name.h"

struct resolver_ops {
	bool (*find)(const void *source, uint64_t ip, struct place *place);
};

struct resolver {
	const struct resolver_ops *ops;
	const void *source;
	GStringChunk *exit_names;
};

static bool recording_find(const void *source, uint64_t ip, struct place *place)
{
	const struct recording_symbol *symbol = recording_symbol_find(source, ip);

	if (symbol == NULL)
		return false;
	place->symbol = symbol->name;
	place->offset = ip - symbol->address;
	if (symbol->module[0] != '\0')
		place->module = symbol->module;
	return true;
}

static bool image_find(const void *source, uint64_t ip, struct place *place)
{
	const struct symbol *symbol = symtab_find(source, ip);

	if (symbol == NULL)
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
	resolver->exit_names = g_string_chunk_new(1024);
	return resolver;
}

struct resolver *resolver_new_recording(const struct recording *recording)
{
	return resolver_new(&recording_ops, recording);
}

struct resolver *resolver_new_symtab(const struct symtab *symtab)
{
	return resolver_new(&image_ops, symtab);
}

void resolver_free(struct resolver *resolver)
{
	if (resolver == NULL)
		return;
	g_string_chunk_free(resolver->exit_names);
	g_free(resolver);
}

static bool exit_find(struct resolver *resolver, uint64_t ip, struct place *place)
{
	char name[EXIT_NAME_BYTES];

	exit_name_format(ip, name);
	place->symbol = g_string_chunk_insert_const(resolver->exit_names, name);
	return true;
}

void resolver_find(struct resolver *resolver, enum profile_mode mode, uint64_t ip, struct place *place)
{
	static const char *const modules[] = {
		[PROFILE_KERNEL] = "[kernel]",
		[PROFILE_USER] = "[user]",
		[PROFILE_HYPERVISOR] = "[vmm]",
		[PROFILE_OTHER] = "[other]",
	};

	*place = (struct place){.symbol = "[unknown]", .module = modules[mode]};
	if (mode == PROFILE_HYPERVISOR)
		place->known = exit_find(resolver, ip, place);
	else
		place->known = resolver->ops->find(resolver->source, ip, place);
}
