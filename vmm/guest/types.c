// SPDX-License-Identifier: BSD-2-Clause
#include "guest/types.h"

#include <string.h>

#include "guest/btf.h"
#include "guest/dwarf_types.h"

G_DEFINE_QUARK(vprof_types_error, types_error)

/* Exactly one of the two is there. */
struct types {
	struct btf *btf;
	struct dwarf_types *dwarf;
};

const uint8_t *types_btf(const struct image *image, size_t *bytes, GError **error)
{
	uint64_t address;
	const uint8_t *section = image_section(image, ".BTF", bytes, &address);

	if (!section || !image_is_of_guest(image) || *bytes <= TYPES_GUEST_BYTES_MAX)
		return section;
	g_set_error(error, TYPES_ERROR, TYPES_ERROR_LIMIT,
	            "the kernel in the guest's memory has %zu bytes of BTF, and may have %" G_GUINT64_FORMAT, *bytes,
	            TYPES_GUEST_BYTES_MAX);
	return NULL;
}

struct types *types_new(const struct image *image, GError **error)
{
	size_t bytes;
	g_autoptr(GError) limit = NULL;
	const uint8_t *section = types_btf(image, &bytes, &limit);

	if (limit) {
		g_propagate_error(error, g_steal_pointer(&limit));
		return NULL;
	}
	struct types *types = g_new0(struct types, 1);
	g_autoptr(GError) why = NULL;

	if (section) {
		types->btf = btf_new(section, bytes, error);
	} else {
		types->dwarf = dwarf_types_new(image, &why);
		if (!types->dwarf && why)
			g_propagate_error(error, g_steal_pointer(&why));
		else if (!types->dwarf)
			g_set_error(error, TYPES_ERROR, TYPES_ERROR_NONE,
			            "%s has neither BTF nor debug information; build Linux with CONFIG_DEBUG_INFO_BTF",
			            image_path(image));
	}
	if (types->btf || types->dwarf)
		return types;
	g_free(types);
	return NULL;
}

void types_free(struct types *types)
{
	if (!types)
		return;
	btf_free(types->btf);
	dwarf_types_free(types->dwarf);
	g_free(types);
}

static bool member_find(const struct types *types, const char *structure, const char *member, uint32_t *offset,
                        uint32_t *bytes)
{
	return types->btf ? btf_member(types->btf, structure, member, offset, bytes)
	                  : dwarf_types_member(types->dwarf, structure, member, offset, bytes);
}

bool types_has(const struct types *types, const char *structure, const char *member, uint32_t bytes, uint32_t *offset)
{
	uint32_t found, size;

	if (!member_find(types, structure, member, &found, &size) || (bytes != TYPES_PLACE && size != bytes))
		return false;
	*offset = found;
	return true;
}

bool types_size(const struct types *types, const char *structure, uint32_t *bytes)
{
	return types->btf ? btf_size(types->btf, structure, bytes) : dwarf_types_size(types->dwarf, structure, bytes);
}

bool types_enumerator(const struct types *types, const char *enumeration, const char *name, uint32_t *value)
{
	return types->btf && btf_enumerator(types->btf, enumeration, name, value);
}

static bool missing(const struct types *types, const char *structure, const char *member, GError **error)
{
	g_set_error(error, TYPES_ERROR, TYPES_ERROR_MEMBER, "the kernel's %s has no struct %s with a member %s",
	            types->btf ? "BTF" : "debug information", structure, member);
	return false;
}

bool types_find(const struct types *types, const struct types_member *members, size_t n, GError **error)
{
	for (size_t i = 0; i < n; i++) {
		const struct types_member *wanted = &members[i];
		uint32_t offset, bytes;

		if (!member_find(types, wanted->structure, wanted->member, &offset, &bytes))
			return missing(types, wanted->structure, wanted->member, error);
		if (wanted->bytes != TYPES_PLACE && bytes != wanted->bytes) {
			g_set_error(error, TYPES_ERROR, TYPES_ERROR_SIZE,
			            "the kernel's struct %s has a member %s of %u bytes; this vprof reads %u",
			            wanted->structure, wanted->member, bytes, wanted->bytes);
			return false;
		}
		*wanted->offset = offset;
	}
	return true;
}

bool types_find_number(const struct types *types, const char *structure, const char *member,
                       struct types_number *number, GError **error)
{
	struct types_number found;

	if (!member_find(types, structure, member, &found.at, &found.bytes))
		return missing(types, structure, member, error);
	if (found.bytes != 1 && found.bytes != 2 && found.bytes != 4 && found.bytes != 8) {
		g_set_error(error, TYPES_ERROR, TYPES_ERROR_SIZE,
		            "the kernel's struct %s has a member %s of %u bytes, which is not a number's size",
		            structure, member, found.bytes);
		return false;
	}
	*number = found;
	return true;
}

uint64_t types_number_read(struct types_number number, const uint8_t *structure)
{
	uint64_t value = 0;

	memcpy(&value, structure + number.at, number.bytes);
	return GUINT64_FROM_LE(value);
}
