// SPDX-License-Identifier: BSD-2-Clause
/* Maps of a script: what they keep, by which keys. The first use says it, and all others have to agree. */
#include <string.h>

#include "lib/script/script_compile.h"

const char *const script_map_kinds[] = {
#define X(id, name, words) name,
	VPROF_MAP_KINDS(X)
#undef X
};

static struct map_entry *entry_at(const struct compiler *compiler, size_t number)
{
	return g_ptr_array_index(compiler->script->maps, number);
}

bool compile_map_find(struct compiler *compiler, const struct script_node *node, size_t *number)
{
	GPtrArray *maps = compiler->script->maps;
	struct map_entry *entry;

	for (*number = 0; *number < maps->len; (*number)++)
		if (strcmp(entry_at(compiler, *number)->name, node->text) == 0)
			return true;
	if (maps->len == VPROF_MAPS_MAX)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "the script has too many maps");
	entry = g_new0(struct map_entry, 1);
	entry->name = g_strdup(node->text);
	entry->map.name = entry->name;
	g_ptr_array_add(maps, entry);
	return true;
}

static const char *type_name(enum script_type type)
{
	return type == SCRIPT_TEXT    ? "a text"
	       : type == SCRIPT_STACK ? "a stack"
	       : type == SCRIPT_USYM  ? "a usym()"
	                              : "a number";
}

static bool check_keys(struct compiler *compiler, const struct script_node *node, struct map_entry *entry, unsigned n,
                       const enum script_type *types)
{
	bool same = n == entry->map.n_keys;

	if (!entry->has_keys) {
		entry->map.n_keys = n;
		memcpy(entry->map.keys, types, n * sizeof(*types));
		entry->has_keys = true;
		return true;
	}
	for (unsigned i = 0; i < n && same; i++) {
		if (script_type_words(types[i]) == script_type_words(entry->map.keys[i]))
			continue;
		script_fail(compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column,
		            "part %u of the key of %s is %s here, and %s elsewhere", i + 1, entry->name,
		            type_name(types[i]), type_name(entry->map.keys[i]));
		return false;
	}
	if (!same)
		script_fail(compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column,
		            "the key of %s has %u parts here, and %u elsewhere", entry->name, n, entry->map.n_keys);
	return same;
}

/* The words of the key from *at on. */
static bool compile_key(struct compiler *compiler, const struct script_node *node, const struct script_node *keys,
                        size_t number, unsigned *at)
{
	enum script_type types[SCRIPT_KEYS_MAX];
	unsigned n = 0, words;

	for (const struct script_node *key = keys; key; key = key->next)
		n++;
	if (n > SCRIPT_KEYS_MAX)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "a key has at most 8 parts");
	if (!compile_several(compiler, keys, n, types, at, &words) ||
	    !check_keys(compiler, node, entry_at(compiler, number), n, types))
		return false;
	return words <= VPROF_MAP_KEY_WORDS_MAX ||
	       compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this key is too long");
}

static bool check_kind(struct compiler *compiler, const struct script_node *node, size_t number,
                       enum vprof_map_kind kind, enum script_type type)
{
	struct map_entry *entry = entry_at(compiler, number);

	if (!entry->has_kind) {
		entry->map.kind = kind;
		entry->map.value = type;
		entry->has_kind = true;
	}
	if (entry->map.kind == kind)
		return true;
	script_fail(compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column, "%s is a %s here, and a %s elsewhere",
	            entry->name, script_map_kinds[kind], script_map_kinds[entry->map.kind]);
	return false;
}

static bool emit(struct compiler *compiler, const struct script_node *node, unsigned operation, size_t number,
                 unsigned dst, unsigned key, unsigned value)
{
	return compile_emit(compiler, node,
	                    (struct vprof_instruction){.operation = (uint8_t)operation,
	                                               .map = (uint8_t)number,
	                                               .dst = (uint16_t)dst,
	                                               .a = (uint16_t)key,
	                                               .b = (uint16_t)value});
}

