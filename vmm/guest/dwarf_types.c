// SPDX-License-Identifier: BSD-2-Clause
#include "guest/dwarf_types.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/parser/table.h"

#define ANSWER_BYTES_MAX (16u << 20)

/* What this folder looks for, asked about at once: each question goes through all units until it has its structures. */
static const char *const usual[] = {
	"task_struct",   "mm_struct",     "vm_area_struct",
	"file",          "path",          "dentry",
	"qstr",          "inode",         "super_block",
	"vfsmount",      "mount",         "css_set",
	"cgroup",        "kernfs_node",   "module",
	"module_layout", "module_memory", "module_notes_attrs",
	"bin_attribute", "mod_kallsyms",  "mod_arch_specific",
	"pcpu_hot",      "maple_tree",    "maple_node",
};

struct member {
	uint32_t offset, bytes;
};

struct structure {
	GHashTable *members; /* name (char *) -> struct member * */
	uint32_t bytes;      /* 0: not known */
};

struct dwarf_types {
	int file; /* sealed memory with the debug information */
	uint64_t file_bytes;
	GHashTable *structures; /* name (char *) -> struct structure *; without members, it was looked for in vain */
};

static void structure_free(void *data)
{
	struct structure *structure = data;

	g_hash_table_unref(structure->members);
	g_free(structure);
}

static struct structure *structure_add(struct dwarf_types *types, const char *name)
{
	struct structure *structure = g_new0(struct structure, 1);

	structure->members = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	g_hash_table_replace(types->structures, g_strdup(name), structure);
	return structure;
}

/* ---- answers ---- */

struct answer {
	const struct vprof_parse_structure *structures;
	const struct vprof_parse_member *members;
	const char *text;
	size_t n_structures, n_members, text_bytes;
};

static bool structures_take(struct dwarf_types *types, const struct answer *answer, struct structure **found)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

	for (size_t i = 0; i < answer->n_structures; i++) {
		const struct vprof_parse_structure *structure = &answer->structures[i];

		/* A second one of a name would take the place of the first, which has members to come. */
		if (structure->name >= answer->text_bytes ||
		    !g_hash_table_add(seen, (char *)answer->text + structure->name))
			return false;
		found[i] = structure_add(types, answer->text + structure->name);
		found[i]->bytes = structure->bytes;
	}
	return true;
}

static bool members_take(const struct answer *answer, struct structure **found)
{
	for (size_t i = 0; i < answer->n_members; i++) {
		const struct vprof_parse_member *member = &answer->members[i];

		if (member->structure >= answer->n_structures || member->name >= answer->text_bytes ||
		    member->offset == UINT32_MAX)
			return false;
		GHashTable *members = found[member->structure]->members;
		const char *name = answer->text + member->name;
		const struct member taken = {member->offset, member->bytes};

		/* The first of a name, as where an anonymous member has the same. */
		if (!g_hash_table_contains(members, name))
			g_hash_table_insert(members, g_strdup(name), g_memdup2(&taken, sizeof(taken)));
	}
	return true;
}

static bool answer_take(struct dwarf_types *types, GBytes *bytes)
{
	struct answer answer;

	answer.structures =
		table_find(bytes, VPROF_PARSE_TABLE_STRUCTURES, sizeof(*answer.structures), &answer.n_structures);
	answer.members = table_find(bytes, VPROF_PARSE_TABLE_MEMBERS, sizeof(*answer.members), &answer.n_members);
	answer.text = table_text(bytes, &answer.text_bytes);
	if (!answer.structures || !answer.members)
		return false;
	if (!answer.text)
		answer.text_bytes = 0; /* of no structure */
	g_autofree struct structure **found = g_new(struct structure *, answer.n_structures);

	return structures_take(types, &answer, found) && members_take(&answer, found);
}

/* ---- questions ---- */

static bool ask(struct dwarf_types *types, const char *const *names, size_t n, GError **error)
{
	struct vprof_parse_request request = {
		.what = VPROF_PARSE_TYPES, .bytes = types->file_bytes, .answer_bytes = ANSWER_BYTES_MAX};

	for (size_t i = 0; i < n; i++) {
		if (parser_add_name(&request, names[i]))
			structure_add(types, names[i]);
	}
	g_autoptr(GBytes) bytes = parser_ask_mapped(&request, types->file, error);

	if (!bytes || answer_take(types, bytes))
		return bytes != NULL;
	g_set_error(error, PARSER_ERROR, PARSER_ERROR_CRASHED,
	            "cannot be read: what vprof-parse says of it contradicts itself");
	return false;
}

static const struct structure *structure_find(struct dwarf_types *types, const char *name)
{
	if (!g_hash_table_contains(types->structures, name) && types->file >= 0)
		ask(types, &name, 1, NULL);
	return g_hash_table_lookup(types->structures, name);
}

static struct dwarf_types *types_new(void)
{
	struct dwarf_types *types = g_new0(struct dwarf_types, 1);

	types->structures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, structure_free);
	types->file = -1;
	return types;
}

struct dwarf_types *dwarf_types_decode(GBytes *answer)
{
	struct dwarf_types *types = types_new();

	if (answer_take(types, answer))
		return types;
	dwarf_types_free(types);
	return NULL;
}

struct dwarf_types *dwarf_types_new(const struct image *image, GError **error)
{
	g_autoptr(GError) why = NULL;
	struct dwarf_types *types = types_new();

	types->file = image_debug_file(image, &types->file_bytes, &why);
	if (types->file >= 0 && ask(types, usual, G_N_ELEMENTS(usual), &why))
		return types;
	/* That it has none is the caller's to say. */
	if (!g_error_matches(why, PARSER_ERROR, PARSER_ERROR_REFUSED))
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT, "the debug information of %s %s", image_path(image),
		            why->message);
	dwarf_types_free(types);
	return NULL;
}

void dwarf_types_free(struct dwarf_types *types)
{
	if (!types)
		return;
	if (types->file >= 0)
		close(types->file);
	g_hash_table_unref(types->structures);
	g_free(types);
}

bool dwarf_types_member(struct dwarf_types *types, const char *structure, const char *member, uint32_t *offset,
                        uint32_t *bytes)
{
	const struct structure *found = structure_find(types, structure);
	const struct member *of = found ? g_hash_table_lookup(found->members, member) : NULL;

	if (!of)
		return false;
	*offset = of->offset;
	*bytes = of->bytes;
	return true;
}

bool dwarf_types_size(struct dwarf_types *types, const char *structure, uint32_t *bytes)
{
	const struct structure *found = structure_find(types, structure);

	if (!found || found->bytes == 0)
		return false;
	*bytes = found->bytes;
	return true;
}
