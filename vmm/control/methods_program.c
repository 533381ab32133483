// SPDX-License-Identifier: BSD-2-Clause
/* probe-map-add, probe-program, probe-map-read, probe-map-clear */
#include <string.h>

#include "control/method_priv.h"
#include "control/probe_client.h"
#include "lib/record/hex.h"

#define READ_BYTES_MAX (VPROF_CONTROL_LINE_BYTES_MAX / 2)
#define WORD_BYTES 22u             /* "0x0123456789abcdef", and a comma */
#define ENTRY_BYTES 32u            /* of an entry without a word */
#define NUMBER_MAX (INT64_MAX / 2) /* of a lhist */

#define X(id, name, words) name,
static const char *const kind_names[] = {VPROF_MAP_KINDS(X) NULL};
#undef X

_Static_assert(ENTRY_BYTES + WORD_BYTES * (VPROF_MAP_KEY_WORDS_MAX + VPROF_MAP_RANGES_MAX + 2) <
                       VPROF_CONTROL_LINE_BYTES_MAX - READ_BYTES_MAX,
               "the entry that is one too many still fits into the line");

static int64_t integer(const struct control_call *call, const char *name, int64_t preset)
{
	const json_t *value = json_object_get(call->arguments, name);

	return value ? json_integer_value(value) : preset;
}

static json_t *method_map_add(struct control_call *call, GError **error)
{
	const char *kind = json_string_value(json_object_get(call->arguments, "kind"));
	const struct program_map_spec spec = {
		.kind = (enum vprof_map_kind)argument_choice(kind_names, kind),
		.key_words = (unsigned)integer(call, "key-words", 0),
		.entries = (unsigned)integer(call, "entries", VPROF_MAP_ENTRIES_DEFAULT),
		.low = integer(call, "low", 0),
		.high = integer(call, "high", 0),
		.range = integer(call, "range", 0),
	};
	unsigned number;

	if (!probe_set_add_map(control_probe_client(call)->set, &spec, &number, error))
		return NULL;
	return json_pack("{s:i}", "map", (int)number);
}

static bool instructions_decode(const uint8_t *bytes, size_t n, struct vprof_instruction *instructions, GError **error)
{
	if (n == 0 || n % sizeof(*instructions) != 0) {
		g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID,
		            "the program is not pairs of hexadecimal digits for instructions of %zu bytes each",
		            sizeof(*instructions));
		return false;
	}
	for (size_t i = 0; i < n / sizeof(*instructions); i++) {
		struct vprof_instruction *instruction = &instructions[i];

		memcpy(instruction, bytes + i * sizeof(*instruction), sizeof(*instruction));
		instruction->dst = GUINT16_FROM_LE(instruction->dst);
		instruction->a = GUINT16_FROM_LE(instruction->a);
		instruction->b = GUINT16_FROM_LE(instruction->b);
		instruction->constant = GINT64_FROM_LE(instruction->constant);
	}
	return true;
}

static json_t *method_program(struct control_call *call, GError **error)
{
	const char *text = json_string_value(json_object_get(call->arguments, "program"));
	const size_t room = VPROF_PROGRAM_INSTRUCTIONS_MAX * sizeof(struct vprof_instruction);
	g_autofree struct vprof_instruction *instructions =
		g_new(struct vprof_instruction, VPROF_PROGRAM_INSTRUCTIONS_MAX);
	g_autofree uint8_t *bytes = g_malloc(room);
	const size_t n = hex_decode(text, bytes, room);

	if (!instructions_decode(bytes, n, instructions, error) ||
	    !probe_set_program(control_probe_client(call)->set, (unsigned)integer(call, "id", 0), instructions,
	                       n / sizeof(*instructions), error))
		return NULL;
	return json_object();
}

static struct program_map *find_map(const struct control_call *call, GError **error)
{
	const unsigned number = (unsigned)integer(call, "map", 0);
	struct program_map *map = probe_set_map(control_probe_client(call)->set, number);

	if (!map)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN, "there is no map %u", number);
	return map;
}

static json_t *words_json(const uint64_t *words, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, control_hex_address(words[i]));
	return list;
}

static json_t *method_map_read(struct control_call *call, GError **error)
{
	const struct program_map *map = find_map(call, error);
	uint64_t words[VPROF_MAP_KEY_WORDS_MAX + VPROF_MAP_RANGES_MAX + 2];
	size_t place = (size_t)integer(call, "from", 0), bytes = 0;
	bool more = true;

	if (!map)
		return NULL;
	const size_t n_key = program_map_spec(map)->key_words, n_value = program_map_value_words(map);
	json_t *entries = json_array();
	while (bytes < READ_BYTES_MAX && (more = program_map_next(map, &place, words))) {
		json_array_append_new(entries, json_pack("{s:o, s:o}", "key", words_json(words, n_key), "value",
		                                         words_json(words + n_key, n_value)));
		bytes += ENTRY_BYTES + WORD_BYTES * (n_key + n_value);
	}
	if (!more && call->server->guest->state == GUEST_ENDED)
		control_probe_client(call)->maps_read |= 1u << integer(call, "map", 0);
	return json_pack("{s:o, s:o, s:I}", "entries", entries, "next",
	                 more ? json_integer((json_int_t)place) : json_null(), "dropped",
	                 (json_int_t)program_map_dropped(map));
}

