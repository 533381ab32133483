// SPDX-License-Identifier: BSD-2-Clause
#include "guest/btf.h"

#include <string.h>

G_DEFINE_QUARK(vprof_btf_error, btf_error)

#define BTF_MAGIC 0xeb9fu
#define BTF_VERSION 1u
#define TYPES_MAX (1u << 22)   /* a distribution's kernel has 150,000 */
#define NESTING_MAX 16u        /* of anonymous members and of qualifiers */
#define MEMBERS_MAX (1u << 16) /* members that one look-up reads; task_struct has 250 */

/* linux/btf.h; repeated here, because this is a file format and not a property of this host's kernel. */
enum kind {
	KIND_INT = 1,
	KIND_POINTER = 2,
	KIND_ARRAY = 3,
	KIND_STRUCT = 4,
	KIND_UNION = 5,
	KIND_ENUM = 6,
	KIND_FORWARD = 7,
	KIND_TYPEDEF = 8,
	KIND_VOLATILE = 9,
	KIND_CONST = 10,
	KIND_RESTRICT = 11,
	KIND_FUNC = 12,
	KIND_FUNC_PROTO = 13,
	KIND_VAR = 14,
	KIND_DATASEC = 15,
	KIND_DECL_TAG = 17,
	KIND_TYPE_TAG = 18,
	KIND_ENUM64 = 19,
	KIND_MAX = KIND_ENUM64,
};

struct header {
	uint16_t magic;
	uint8_t version;
	uint8_t flags;
	uint32_t header_bytes;
	uint32_t types_offset, types_bytes; /* offsets count from behind the header */
	uint32_t names_offset, names_bytes;
};
_Static_assert(sizeof(struct header) == 24, "no padding");

struct type {
	uint32_t name;
	uint32_t info;
	uint32_t size_or_type;
};
_Static_assert(sizeof(struct type) == 12, "no padding");

struct member {
	uint32_t name;
	uint32_t type;
	uint32_t offset; /* in bits; with the structure's flag, bits 24 and up are a bit-field's size */
};
_Static_assert(sizeof(struct member) == 12, "no padding");

struct btf {
	const uint8_t *types; /* the type section */
	const char *names;    /* ends with a NUL */
	uint32_t names_bytes;
	GArray *offsets; /* of uint32_t: where type i + 1 starts in the type section; each type is complete */
	GArray *structs; /* of uint32_t: the types that are structures with a name, one in ten */
};

static enum kind type_kind(const struct type *type)
{
	return type->info >> 24 & 0x1f;
}

static uint32_t type_count(const struct type *type)
{
	return type->info & 0xffff;
}

/* Whether the members' offsets carry bit-field sizes. */
static bool type_flag(const struct type *type)
{
	return type->info >> 31;
}

/* Bytes after the struct type of each kind: a fixed number, and a number for each of its count. */
static size_t type_extra_bytes(const struct type *type)
{
	static const struct {
		uint8_t fixed, each;
	} extra[KIND_MAX + 1] = {
		[KIND_INT] = {4, 0},      [KIND_ARRAY] = {12, 0},     [KIND_STRUCT] = {0, 12}, [KIND_UNION] = {0, 12},
		[KIND_ENUM] = {0, 8},     [KIND_FUNC_PROTO] = {0, 8}, [KIND_VAR] = {4, 0},     [KIND_DATASEC] = {0, 12},
		[KIND_DECL_TAG] = {4, 0}, [KIND_ENUM64] = {0, 12},
	};
	enum kind kind = type_kind(type);

	return extra[kind].fixed + (size_t)extra[kind].each * type_count(type);
}

/* Type `id`; false for void (0) and for unknown types. */
static bool type_get(const struct btf *btf, uint32_t id, struct type *type, const uint8_t **members)
{
	if (id == 0 || id > btf->offsets->len)
		return false;
	const uint8_t *at = btf->types + g_array_index(btf->offsets, uint32_t, id - 1);

	memcpy(type, at, sizeof(*type));
	*members = at + sizeof(*type);
	return true;
}

