// SPDX-License-Identifier: BSD-2-Clause
/* System V ABI: "Program Header", "Dynamic Section". The files come from the user and are not trusted. */
#include "lib/initramfs/elf_links.h"

#include <elf.h>
#include <string.h>

#include "lib/initramfs/initramfs.h"
#include "lib/record/arch.h"

#define NEEDED_MAX 1024u
#define ENTRIES_MAX 4096u       /* of a dynamic section */
#define STRING_BYTES_MAX 65536u /* with many folders in it */

struct elf {
	const char *path;
	const guint8 *bytes;
	gsize n;
	Elf64_Ehdr header;
};

static bool elf_fail(const struct elf *elf, const char *why, GError **error)
{
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_ELF, "%s cannot run in the guest: %s", elf->path, why);
	return false;
}

static bool elf_copy(const struct elf *elf, guint64 offset, void *to, gsize n)
{
	if (offset > elf->n || n > elf->n - offset)
		return false;
	memcpy(to, elf->bytes + offset, n);
	return true;
}

/* The string at an offset of the file; NULL if it does not end within `limit` bytes. */
static const char *elf_string(const struct elf *elf, guint64 offset, guint64 limit)
{
	const guint64 most = MIN(limit, STRING_BYTES_MAX);
	const guint64 room = offset < elf->n ? MIN(most, elf->n - offset) : 0;

	return room != 0 && memchr(elf->bytes + offset, '\0', room) ? (const char *)elf->bytes + offset : NULL;
}

bool elf_is_any(const guint8 *bytes, gsize n)
{
	return n >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

bool elf_is_ours(const guint8 *bytes, gsize n)
{
	Elf64_Ehdr header;

	if (n < sizeof(header) || !elf_is_any(bytes, n))
		return false;
	memcpy(&header, bytes, sizeof(header));
	return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
	       arch_of_elf(header.e_machine) == arch_here();
}

static bool elf_segment(const struct elf *elf, unsigned i, Elf64_Phdr *segment)
{
	return elf_copy(elf, elf->header.e_phoff + (guint64)i * sizeof(*segment), segment, sizeof(*segment));
}

static bool elf_segment_of_type(const struct elf *elf, guint32 type, Elf64_Phdr *segment)
{
	for (unsigned i = 0; i < elf->header.e_phnum; i++)
		if (elf_segment(elf, i, segment) && segment->p_type == type)
			return true;
	return false;
}

/* The offset in the file of the byte at an address of the program's memory. */
static bool elf_offset(const struct elf *elf, guint64 address, guint64 *offset)
{
	Elf64_Phdr segment;

	for (unsigned i = 0; i < elf->header.e_phnum; i++) {
		if (!elf_segment(elf, i, &segment) || segment.p_type != PT_LOAD || address < segment.p_vaddr ||
		    address - segment.p_vaddr >= segment.p_filesz)
			continue;
		*offset = segment.p_offset + (address - segment.p_vaddr);
		return true;
	}
	return false;
}

/* Calls `visit` for each entry up to DT_NULL or the segment's end. */
static bool dynamic_each(const struct elf *elf, const Elf64_Phdr *dynamic,
                         bool (*visit)(const Elf64_Dyn *entry, void *data), void *data)
{
	Elf64_Dyn entry;

	for (guint64 i = 0; i < dynamic->p_filesz / sizeof(entry); i++) {
		if (i == ENTRIES_MAX || !elf_copy(elf, dynamic->p_offset + i * sizeof(entry), &entry, sizeof(entry)))
			return false;
		if (entry.d_tag == DT_NULL)
			return true;
		if (!visit(&entry, data))
			return false;
	}
	return true;
}

struct strings {
	const struct elf *elf;
	guint64 address, bytes, offset;
	struct elf_links *links;
};

static bool strings_find(const Elf64_Dyn *entry, void *data)
{
	struct strings *strings = data;

	if (entry->d_tag == DT_STRTAB)
		strings->address = entry->d_un.d_ptr;
	else if (entry->d_tag == DT_STRSZ)
		strings->bytes = entry->d_un.d_val;
	return true;
}

static bool link_take(const Elf64_Dyn *entry, void *data)
{
	const struct strings *strings = data;
	struct elf_links *links = strings->links;
	const char *text;

	if (entry->d_tag != DT_NEEDED && entry->d_tag != DT_RPATH && entry->d_tag != DT_RUNPATH)
		return true;
	if (entry->d_un.d_val >= strings->bytes || links->needed->len == NEEDED_MAX)
		return false;
	text = elf_string(strings->elf, strings->offset + entry->d_un.d_val, strings->bytes - entry->d_un.d_val);
	if (!text)
		return false;
	if (entry->d_tag == DT_NEEDED) {
		g_ptr_array_add(links->needed, g_strdup(text));
	} else {
		char **path = entry->d_tag == DT_RPATH ? &links->rpath : &links->runpath;

		g_free(*path);
		*path = g_strdup(text);
	}
	return true;
}

static bool links_fill(const struct elf *elf, struct elf_links *links, GError **error)
{
	struct strings strings = {.elf = elf, .links = links};
	const char *interpreter;
	Elf64_Phdr segment;

	if (elf_segment_of_type(elf, PT_INTERP, &segment)) {
		interpreter = elf_string(elf, segment.p_offset, segment.p_filesz);
		if (!interpreter)
			return elf_fail(elf, "the name of its interpreter is damaged", error);
		links->interpreter = g_strdup(interpreter);
	}
	if (!elf_segment_of_type(elf, PT_DYNAMIC, &segment))
		return true;
	if (!dynamic_each(elf, &segment, strings_find, &strings) ||
	    (strings.bytes != 0 && !elf_offset(elf, strings.address, &strings.offset)) ||
	    !dynamic_each(elf, &segment, link_take, &strings))
		return elf_fail(elf, "its dynamic section is damaged", error);
	return true;
}

bool elf_links_read(struct elf_links *links, const char *path, const guint8 *bytes, gsize n, GError **error)
{
	struct elf elf = {.path = path, .bytes = bytes, .n = n};

	*links = (struct elf_links){.needed = g_ptr_array_new_with_free_func(g_free)};
	g_autofree char *foreign = g_strdup_printf("it is an ELF file, but not for %s", arch_name(arch_here()));

	if (!elf_is_ours(bytes, n) || !elf_copy(&elf, 0, &elf.header, sizeof(elf.header)))
		elf_fail(&elf, foreign, error);
	else if (elf.header.e_phentsize != sizeof(Elf64_Phdr) && elf.header.e_phnum != 0)
		elf_fail(&elf, "its program headers are damaged", error);
	else if (links_fill(&elf, links, error))
		return true;
	elf_links_clear(links);
	return false;
}

void elf_links_clear(struct elf_links *links)
{
	g_clear_pointer(&links->needed, g_ptr_array_unref);
	g_clear_pointer(&links->interpreter, g_free);
	g_clear_pointer(&links->rpath, g_free);
	g_clear_pointer(&links->runpath, g_free);
}
