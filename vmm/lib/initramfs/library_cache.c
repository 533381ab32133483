// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/library_cache.h"

#include <string.h>

#include "lib/record/arch.h"

#define CACHE_MAGIC "glibc-ld.so.cache1.1"

static const guint32 flags_wanted[] = {
	[ARCH_X86_64] = 0x0303, /* FLAG_ELF_LIBC6 | FLAG_X8664_LIB64 */
	[ARCH_ARM64] = 0x0a03,  /* FLAG_ELF_LIBC6 | FLAG_AARCH64_LIB64 */
};

/* struct cache_file_new, struct file_entry_new. Offsets of strings count from the header. */
struct cache_header {
	char magic[20];
	guint32 n;
	guint32 string_bytes;
	guint32 unused[5];
};
_Static_assert(sizeof(struct cache_header) == 48, "as in the file");

struct cache_entry {
	guint32 flags;
	guint32 name, path;
	guint32 os_version;
	guint64 capabilities; /* not 0: a variant for some processors, beside one for all */
};
_Static_assert(sizeof(struct cache_entry) == 24, "as in the file");

static const char *cache_string(const guint8 *bytes, gsize n, guint32 offset)
{
	return offset < n && memchr(bytes + offset, '\0', n - offset) ? (const char *)bytes + offset : NULL;
}

const char *library_cache_find(const guint8 *bytes, gsize n, const char *name)
{
	/* A cache in the old format, for older programs, may come first. */
	const guint8 *start = n != 0 ? memmem(bytes, n, CACHE_MAGIC, strlen(CACHE_MAGIC)) : NULL;
	struct cache_header header;

	if (!start || n - (gsize)(start - bytes) < sizeof(header))
		return NULL;
	n -= (gsize)(start - bytes);
	memcpy(&header, start, sizeof(header));
	for (gsize i = 0; i < header.n && (n - sizeof(header)) / sizeof(struct cache_entry) > i; i++) {
		struct cache_entry entry;
		const char *found;

		memcpy(&entry, start + sizeof(header) + i * sizeof(entry), sizeof(entry));
		if (entry.flags != flags_wanted[arch_here()] || entry.capabilities != 0)
			continue;
		found = cache_string(start, n, entry.name);
		if (found && strcmp(found, name) == 0)
			return cache_string(start, n, entry.path);
	}
	return NULL;
}