/* Empty for a name that is none. */
static const char *name_get(const struct btf *btf, uint32_t offset)
{
	return offset < btf->names_bytes ? btf->names + offset : "";
}

static bool corrupt(GError **error, const char *what, size_t where)
{
	g_set_error(error, BTF_ERROR, BTF_ERROR_CORRUPT, "the image's BTF is damaged: %s at byte %zu", what, where);
	return false;
}

/* Finds where each type starts, and checks that it is complete. */
static bool types_index(struct btf *btf, uint32_t bytes, GError **error)
{
	size_t at = 0;

	while (at < bytes) {
		uint32_t start = (uint32_t)at;
		struct type type;

		if (bytes - at < sizeof(type) || btf->offsets->len >= TYPES_MAX)
			return corrupt(error, "half a type, or too many", at);
		memcpy(&type, btf->types + at, sizeof(type));
		at += sizeof(type);
		if (type_kind(&type) == 0 || type_kind(&type) > KIND_MAX)
			return corrupt(error, "a type of unknown kind", start);
		if (type_extra_bytes(&type) > bytes - at)
			return corrupt(error, "half a type", start);
		at += type_extra_bytes(&type);
		g_array_append_val(btf->offsets, start);
		if (type_kind(&type) == KIND_STRUCT && type.name != 0)
			g_array_append_val(btf->structs, btf->offsets->len);
	}
	return true;
}

static bool section_within(uint32_t offset, uint32_t bytes, size_t room)
{
	return offset <= room && bytes <= room - offset;
}

struct btf *btf_new(const void *bytes, size_t n, GError **error)
{
	const uint8_t *data = bytes;
	struct header header;

	if (n < sizeof(header)) {
		g_set_error(error, BTF_ERROR, BTF_ERROR_FORMAT, "%zu bytes are too few for BTF", n);
		return NULL;
	}
	memcpy(&header, data, sizeof(header));
	if (header.magic != BTF_MAGIC || header.version != BTF_VERSION) {
		g_set_error(error, BTF_ERROR, BTF_ERROR_FORMAT, "not BTF of version %u: magic 0x%04x, version %u",
		            BTF_VERSION, header.magic, header.version);
		return NULL;
	}
	if (header.header_bytes < sizeof(header) || header.header_bytes > n ||
	    !section_within(header.types_offset, header.types_bytes, n - header.header_bytes) ||
	    !section_within(header.names_offset, header.names_bytes, n - header.header_bytes)) {
		corrupt(error, "sections outside it", 0);
		return NULL;
	}
	const char *names = (const char *)data + header.header_bytes + header.names_offset;

	if (header.names_bytes == 0 || names[header.names_bytes - 1] != '\0') {
		corrupt(error, "names without an end", header.header_bytes + (size_t)header.names_offset);
		return NULL;
	}
	struct btf *btf = g_new0(struct btf, 1);

	btf->types = data + header.header_bytes + header.types_offset;
	btf->names = names;
	btf->names_bytes = header.names_bytes;
	btf->offsets = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	btf->structs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	if (types_index(btf, header.types_bytes, error))
		return btf;
	btf_free(btf);
	return NULL;
}

void btf_free(struct btf *btf)
{
	if (!btf)
		return;
	g_array_unref(btf->offsets);
	g_array_unref(btf->structs);
	g_free(btf);
}

static bool is_qualifier(enum kind kind)
{
	return kind == KIND_VOLATILE || kind == KIND_CONST || kind == KIND_RESTRICT || kind == KIND_TYPE_TAG;
}

/* The type itself, behind its qualifiers, and behind typedefs if `names` is false. */
static bool type_resolve(const struct btf *btf, uint32_t id, bool names, struct type *type, const uint8_t **members)
{
	for (unsigned i = 0; i < NESTING_MAX && type_get(btf, id, type, members); i++) {
		const enum kind kind = type_kind(type);

		if (!is_qualifier(kind) && (names || kind != KIND_TYPEDEF))
			return true;
		id = type->size_or_type;
	}
	return false;
}

