// SPDX-License-Identifier: BSD-2-Clause
/* As btf_member, from the DWARF of an image; for kernels built without BTF. */
#ifndef VPROF_GUEST_DWARF_MEMBER_H
#define VPROF_GUEST_DWARF_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_types;

#ifdef VPROF_HAVE_LIBDW
/* `elf` is borrowed and must outlive the result. NULL when it has no debug information. */
struct dwarf_types *dwarf_types_new(const uint8_t *elf, size_t bytes);
void dwarf_types_free(struct dwarf_types *types);

/* As btf_member. Reads units until one defines the structure. */
bool dwarf_member(struct dwarf_types *types, const char *structure, const char *member, uint32_t *offset);
/* As btf_size, for a structure in which dwarf_member has found a member. */
bool dwarf_size(struct dwarf_types *types, const char *structure, uint32_t *bytes);
#else
static inline struct dwarf_types *dwarf_types_new(const uint8_t *elf, size_t bytes)
{
	(void)elf, (void)bytes;
	return NULL;
}

static inline void dwarf_types_free(struct dwarf_types *types)
{
	(void)types;
}

static inline bool dwarf_member(struct dwarf_types *types, const char *structure, const char *member, uint32_t *offset)
{
	(void)types, (void)structure, (void)member, (void)offset;
	return false;
}

static inline bool dwarf_size(struct dwarf_types *types, const char *structure, uint32_t *bytes)
{
	(void)types, (void)structure, (void)bytes;
	return false;
}
#endif

#endif