bool compile_map_get(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	const struct map_entry *entry;
	size_t number;
	unsigned key;

	if (!compile_map_find(compiler, node, &number) || !compile_key(compiler, node, node->first, number, &key))
		return false;
	entry = entry_at(compiler, number);
	if (!entry->has_kind && !compiler->guesses)
		return compile_fail(compiler, node, SCRIPT_ERROR_TYPE, "this map is never set");
	compiler->unknown |= !entry->has_kind;
	if (entry->map.kind == VPROF_MAP_STATS || entry->map.kind == VPROF_MAP_HIST ||
	    entry->map.kind == VPROF_MAP_LHIST)
		return compile_fail(compiler, node, SCRIPT_ERROR_TYPE,
		                    "this map has no single value; print(@x) shows it");
	out->type = entry->map.kind == VPROF_MAP_TEXT     ? SCRIPT_TEXT
	            : entry->map.kind == VPROF_MAP_NUMBER ? entry->map.value
	                                                  : SCRIPT_NUMBER;
	out->at = (unsigned)want;
	if (want < 0 && !compile_allocate(compiler, node, script_type_words(out->type), &out->at))
		return false;
	return emit(compiler, node, VPROF_PROGRAM_MAP_GET, number, out->at, key, 0);
}

/* ---- count() and the others ---- */

static bool ranges(struct compiler *compiler, const struct script_node *call, size_t number)
{
	const int64_t most = INT64_MAX / 4;
	struct map_entry *entry = entry_at(compiler, number);
	const struct script_node *low = call->first->next, *high = low->next, *range = high->next;
	const bool had = entry->map.range != 0;
	const struct script_map before = entry->map;
	struct script_map *map = &entry->map;

	if (!compile_literal(compiler, low, -most, most, &map->low) ||
	    !compile_literal(compiler, high, -most, most, &map->high) ||
	    !compile_literal(compiler, range, 1, most, &map->range))
		return false;
	if (map->low >= map->high)
		return compile_fail(compiler, low, SCRIPT_ERROR_TYPE,
		                    "the ranges of a lhist go from a number up to a higher one");
	if ((map->high - map->low) / map->range > VPROF_MAP_RANGES_MAX)
		return compile_fail(compiler, range, SCRIPT_ERROR_LIMIT, "a lhist has at most 1000 ranges");
	return !had || (before.low == map->low && before.high == map->high && before.range == map->range) ||
	       compile_fail(compiler, call, SCRIPT_ERROR_TYPE, "this map has other ranges elsewhere");
}

/* -1: no function that aggregates. */
static int kind_of(const struct script_node *node)
{
	for (int kind = VPROF_MAP_COUNT; node->kind == NODE_CALL && kind < VPROF_MAP_KIND_COUNT; kind++)
		if (strcmp(node->text, script_map_kinds[kind]) == 0)
			return kind;
	return -1;
}

static bool aggregate(struct compiler *compiler, const struct script_node *node, size_t number, unsigned key, int kind)
{
	const struct script_node *call = node->b;
	struct value value = {SCRIPT_NUMBER, key};

	if (kind == VPROF_MAP_COUNT && !compile_takes(compiler, call, 0, 0, "count()"))
		return false;
	if (kind == VPROF_MAP_LHIST && !compile_takes(compiler, call, 4, 4, "lhist(NUMBER, FROM, TO, STEP)"))
		return false;
	if (kind != VPROF_MAP_COUNT && kind != VPROF_MAP_LHIST && !compile_takes(compiler, call, 1, 1, "with a number"))
		return false;
	if (!check_kind(compiler, node, number, (enum vprof_map_kind)kind, SCRIPT_NUMBER) ||
	    (kind == VPROF_MAP_LHIST && !ranges(compiler, call, number)))
		return false;
	if (kind == VPROF_MAP_COUNT ? !compile_allocate(compiler, node, 1, &value.at)
	                            : !compile_number(compiler, call->first, &value))
		return false;
	return emit(compiler, node, VPROF_PROGRAM_MAP_ADD, number, 0, key, value.at);
}

/* ---- changes ---- */

