// SPDX-License-Identifier: BSD-2-Clause
/* BTF of a few structures that point to each other, for paths of fields. */
#ifndef VPROF_TEST_SUPPORT_FIELD_TYPES_H
#define VPROF_TEST_SUPPORT_FIELD_TYPES_H

#include "btf_builder.h"
#include "guest/field_path.h"

/*
 *   struct name { char *text; };
 *   struct task { int pid; char comm[16]; struct name name; struct task *parent; unsigned char flags; };
 */
enum { FIELD_COMM = 4, FIELD_NAME = 24, FIELD_PARENT = 32, FIELD_FLAGS = 40, FIELD_TASK_BYTES = 48 };

/* The type of a pointer to struct task in *task. */
static inline GByteArray *field_types_make(uint32_t *task)
{
	struct btf_builder builder;

	btf_builder_init(&builder);
	const uint32_t word = btf_builder_type(&builder, "int", (uint32_t)BTF_BUILDER_INT << 24, sizeof(int32_t));

	btf_builder_u32(builder.types, 1u << 24 | 32); /* with a sign */
	const uint32_t byte = btf_builder_int(&builder, "unsigned char", 1);
	const uint32_t text = btf_builder_reference(&builder, BTF_BUILDER_POINTER, "", byte);
	const uint32_t name =
		btf_builder_struct(&builder, "name", (struct btf_member_spec[]){{"text", text, 0}, {NULL}});
	const uint32_t comm = btf_builder_type(&builder, "", (uint32_t)BTF_BUILDER_ARRAY << 24, 0);

	btf_builder_u32(builder.types, byte);
	btf_builder_u32(builder.types, word);
	btf_builder_u32(builder.types, 16);
	/* A pointer to the structure, which is the next type. */
	*task = btf_builder_reference(&builder, BTF_BUILDER_POINTER, "", comm + 2);
	btf_builder_sized(&builder, "task", FIELD_TASK_BYTES,
	                  (struct btf_member_spec[]){{"pid", word, 0},
	                                             {"comm", comm, 8 * FIELD_COMM},
	                                             {"name", name, 8 * FIELD_NAME},
	                                             {"parent", *task, 8 * FIELD_PARENT},
	                                             {"flags", byte, 8 * FIELD_FLAGS},
	                                             {NULL}});
	GByteArray *file = btf_builder_finish(&builder);

	btf_builder_deinit(&builder);
	return file;
}

#endif