/* The structure or union that typedefs and qualifiers lead to. */
static bool type_aggregate(const struct btf *btf, uint32_t id, struct type *type, const uint8_t **members)
{
	for (unsigned i = 0; i < NESTING_MAX && type_get(btf, id, type, members); i++) {
		switch (type_kind(type)) {
		case KIND_STRUCT:
		case KIND_UNION:
			return true;
		case KIND_TYPEDEF:
		case KIND_VOLATILE:
		case KIND_CONST:
		case KIND_TYPE_TAG:
			id = type->size_or_type;
			break;
		default:
			return false;
		}
	}
	return false;
}

/* `budget` limits the members that are read: anonymous members that contain each other would never end. */
static bool member_find(const struct btf *btf, const struct type *outer, const uint8_t *members, const char *name,
                        unsigned depth, uint32_t *budget, uint32_t *offset, uint32_t *id)
{
	for (uint32_t i = 0; i < type_count(outer) && *budget > 0; i++) {
		struct member member;
		struct type inner;
		const uint8_t *inner_members;

		--*budget;
		memcpy(&member, members + i * sizeof(member), sizeof(member));
		uint32_t bits = type_flag(outer) ? member.offset & 0xffffff : member.offset;
		bool bit_field = type_flag(outer) && member.offset >> 24 != 0;
		const char *member_name = name_get(btf, member.name);

		if (strcmp(member_name, name) == 0) {
			*offset = bits / 8;
			*id = member.type;
			return !bit_field && bits % 8 == 0;
		}
		if (member_name[0] == '\0' && depth < NESTING_MAX &&
		    type_aggregate(btf, member.type, &inner, &inner_members) &&
		    member_find(btf, &inner, inner_members, name, depth + 1, budget, offset, id))
			return !__builtin_add_overflow(*offset, bits / 8, offset);
	}
	return false;
}

/* The next structure with this name, from the i-th on; moves *i past it. */
static bool struct_next(const struct btf *btf, const char *name, guint *i, struct type *type, const uint8_t **members)
{
	while (*i < btf->structs->len)
		if (type_get(btf, g_array_index(btf->structs, uint32_t, (*i)++), type, members) &&
		    strcmp(name_get(btf, type->name), name) == 0)
			return true;
	return false;
}

/* 0: it has no size, or more than 32 bits hold. */
static uint32_t type_bytes(const struct btf *btf, uint32_t id)
{
	uint32_t times = 1, element, n, bytes;
	const uint8_t *members;
	struct type type;

	for (unsigned i = 0; i < NESTING_MAX && btf_array(btf, id, &element, &n); i++) {
		if (__builtin_mul_overflow(times, n, &times))
			return 0;
		id = element;
	}
	if (!type_resolve(btf, id, false, &type, &members))
		return 0;
	switch (type_kind(&type)) {
	case KIND_POINTER:
		bytes = sizeof(uint64_t);
		break;
	case KIND_INT:
	case KIND_ENUM:
	case KIND_ENUM64:
	case KIND_STRUCT:
	case KIND_UNION:
		bytes = type.size_or_type;
		break;
	default:
		return 0;
	}
	return __builtin_mul_overflow(times, bytes, &bytes) ? 0 : bytes;
}

bool btf_member(const struct btf *btf, const char *structure, const char *member, uint32_t *offset, uint32_t *bytes)
{
	uint32_t budget = MEMBERS_MAX, found, id;
	const uint8_t *members;
	struct type type;

	for (guint i = 0; struct_next(btf, structure, &i, &type, &members);) {
		if (member_find(btf, &type, members, member, 0, &budget, &found, &id)) {
			*offset = found;
			*bytes = type_bytes(btf, id);
			return true;
		}
	}
	return false;
}

bool btf_size(const struct btf *btf, const char *structure, uint32_t *bytes)
{
	const uint8_t *members;
	struct type type;
	guint i = 0;

	if (!struct_next(btf, structure, &i, &type, &members))
		return false;
	*bytes = type.size_or_type;
	return true;
}

