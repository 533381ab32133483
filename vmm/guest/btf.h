// SPDX-License-Identifier: BSD-2-Clause
/*
 * BTF, the kernel's description of its own types (Linux, Documentation/bpf/btf.rst): only the parts that give the
 * offset of a member in a structure. The bytes come from an image and are hostile.
 */
#ifndef VPROF_GUEST_BTF_H
#define VPROF_GUEST_BTF_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTF_ERROR btf_error_quark()
GQuark btf_error_quark(void);
enum btf_error {
	BTF_ERROR_FORMAT,  /* no BTF, or of an unknown byte order or version */
	BTF_ERROR_CORRUPT, /* it contradicts itself */
};

struct btf;

/* `bytes` (of the section .BTF) are borrowed and must outlive the result. Errors: BTF_ERROR. */
struct btf *btf_new(const void *bytes, size_t n, GError **error);
void btf_free(struct btf *btf);

/*
 * Where `member` of struct `structure` starts, in bytes, and how many it has (0: its type gives none, or lies); members
 * of anonymous structs and unions count as the outer structure's own. False when there is none, or it is a bit-field.
 * Looks at every structure: not for the sampling path.
 */
bool btf_member(const struct btf *btf, const char *structure, const char *member, uint32_t *offset, uint32_t *bytes);
/* A value that one register can hold, as a parameter of a function has it. */
struct btf_value {
	char *type;     /* as C writes it: "struct task_struct *"; by btf_value_clear */
	uint32_t bytes; /* 1, 2, 4 or 8; 0: not a number and not an address, or larger */
	bool is_signed, is_pointer;
	uint32_t id; /* of the type */
};
void btf_value_clear(struct btf_value *value);
/* The bits that its type has, extended to 64 by its sign. */
uint64_t btf_value_extend(const struct btf_value *value, uint64_t number);

/* Of a type by its number; to be cleared. */
void btf_value_fill(const struct btf *btf, uint32_t id, struct btf_value *value);
/*
 * Of a type by the words that C has for it, which it keeps: a pointer to whatever, a number, a typedef; of 64 bits if
 * there is no such name, or `btf` is NULL. To be cleared. Looks at every type.
 */
void btf_value_named(const struct btf *btf, const char *words, struct btf_value *value);
/* A structure by its name: the first of that name. */
bool btf_structure(const struct btf *btf, const char *name, uint32_t *id);
/* What a pointer points to, and what an array has. False for other types. */
bool btf_target(const struct btf *btf, uint32_t id, uint32_t *target);
bool btf_array(const struct btf *btf, uint32_t id, uint32_t *element, uint32_t *n);
/* As btf_member, in a structure or union by its number; also the member's type. */
bool btf_member_of(const struct btf *btf, uint32_t id, const char *member, uint32_t *offset, uint32_t *type);

/* The type of a function; false when there is none of that name. Looks at every type. */
bool btf_function(const struct btf *btf, const char *name, uint32_t *prototype);
/* Its parameter number `i`, from 0 on; "" for one without a name. The caller frees both. False: it has fewer. */
bool btf_parameter(const struct btf *btf, uint32_t prototype, unsigned i, char **name, struct btf_value *value);

/* The size of struct `structure` in bytes; false when no struct has this name. */
bool btf_size(const struct btf *btf, const char *structure, uint32_t *bytes);

/* What `name` of enum `enumeration` stands for, of 32 bits; false when there is none. Looks at every type. */
bool btf_enumerator(const struct btf *btf, const char *enumeration, const char *name, uint32_t *value);

#endif