static json_t *method_map_clear(struct control_call *call, GError **error)
{
	struct program_map *map = find_map(call, error);

	if (!map)
		return NULL;
	program_map_clear(map, json_is_true(json_object_get(call->arguments, "keep-keys")));
	return json_object();
}

static const struct method_argument map_add_arguments[] = {
	{"kind", "what the map keeps for each key", ARGUMENT_STRING, .choices = kind_names},
	{"key-words", "64-bit words of a key; 0: one value, without a key", ARGUMENT_INTEGER, .optional = true,
         .min = 0, .max = VPROF_MAP_KEY_WORDS_MAX, .preset = "0"},
	{"entries", "how many keys there can be; others are counted as map-full", ARGUMENT_INTEGER, .optional = true,
         .min = 1, .max = VPROF_MAP_ENTRIES_MAX, .preset = "4096"},
	{"low", "of a lhist: where its first range begins", ARGUMENT_INTEGER, .optional = true, .min = -NUMBER_MAX,
         .max = NUMBER_MAX, .preset = "0"},
	{"high", "of a lhist: where its last range ends", ARGUMENT_INTEGER, .optional = true, .min = -NUMBER_MAX,
         .max = NUMBER_MAX, .preset = "0"},
	{"range", "of a lhist: how many numbers each range has", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = NUMBER_MAX, .preset = "0"},
	{0},
};

static const struct method_argument program_arguments[] = {
	{"id", "id of the probe, as probe-add returned it", ARGUMENT_INTEGER, .min = 1, .max = INT32_MAX},
	{"program", "its instructions, as two hexadecimal digits for each byte", ARGUMENT_STRING, .min = 1,
         .max = 2 * sizeof(struct vprof_instruction) * VPROF_PROGRAM_INSTRUCTIONS_MAX},
	{0},
};

#define MAP_ARGUMENT                                                                                                  \
	{                                                                                                             \
		"map", "number of the map, as probe-map-add returned it", ARGUMENT_INTEGER, .min = 0,                 \
											    .max = VPROF_MAPS_MAX - 1 \
	}

static const struct method_argument map_read_arguments[] = {
	MAP_ARGUMENT,
	{"from", "where to go on: \"next\" of the previous answer", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = INT32_MAX, .preset = "0"},
	{0},
};

static const struct method_argument map_clear_arguments[] = {
	MAP_ARGUMENT,
	{"keep-keys", "whether to keep the keys, and set their values to 0", ARGUMENT_BOOLEAN, .optional = true,
         .preset = "false"},
	{0},
};

static const struct method_member map_add_members[] = {
	{"map", "number of the map, from 0 on", MEMBER_INTEGER},
	{0},
};

static const struct method_member entry_members[] = {
	{"key", "words of the key", MEMBER_ADDRESSES},
	{"value", "words of the value, by the kind of the map (vprof/program.h)", MEMBER_ADDRESSES},
	{0},
};

static const struct method_member map_read_members[] = {
	{"entries", "in no order; a key may come twice: its values belong together", MEMBER_OBJECTS,
         .members = entry_members},
	{"next", "value of \"from\" for the rest; null: that is all", MEMBER_INTEGER, .nullable = true},
	{"dropped", "number of changes that had no room for the key", MEMBER_INTEGER},
	{0},
};

const struct control_method program_methods[] = {
	{
		.name = "probe-map-add",
		.summary = "adds a map for programs of this client's probes; fails while its probes record",
		.returns = map_add_members,
		.role = ROLE_INSTRUMENT,
		.arguments = map_add_arguments,
		.run = method_map_add,
	},
	{
		.name = "probe-program",
		.summary =
			"makes a probe of this client run a program (vprof/program.h) instead of recording events; fails while its probes record",
		.role = ROLE_INSTRUMENT,
		.arguments = program_arguments,
		.run = method_program,
	},
	{
		.name = "probe-map-read",
		.summary = "reads what is in a map of this client's programs",
		.returns = map_read_members,
		.role = ROLE_INSTRUMENT,
		.arguments = map_read_arguments,
		.run = method_map_read,
	},
	{
		.name = "probe-map-clear",
		.summary = "empties a map of this client's programs, as probe-record does at its start",
		.role = ROLE_INSTRUMENT,
		.arguments = map_clear_arguments,
		.run = method_map_clear,
	},
	{0},
};