bool btf_structure(const struct btf *btf, const char *name, uint32_t *id)
{
	const uint8_t *members;
	struct type type;
	guint i = 0;

	if (!struct_next(btf, name, &i, &type, &members))
		return false;
	*id = g_array_index(btf->structs, uint32_t, i - 1);
	return true;
}

/* ---- enumerations ---- */

struct enumerator {
	uint32_t name, value;
};
_Static_assert(sizeof(struct enumerator) == 8, "no padding");

static bool enumerator_find(const struct btf *btf, const struct type *type, const uint8_t *members, const char *name,
                            uint32_t *value)
{
	for (uint32_t i = 0; i < type_count(type); i++) {
		struct enumerator enumerator;

		memcpy(&enumerator, members + i * sizeof(enumerator), sizeof(enumerator));
		if (strcmp(name_get(btf, enumerator.name), name) != 0)
			continue;
		*value = enumerator.value;
		return true;
	}
	return false;
}

bool btf_enumerator(const struct btf *btf, const char *enumeration, const char *name, uint32_t *value)
{
	const uint8_t *members;
	struct type type;

	for (uint32_t id = 1; type_get(btf, id, &type, &members); id++)
		if (type_kind(&type) == KIND_ENUM && strcmp(name_get(btf, type.name), enumeration) == 0 &&
		    enumerator_find(btf, &type, members, name, value))
			return true;
	return false;
}

/* ---- values ---- */

#define INT_SIGNED 1u
#define TYPE_TEXT_MAX 128u

struct parameter {
	uint32_t name, type;
};
_Static_assert(sizeof(struct parameter) == 8, "no padding");

void btf_value_clear(struct btf_value *value)
{
	g_clear_pointer(&value->type, g_free);
}

uint64_t btf_value_extend(const struct btf_value *value, uint64_t number)
{
	const unsigned unused = value->bytes == 0 || value->bytes > 8 ? 0 : 64 - 8 * value->bytes;

	return value->is_signed ? (uint64_t)((int64_t)(number << unused) >> unused) : number << unused >> unused;
}

/* As C writes it, without qualifiers: pointers to what has no name are "void *". */
static char *type_text(const struct btf *btf, uint32_t id)
{
	static const char *const words[KIND_MAX + 1] = {[KIND_STRUCT] = "struct ",
	                                                [KIND_UNION] = "union ",
	                                                [KIND_ENUM] = "enum ",
	                                                [KIND_ENUM64] = "enum ",
	                                                [KIND_FORWARD] = "struct "};
	GString *text = g_string_new(NULL);
	unsigned pointers = 0;
	const uint8_t *members;
	struct type type = {.info = 0};
	const char *name = "void", *word = NULL;

	while (type_resolve(btf, id, true, &type, &members)) {
		if (type_kind(&type) != KIND_POINTER) {
			word = words[type_kind(&type)];
			name = name_get(btf, type.name);
			break;
		}
		id = type.size_or_type;
		if (++pointers == NESTING_MAX)
			break;
	}
	if (type_kind(&type) == KIND_FORWARD && type_flag(&type))
		word = "union ";
	g_string_append_printf(text, "%s%.*s%s", name[0] != '\0' && word ? word : "", (int)TYPE_TEXT_MAX,
	                       name[0] != '\0' ? name : "void", pointers > 0 ? " " : "");
	for (; pointers > 0; pointers--)
		g_string_append_c(text, '*');
	return g_string_free(text, FALSE);
}

