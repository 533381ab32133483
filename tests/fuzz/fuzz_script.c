// SPDX-License-Identifier: BSD-2-Clause
/* Scripts of anything: refused with a place in them, or their programs pass the engine's check. */
#include <string.h>

#include "fuzz_target.h"
#include "lib/script/script.h"
#include "probe/program.h"

#define PROBES_MAX 8u

static void check_program(const struct script *script, size_t i, const char *const *fields, uint32_t texts)
{
	struct program_map *maps[VPROF_MAPS_MAX];
	struct program_facts facts = {
		.n_arguments = 3, .n_fields = g_strv_length((char **)fields), .texts = texts, .maps = maps};
	size_t n;
	const struct vprof_instruction *program = script_program(script, i, &n);
	g_autoptr(GError) error = NULL;

	for (size_t j = 0; j < script_map_count(script); j++) {
		const struct script_map *map = script_map(script, j);
		struct program_map_spec spec = {
			.kind = map->kind, .entries = 1, .low = map->low, .high = map->high, .range = map->range};

		for (unsigned k = 0; k < map->n_keys; k++)
			spec.key_words += script_type_words(map->keys[k]);
		maps[facts.n_maps++] = program_map_new(&spec, &error);
		g_assert_no_error(error);
	}
	g_assert(program_check(program, n, &facts, &error));
	for (size_t at = 0; at < n; at++)
		g_assert(program[at].operation != VPROF_PROGRAM_SEND ||
		         script_action(script, (uint64_t)program[at].constant));
	while (facts.n_maps > 0)
		program_map_free(maps[--facts.n_maps]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const parameters[] = {"5", "sh", NULL},
				 *const arguments[] = {"prev", "arg0", "retval", NULL},
				 *const types[] = {"struct task_struct *", NULL};
	g_autofree char *text = g_strndup((const char *)bytes, size);
	g_autoptr(GError) error = NULL;
	struct script *script = script_parse(text, parameters, &error);
	struct script_probe probes[PROBES_MAX];
	const char *written[PROBES_MAX][2] = {{NULL}};
	char **fields[PROBES_MAX];
	size_t n = 0;

	for (const char *const *name = script ? script_probes(script) : NULL; name && *name && n < PROBES_MAX;
	     name++, n++) {
		written[n][0] = *name;
		fields[n] = script_fields(script, written[n], *name);
		probes[n] =
			(struct script_probe){written[n], *name, arguments, types, (const char *const *)fields[n], 0};
		for (unsigned i = 0; fields[n][i]; i++)
			probes[n].texts |= i < 32 && g_str_has_prefix(fields[n][i], "str(") ? 1u << i : 0;
		/* More than 32 are refused by the engine. */
		if (g_strv_length(fields[n]) > 32)
			g_clear_pointer(&fields[n][32], g_free);
	}
	const bool done = script && script_compile(script, probes, n, &error);
	g_assert(done || (error && error->domain == SCRIPT_ERROR && g_ascii_isdigit(error->message[0])));
	for (size_t i = 0; i < n; i++) {
		if (done)
			check_program(script, i, (const char *const *)fields[i], probes[i].texts);
		g_strfreev(fields[i]);
	}
	script_free(script);
	return 0;
}
