// SPDX-License-Identifier: BSD-2-Clause
/* A .BTF section made by code (Linux, Documentation/bpf/btf.rst). Types are numbered from 1 in the order they are made.
 */
#ifndef VPROF_TEST_SUPPORT_BTF_BUILDER_H
#define VPROF_TEST_SUPPORT_BTF_BUILDER_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

enum btf_builder_kind {
	BTF_BUILDER_INT = 1,
	BTF_BUILDER_POINTER = 2,
	BTF_BUILDER_ARRAY = 3,
	BTF_BUILDER_STRUCT = 4,
	BTF_BUILDER_TYPEDEF = 8,
	BTF_BUILDER_CONST = 10,
	BTF_BUILDER_FUNC = 12,
	BTF_BUILDER_FUNC_PROTO = 13,
};

struct btf_builder {
	GByteArray *types;
	GString *names;
	uint32_t n;
};

/* The last one has a NULL name. */
struct btf_member_spec {
	const char *name;
	uint32_t type;
	uint32_t offset; /* bits, or as a bit-field's */
};

static inline void btf_builder_init(struct btf_builder *builder)
{
	*builder = (struct btf_builder){.types = g_byte_array_new(), .names = g_string_new_len("", 1)};
}

static inline void btf_builder_deinit(struct btf_builder *builder)
{
	g_byte_array_unref(builder->types);
	g_string_free(builder->names, TRUE);
}

static inline void btf_builder_u32(GByteArray *to, uint32_t value)
{
	value = GUINT32_TO_LE(value);
	g_byte_array_append(to, (const uint8_t *)&value, sizeof(value));
}

static inline uint32_t btf_builder_name(struct btf_builder *builder, const char *name)
{
	uint32_t offset = (uint32_t)builder->names->len;

	if (name[0] == '\0')
		return 0;
	g_string_append_len(builder->names, name, (gssize)strlen(name) + 1);
	return offset;
}

static inline uint32_t btf_builder_type(struct btf_builder *builder, const char *name, uint32_t info, uint32_t last)
{
	btf_builder_u32(builder->types, btf_builder_name(builder, name));
	btf_builder_u32(builder->types, info);
	btf_builder_u32(builder->types, last);
	return ++builder->n;
}

static inline uint32_t btf_builder_int(struct btf_builder *builder, const char *name, uint32_t bytes)
{
	uint32_t id = btf_builder_type(builder, name, (uint32_t)BTF_BUILDER_INT << 24, bytes);

	btf_builder_u32(builder->types, bytes * 8);
	return id;
}

static inline uint32_t btf_builder_reference(struct btf_builder *builder, enum btf_builder_kind kind, const char *name,
                                             uint32_t type)
{
	return btf_builder_type(builder, name, (uint32_t)kind << 24, type);
}

static inline uint32_t btf_builder_array(struct btf_builder *builder, uint32_t element, uint32_t n)
{
	const uint32_t id = btf_builder_type(builder, "", (uint32_t)BTF_BUILDER_ARRAY << 24, 0);

	btf_builder_u32(builder->types, element);
	btf_builder_u32(builder->types, element);
	btf_builder_u32(builder->types, n);
	return id;
}

static inline uint32_t btf_builder_members(struct btf_builder *builder, const char *name, uint32_t info, uint32_t bytes,
                                           const struct btf_member_spec *members)
{
	uint32_t n = 0;

	while (members[n].name)
		n++;
	uint32_t id = btf_builder_type(builder, name, info | n, bytes);

	for (uint32_t i = 0; i < n; i++) {
		btf_builder_u32(builder->types, btf_builder_name(builder, members[i].name));
		btf_builder_u32(builder->types, members[i].type);
		btf_builder_u32(builder->types, members[i].offset);
	}
	return id;
}

static inline uint32_t btf_builder_sized(struct btf_builder *builder, const char *name, uint32_t bytes,
                                         const struct btf_member_spec *members)
{
	return btf_builder_members(builder, name, (uint32_t)BTF_BUILDER_STRUCT << 24, bytes, members);
}

static inline uint32_t btf_builder_struct(struct btf_builder *builder, const char *name,
                                          const struct btf_member_spec *members)
{
	return btf_builder_sized(builder, name, 0, members);
}

/* A struct with bit-field sizes in bits 24 and up of its offsets. */
static inline uint32_t btf_builder_bit_fields(struct btf_builder *builder, const char *name,
                                              const struct btf_member_spec *members)
{
	return btf_builder_members(builder, name, UINT32_C(1) << 31 | (uint32_t)BTF_BUILDER_STRUCT << 24, 0, members);
}

/* Header, types, names. */
static inline GByteArray *btf_builder_finish(const struct btf_builder *builder)
{
	GByteArray *file = g_byte_array_new();

	btf_builder_u32(file, 0xeb9f | 1u << 16); /* magic, version, flags */
	btf_builder_u32(file, 24);
	btf_builder_u32(file, 0);
	btf_builder_u32(file, builder->types->len);
	btf_builder_u32(file, builder->types->len);
	btf_builder_u32(file, (uint32_t)builder->names->len);
	g_byte_array_append(file, builder->types->data, builder->types->len);
	g_byte_array_append(file, (const uint8_t *)builder->names->str, (guint)builder->names->len);
	return file;
}

#endif
