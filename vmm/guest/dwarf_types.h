// SPDX-License-Identifier: BSD-2-Clause
/* As btf_member, from the DWARF of an image (vprof-parse); for kernels built without BTF. */
#ifndef VPROF_GUEST_DWARF_TYPES_H
#define VPROF_GUEST_DWARF_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"

struct dwarf_types;

/* NULL when the image has no debug information, and with IMAGE_ERROR when that cannot be read. */
struct dwarf_types *dwarf_types_new(const struct image *image, GError **error);
/* Of what vprof-parse says, which is checked, and of nothing else. NULL: it contradicts itself. */
struct dwarf_types *dwarf_types_decode(GBytes *answer);
void dwarf_types_free(struct dwarf_types *types);

/* As btf_member, and btf_size. */
bool dwarf_types_member(struct dwarf_types *types, const char *structure, const char *member, uint32_t *offset,
                        uint32_t *bytes);
bool dwarf_types_size(struct dwarf_types *types, const char *structure, uint32_t *bytes);

#endif
