// SPDX-License-Identifier: BSD-2-Clause
#include "lib/script/script.h"

#include <string.h>

#include "lib/script/script_priv.h"

G_DEFINE_QUARK(vprof_script_error, script_error)

unsigned script_type_words(enum script_type type)
{
	switch (type) {
	case SCRIPT_TEXT:
		return VPROF_PROGRAM_TEXT_WORDS;
	case SCRIPT_STACK:
		return VPROF_PROGRAM_STACK_WORDS;
	case SCRIPT_USYM:
		return 2;
	default:
		return 1;
	}
}

/* The operations and the flags of enum req_op and enum req_flag_bits of Linux (include/linux/blk_types.h). */
char *script_rwbs(uint64_t flags)
{
	static const char *const operations[] = {"R", "W", "F", "D", NULL, "DE"};
	static const struct {
		unsigned bit;
		char letter;
	} behind[] = {{17, 'F'}, {19, 'A'}, {11, 'S'}, {12, 'M'}};
	const uint64_t operation = flags & 0xff;
	GString *text = g_string_new(flags >> 18 & 1 ? "F" : "");

	g_string_append(text,
	                operation < G_N_ELEMENTS(operations) && operations[operation] ? operations[operation] : "N");
	for (size_t i = 0; i < G_N_ELEMENTS(behind); i++)
		if (flags >> behind[i].bit & 1)
			g_string_append_c(text, behind[i].letter);
	return g_string_free(text, FALSE);
}

static void clause_free(gpointer data)
{
	struct clause *clause = data;

	g_array_unref(clause->probes);
	script_node_free(clause->predicate);
	script_node_free(clause->statements);
	g_free(clause);
}

static void map_free(gpointer data)
{
	struct map_entry *entry = data;

	g_free(entry->name);
	g_free(entry);
}

static void program_free(gpointer data)
{
	struct program *program = data;

	g_array_unref(program->instructions);
	g_free(program->shown);
	g_free(program);
}

static void written_clear(gpointer data)
{
	probe_written_clear(data);
}

struct clause *script_clause_new(struct script *script)
{
	struct clause *clause = g_new0(struct clause, 1);

	clause->probes = g_array_new(FALSE, FALSE, sizeof(struct probe_written));
	g_array_set_clear_func(clause->probes, written_clear);
	g_ptr_array_add(script->clauses, clause);
	return clause;
}

void script_clause_add_probe(struct script *script, struct clause *clause, const struct probe_written *written)
{
	g_array_append_vals(clause->probes, written, 1);
	if (!g_strv_contains(script_probes(script), written->name))
		g_ptr_array_insert(script->probes, (gint)script->probes->len - 1, written->name);
}

struct script *script_empty(void)
{
	struct script *script = g_new0(struct script, 1);

	script->clauses = g_ptr_array_new_with_free_func(clause_free);
	script->probes = g_ptr_array_new();
	g_ptr_array_add(script->probes, NULL);
	script->maps = g_ptr_array_new_with_free_func(map_free);
	script->actions = g_array_new(FALSE, FALSE, sizeof(struct script_action));
	script->programs = g_ptr_array_new_with_free_func(program_free);
	return script;
}

struct script *script_parse(const char *text, const char *const *parameters, GError **error)
{
	struct script *script = script_empty();

	if (strlen(text) > SCRIPT_BYTES_MAX)
		script_fail(error, SCRIPT_ERROR_LIMIT, 1, 1, "the script has more than %u bytes", SCRIPT_BYTES_MAX);
	else if (script_read(script, text, parameters, error))
		return script;
	script_free(script);
	return NULL;
}

void script_free(struct script *script)
{
	if (!script)
		return;
	g_ptr_array_unref(script->clauses);
	g_ptr_array_unref(script->probes);
	g_ptr_array_unref(script->maps);
	g_array_unref(script->actions);
	g_ptr_array_unref(script->programs);
	g_free(script);
}

const char *const *script_probes(const struct script *script)
{
	return (const char *const *)script->probes->pdata;
}

const struct vprof_instruction *script_program(const struct script *script, size_t i, size_t *n)
{
	const struct program *program = g_ptr_array_index(script->programs, i);

	*n = program->instructions->len;
	return (const struct vprof_instruction *)(const void *)program->instructions->data;
}

char *script_probe_shown(const struct script *script, size_t i)
{
	const struct program *program = i < script->programs->len ? g_ptr_array_index(script->programs, i) : NULL;

	return g_strdup(program ? program->shown : "?");
}

size_t script_map_count(const struct script *script)
{
	return script->maps->len;
}

const struct script_map *script_map(const struct script *script, size_t i)
{
	return &((const struct map_entry *)g_ptr_array_index(script->maps, i))->map;
}

const struct script_action *script_action(const struct script *script, uint64_t number)
{
	return number < script->actions->len ? &g_array_index(script->actions, struct script_action, number) : NULL;
}
