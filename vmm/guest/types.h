// SPDX-License-Identifier: BSD-2-Clause
/* Where a Linux kernel has the members of its structures: as its image says, by BTF, or by DWARF where that is all. */
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
	TYPES_ERROR_MEMBER, /* it does not know a structure or its member */
};

struct types;

/* `image` is borrowed until types_free. Errors: TYPES_ERROR_NONE, BTF_ERROR. */
struct types *types_new(const struct image *image, GError **error);
void types_free(struct types *types);

/* A member that is wanted, and where to put how many bytes from its structure's start it is. */
struct types_member {
	const char *structure, *member;
	uint32_t *offset;
};

/* All of them, or TYPES_ERROR_MEMBER about the first that there is not. */
bool types_find(const struct types *types, const struct types_member *members, size_t n, GError **error);
/* One that some kernels have and others not. */
bool types_has(const struct types *types, const char *structure, const char *member, uint32_t *offset);
/* How many bytes a structure has of which a member was found. */
bool types_size(const struct types *types, const char *structure, uint32_t *bytes);

#endif