static bool set(struct compiler *compiler, const struct script_node *node, size_t number, unsigned key,
                const struct value *value)
{
	if (!is_number(value->type) && value->type != SCRIPT_TEXT)
		return compile_fail(compiler, node, SCRIPT_ERROR_TYPE,
		                    "a stack or usym() can be a part of a key, and no value");
	return check_kind(compiler, node, number, value->type == SCRIPT_TEXT ? VPROF_MAP_TEXT : VPROF_MAP_NUMBER,
	                  value->type) &&
	       emit(compiler, node, VPROF_PROGRAM_MAP_SET, number, 0, key, value->at);
}

/* "+=" and "-=" lose nothing of what other vCPUs add; the others read, and then set. */
static bool change(struct compiler *compiler, const struct script_node *node, size_t number, unsigned key)
{
	const bool minus = strcmp(node->text, "-=") == 0;
	struct value value, before = {SCRIPT_NUMBER, 0};

	if (!compile_number(compiler, node->b, &value) ||
	    !check_kind(compiler, node, number, VPROF_MAP_NUMBER, value.type))
		return false;
	if (minus && !compile_emit(compiler, node,
	                           (struct vprof_instruction){.operation = VPROF_PROGRAM_NEGATE,
	                                                      .dst = (uint16_t)value.at,
	                                                      .a = (uint16_t)value.at}))
		return false;
	if (minus || strcmp(node->text, "+=") == 0)
		return emit(compiler, node, VPROF_PROGRAM_MAP_ADD, number, 0, key, value.at);
	before.type = entry_at(compiler, number)->map.value;
	return compile_allocate(compiler, node, 1, &before.at) &&
	       emit(compiler, node, VPROF_PROGRAM_MAP_GET, number, before.at, key, 0) &&
	       compile_operator(compiler, node, node->text, &before, &value, value.at, &value.type) &&
	       emit(compiler, node, VPROF_PROGRAM_MAP_SET, number, 0, key, value.at);
}

bool compile_map_assign(struct compiler *compiler, const struct script_node *node)
{
	const bool plain = strcmp(node->text, "=") == 0;
	const int kind = kind_of(node->b);
	struct value value;
	size_t number;
	unsigned key;

	if (!compile_map_find(compiler, node->a, &number) ||
	    !compile_key(compiler, node->a, node->a->first, number, &key))
		return false;
	if (plain && kind >= 0)
		return aggregate(compiler, node, number, key, kind);
	if (!plain)
		return change(compiler, node, number, key);
	compiler->unknown = false;
	if (!compile_value(compiler, node->b, -1, &value))
		return false;
	return compiler->unknown || set(compiler, node, number, key, &value);
}

bool compile_map_step(struct compiler *compiler, const struct script_node *node)
{
	size_t number;
	unsigned key, one;

	return compile_map_find(compiler, node->a, &number) &&
	       compile_key(compiler, node->a, node->a->first, number, &key) &&
	       check_kind(compiler, node, number, VPROF_MAP_NUMBER, SCRIPT_NUMBER) &&
	       compile_allocate(compiler, node, 1, &one) &&
	       compile_emit(compiler, node,
	                    (struct vprof_instruction){.operation = VPROF_PROGRAM_CONSTANT,
	                                               .dst = (uint16_t)one,
	                                               .constant = node->text[0] == '+' ? 1 : -1}) &&
	       emit(compiler, node, VPROF_PROGRAM_MAP_ADD, number, 0, key, one);
}

/* delete(@x[key]), and as bpftrace has it now, delete(@x, key). */
bool compile_map_delete(struct compiler *compiler, const struct script_node *call)
{
	const struct script_node *map = call->first;
	size_t number;
	unsigned key;

	if (!compile_takes(compiler, call, 1, 2, "delete(@x[KEY]) or delete(@x, KEY)"))
		return false;
	if (map->kind != NODE_MAP || (map->first && map->next))
		return compile_fail(compiler, call, SCRIPT_ERROR_TYPE,
		                    "delete is written delete(@x[KEY]) or delete(@x, KEY)");
	return compile_map_find(compiler, map, &number) &&
	       compile_key(compiler, map, map->next ? map->next : map->first, number, &key) &&
	       emit(compiler, call, VPROF_PROGRAM_MAP_DELETE, number, 0, key, 0);
}