/* A structure of at most 8 bytes is in a register as its bytes are, as a number then (System V ABI, 3.2.3). */
void btf_value_fill(const struct btf *btf, uint32_t id, struct btf_value *value)
{
	const uint8_t *members;
	struct type type;
	uint32_t word = 0;

	*value = (struct btf_value){.type = type_text(btf, id), .id = id};
	if (!type_resolve(btf, id, false, &type, &members))
		return;
	switch (type_kind(&type)) {
	case KIND_POINTER:
		value->is_pointer = true;
		value->bytes = 8;
		return;
	case KIND_INT:
		memcpy(&word, members, sizeof(word));
		value->is_signed = word >> 24 & INT_SIGNED;
		break;
	case KIND_ENUM:
	case KIND_ENUM64:
		value->is_signed = type_flag(&type);
		break;
	case KIND_STRUCT:
	case KIND_UNION:
		break;
	default:
		return;
	}
	if (type.size_or_type == 1 || type.size_or_type == 2 || type.size_or_type == 4 || type.size_or_type == 8)
		value->bytes = type.size_or_type;
}

/* As BTF has it: gcc's names of integers have "int" at their ends. */
static bool is_named(const struct btf *btf, const struct type *type, const char *words)
{
	static const char *const others[][2] = {
		{"unsigned", "unsigned int"}, {"long", "long int"}, {"unsigned long", "long unsigned int"}};
	const enum kind kind = type_kind(type);
	const char *name = name_get(btf, type->name);

	for (size_t i = 0; kind == KIND_INT && i < G_N_ELEMENTS(others); i++)
		if (strcmp(words, others[i][0]) == 0)
			words = others[i][1];
	return (kind == KIND_INT || kind == KIND_TYPEDEF) && strcmp(name, words) == 0;
}

void btf_value_named(const struct btf *btf, const char *words, struct btf_value *value)
{
	const char *name = g_str_has_prefix(words, "const ") ? words + strlen("const ") : words;
	const uint8_t *members;
	struct type type;

	*value = (struct btf_value){.bytes = 8, .is_pointer = g_str_has_suffix(words, "*")};
	for (uint32_t id = 1; btf && !value->is_pointer && type_get(btf, id, &type, &members); id++) {
		if (!is_named(btf, &type, name))
			continue;
		btf_value_fill(btf, id, value);
		btf_value_clear(value);
		break;
	}
	value->type = g_strdup(words);
}

bool btf_function(const struct btf *btf, const char *name, uint32_t *prototype)
{
	const uint8_t *members;
	struct type type;

	for (uint32_t id = 1; type_get(btf, id, &type, &members); id++) {
		if (type_kind(&type) != KIND_FUNC || strcmp(name_get(btf, type.name), name) != 0)
			continue;
		*prototype = type.size_or_type;
		return true;
	}
	return false;
}

bool btf_parameter(const struct btf *btf, uint32_t prototype, unsigned i, char **name, struct btf_value *value)
{
	struct parameter parameter;
	const uint8_t *members;
	struct type type;

	if (!type_get(btf, prototype, &type, &members) || type_kind(&type) != KIND_FUNC_PROTO || i >= type_count(&type))
		return false;
	memcpy(&parameter, members + i * sizeof(parameter), sizeof(parameter));
	if (parameter.type == 0) /* "..." */
		return false;
	*name = g_strdup(name_get(btf, parameter.name));
	btf_value_fill(btf, parameter.type, value);
	return true;
}

bool btf_target(const struct btf *btf, uint32_t id, uint32_t *target)
{
	const uint8_t *members;
	struct type type;

	if (!type_resolve(btf, id, false, &type, &members) || type_kind(&type) != KIND_POINTER)
		return false;
	*target = type.size_or_type;
	return true;
}

bool btf_array(const struct btf *btf, uint32_t id, uint32_t *element, uint32_t *n)
{
	uint32_t words[3]; /* type, index type, number */
	const uint8_t *members;
	struct type type;

	if (!type_resolve(btf, id, false, &type, &members) || type_kind(&type) != KIND_ARRAY)
		return false;
	memcpy(words, members, sizeof(words));
	*element = words[0];
	*n = words[2];
	return true;
}

bool btf_member_of(const struct btf *btf, uint32_t id, const char *member, uint32_t *offset, uint32_t *type)
{
	uint32_t budget = MEMBERS_MAX;
	const uint8_t *members;
	struct type outer;

	return type_aggregate(btf, id, &outer, &members) &&
	       member_find(btf, &outer, members, member, 0, &budget, offset, type);
}
