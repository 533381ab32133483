// SPDX-License-Identifier: BSD-2-Clause
/*
 * Offsets and sizes of members in the structures of a Linux kernel, from the BTF of its image, or from DWARF if that is
 * all it has.
 */
#ifndef VPROF_GUEST_TYPES_H
#define VPROF_GUEST_TYPES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"

#define TYPES_ERROR types_error_quark()
GQuark types_error_quark(void);
enum types_error {
	TYPES_ERROR_NONE,   /* neither BTF nor debug information */
	TYPES_ERROR_MEMBER, /* a structure or a member is missing */
	TYPES_ERROR_SIZE,   /* a member has another size than is read of it */
	TYPES_ERROR_LIMIT,  /* a guest's memory has more BTF than any kernel */
};

#define TYPES_GUEST_BYTES_MAX (UINT64_C(12) << 20) /* of BTF in a guest's memory; a distribution's kernel has 5 MiB */

/* The BTF of the image; NULL: it has none, or, with TYPES_ERROR_LIMIT, too much. */
const uint8_t *types_btf(const struct image *image, size_t *bytes, GError **error);

struct types;

/* `image` is borrowed until types_free. Errors: TYPES_ERROR_NONE, TYPES_ERROR_LIMIT, BTF_ERROR, IMAGE_ERROR. */
struct types *types_new(const struct image *image, GError **error);
void types_free(struct types *types);

#define TYPES_PLACE 0u /* for `bytes`: members of the member are read, or none */

/* A member to find, how many bytes are read of it, which are all that it has, and where to store its offset in bytes.
 */
struct types_member {
	const char *structure, *member;
	uint32_t bytes;
	uint32_t *offset;
};

/* Finds all of them; TYPES_ERROR_MEMBER or TYPES_ERROR_SIZE about the first that is missing, or is not what is read. */
bool types_find(const struct types *types, const struct types_member *members, size_t n, GError **error);
/* A member that not all kernels have; false, too, if it has another size. */
bool types_has(const struct types *types, const char *structure, const char *member, uint32_t bytes, uint32_t *offset);

/* Where a number is, and in how many bytes: 1, 2, 4 or 8, which not all kernels agree on. */
struct types_number {
	uint32_t at, bytes;
};
/* Errors: TYPES_ERROR_MEMBER, TYPES_ERROR_SIZE. */
bool types_find_number(const struct types *types, const char *structure, const char *member,
                       struct types_number *number, GError **error);
/* The number in the structure's bytes. */
uint64_t types_number_read(struct types_number number, const uint8_t *structure);
/* The size of a structure in which a member was found. */
bool types_size(const struct types *types, const char *structure, uint32_t *bytes);
/* As btf_enumerator; false where the kernel has DWARF alone. */
bool types_enumerator(const struct types *types, const char *enumeration, const char *name, uint32_t *value);

#endif
