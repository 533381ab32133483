// SPDX-License-Identifier: BSD-2-Clause
/* By libdw, which checks the bytes. */
#include "guest/dwarf_member.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <glib.h>
#include <string.h>

#define NESTING_MAX 16u

struct dwarf_types {
	Elf *elf;
	Dwarf *dwarf;
	GHashTable *found; /* name of a structure (char *) -> Dwarf_Die *: it is asked about again */
};

struct dwarf_types *dwarf_types_new(const uint8_t *elf, size_t bytes)
{
	struct dwarf_types *types = g_new0(struct dwarf_types, 1);

	types->found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	elf_version(EV_CURRENT);
	/* Not written to: the byte order is this machine's, and nothing asks for a change. */
	types->elf = elf_memory((char *)(uintptr_t)elf, bytes);
	if (types->elf)
		types->dwarf = dwarf_begin_elf(types->elf, DWARF_C_READ, NULL);
	if (types->dwarf)
		return types;
	dwarf_types_free(types);
	return NULL;
}

void dwarf_types_free(struct dwarf_types *types)
{
	if (!types)
		return;
	g_hash_table_unref(types->found);
	dwarf_end(types->dwarf);
	elf_end(types->elf);
	g_free(types);
}

/* The structure that an anonymous member has for its type. */
static bool member_type(Dwarf_Die *member, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(dwarf_attr_integrate(member, DW_AT_type, &attribute), type) &&
	       dwarf_peel_type(type, type) == 0 &&
	       (dwarf_tag(type) == DW_TAG_structure_type || dwarf_tag(type) == DW_TAG_union_type);
}

/* False for a bit-field. A union's members have no location: they start where it does. */
static bool member_offset(Dwarf_Die *member, uint32_t *offset)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_hasattr(member, DW_AT_data_bit_offset) || dwarf_hasattr(member, DW_AT_bit_size))
		return false;
	if (dwarf_attr(member, DW_AT_data_member_location, &attribute) && dwarf_formudata(&attribute, &value) != 0)
		return false;
	*offset = (uint32_t)value;
	return value <= UINT32_MAX;
}

static bool member_find(Dwarf_Die *structure, const char *name, unsigned depth, uint32_t *offset)
{
	Dwarf_Die member, type;
	uint32_t outer, inner;

	if (dwarf_child(structure, &member) != 0)
		return false;
	do {
		const char *member_name = dwarf_diename(&member);

		if (dwarf_tag(&member) != DW_TAG_member || !member_offset(&member, &outer))
			continue;
		if (member_name && strcmp(member_name, name) == 0) {
			*offset = outer;
			return true;
		}
		if (!member_name && depth < NESTING_MAX && member_type(&member, &type) &&
		    member_find(&type, name, depth + 1, &inner))
			return !__builtin_add_overflow(outer, inner, offset);
	} while (dwarf_siblingof(&member, &member) == 0);
	return false;
}

/* Looks at the outermost level of one unit, where C has its types. */
static bool unit_find(Dwarf_Die *unit, const char *structure, const char *member, Dwarf_Die *die, uint32_t *offset)
{
	if (dwarf_child(unit, die) != 0)
		return false;
	do {
		const char *name = dwarf_tag(die) == DW_TAG_structure_type ? dwarf_diename(die) : NULL;

		if (name && strcmp(name, structure) == 0 && member_find(die, member, 0, offset))
			return true;
	} while (dwarf_siblingof(die, die) == 0);
	return false;
}

bool dwarf_member(struct dwarf_types *types, const char *structure, const char *member, uint32_t *offset)
{
	Dwarf_Die *known = g_hash_table_lookup(types->found, structure);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit, die;

	if (known && member_find(known, member, 0, offset))
		return true;
	while (dwarf_get_units(types->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		if (unit_find(&unit, structure, member, &die, offset)) {
			g_hash_table_replace(types->found, g_strdup(structure), g_memdup2(&die, sizeof(die)));
			return true;
		}
	}
	return false;
}

bool dwarf_size(struct dwarf_types *types, const char *structure, uint32_t *bytes)
{
	Dwarf_Die *known = g_hash_table_lookup(types->found, structure);
	int size = known ? dwarf_bytesize(known) : -1;

	if (size < 0)
		return false;
	*bytes = (uint32_t)size;
	return true;
}
