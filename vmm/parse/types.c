// SPDX-License-Identifier: BSD-2-Clause
/* Structures and their members, by the DWARF of a kernel that was built without BTF (libdw). */
#include <dwarf.h>
#include <string.h>

#include "lib/parser/table.h"
#include "parse/dwarf_file.h"
#include "parse/parse.h"

#define NESTING_MAX 16u
#define MEMBERS_MAX 65536u

struct listing {
	GHashTable *wanted; /* names that are not found yet; strings of the request */
	GArray *structures; /* of struct vprof_parse_structure */
	GArray *members;    /* of struct vprof_parse_member */
	GByteArray *text;
};

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

/* 0: not known, or more than any structure of a kernel has. */
static uint32_t member_bytes(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word bytes;
	Dwarf_Die type;

	if (!dwarf_formref_die(dwarf_attr_integrate(member, DW_AT_type, &attribute), &type) ||
	    dwarf_aggregate_size(&type, &bytes) != 0 || bytes > UINT32_MAX)
		return 0;
	return (uint32_t)bytes;
}

/* With those of anonymous members in their place. */
static void members_list(struct listing *listing, Dwarf_Die *structure, uint32_t base, unsigned depth)
{
	Dwarf_Die member, type;
	uint32_t offset;

	if (dwarf_child(structure, &member) != 0)
		return;
	do {
		const char *name = dwarf_diename(&member);

		if (dwarf_tag(&member) != DW_TAG_member || !member_offset(&member, &offset) ||
		    __builtin_add_overflow(base, offset, &offset))
			continue;
		if (name && listing->members->len < MEMBERS_MAX) {
			const struct vprof_parse_member found = {listing->structures->len,
			                                         table_text_add(listing->text, name), offset,
			                                         member_bytes(&member)};

			g_array_append_val(listing->members, found);
		} else if (!name && depth < NESTING_MAX && member_type(&member, &type)) {
			members_list(listing, &type, offset, depth + 1);
		}
	} while (dwarf_siblingof(&member, &member) == 0);
}

/* A declaration has no members, and its definition may be in another unit. */
static void structure_list(struct listing *listing, Dwarf_Die *die, const char *name)
{
	guint before = listing->members->len;
	int bytes = dwarf_bytesize(die);

	members_list(listing, die, 0, 0);
	if (listing->members->len == before)
		return;
	const struct vprof_parse_structure found = {table_text_add(listing->text, name),
	                                            bytes > 0 ? (uint32_t)bytes : 0};

	g_array_append_val(listing->structures, found);
	g_hash_table_remove(listing->wanted, name);
}

/* Looks at the outermost level of one unit, where C has its types. */
static void unit_list(struct listing *listing, Dwarf_Die *unit)
{
	Dwarf_Die die;

	if (dwarf_child(unit, &die) != 0)
		return;
	do {
		const char *name = dwarf_tag(&die) == DW_TAG_structure_type ? dwarf_diename(&die) : NULL;

		if (name && g_hash_table_contains(listing->wanted, name))
			structure_list(listing, &die, name);
	} while (g_hash_table_size(listing->wanted) > 0 && dwarf_siblingof(&die, &die) == 0);
}

static void units_list(struct listing *listing, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (g_hash_table_size(listing->wanted) > 0 && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		unit_list(listing, &unit);
}

static bool answer_put(const struct listing *listing, struct parse_answer *answer, GError **error)
{
	g_autoptr(GByteArray) tables = g_byte_array_new();

	table_add(tables, VPROF_PARSE_TABLE_STRUCTURES, sizeof(struct vprof_parse_structure), listing->structures->data,
	          listing->structures->len);
	table_add(tables, VPROF_PARSE_TABLE_MEMBERS, sizeof(struct vprof_parse_member), listing->members->data,
	          listing->members->len);
	table_add(tables, VPROF_PARSE_TABLE_TEXT, 1, listing->text->data, listing->text->len);
	return parse_answer_put(answer, tables->data, tables->len, error);
}

bool parse_types(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error)
{
	struct dwarf_file *file = dwarf_file_new(input->bytes, input->n);
	struct listing listing = {.wanted = g_hash_table_new(g_str_hash, g_str_equal),
	                          .structures = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_structure)),
	                          .members = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_member)),
	                          .text = g_byte_array_new()};
	bool done = file != NULL;

	for (const char *at = request->text; at < request->text + request->text_bytes; at += strlen(at) + 1)
		g_hash_table_add(listing.wanted, (char *)at);
	if (!file) {
		parse_fail(error, "it has no debug information");
	} else {
		units_list(&listing, dwarf_file_dwarf(file));
		done = answer_put(&listing, answer, error);
	}
	dwarf_file_free(file);
	g_hash_table_unref(listing.wanted);
	g_array_unref(listing.structures);
	g_array_unref(listing.members);
	g_byte_array_unref(listing.text);
	return done;
}
