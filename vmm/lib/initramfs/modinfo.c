// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/modinfo.h"

#include <elf.h>
#include <string.h>

#include "lib/record/arch.h"

struct span {
	const guint8 *at;
	gsize n;
};

static bool span_part(struct span whole, guint64 from, guint64 n, struct span *part)
{
	if (from > whole.n || n > whole.n - from)
		return false;
	*part = (struct span){whole.at + from, n};
	return true;
}

static bool section_at(struct span file, const Elf64_Ehdr *header, unsigned i, Elf64_Shdr *section)
{
	struct span bytes;

	if (!span_part(file, header->e_shoff, (guint64)header->e_shnum * sizeof(*section), &bytes) ||
	    !span_part(bytes, i * sizeof(*section), sizeof(*section), &bytes))
		return false;
	memcpy(section, bytes.at, sizeof(*section));
	return true;
}

static bool section_named(struct span file, const Elf64_Ehdr *header, const char *name, struct span *contents)
{
	Elf64_Shdr section;
	struct span names, candidate;

	if (!section_at(file, header, header->e_shstrndx, &section) ||
	    !span_part(file, section.sh_offset, section.sh_size, &names))
		return false;
	for (unsigned i = 0; i < header->e_shnum && section_at(file, header, i, &section); i++) {
		if (span_part(names, section.sh_name, strlen(name) + 1, &candidate) &&
		    memcmp(candidate.at, name, candidate.n) == 0)
			return span_part(file, section.sh_offset, section.sh_size, contents);
	}
	return false;
}

bool modinfo_find(const guint8 *bytes, gsize n, struct modinfo *modinfo)
{
	const struct span file = {bytes, n};
	struct span section;
	Elf64_Ehdr header;

	if (file.n < sizeof(header) || memcmp(file.at, ELFMAG, SELFMAG) != 0)
		return false;
	memcpy(&header, file.at, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || arch_of_elf(header.e_machine) != arch_here() ||
	    header.e_shentsize != sizeof(Elf64_Shdr) || !section_named(file, &header, ".modinfo", &section))
		return false;
	*modinfo = (struct modinfo){section.at, section.n};
	return true;
}

char *modinfo_value(const struct modinfo *modinfo, const char *key)
{
	const gsize key_n = strlen(key);
	struct span left = {modinfo->at, modinfo->n};

	while (left.n > 0) {
		gsize n = strnlen((const char *)left.at, left.n);

		if (n > key_n && left.at[key_n] == '=' && memcmp(left.at, key, key_n) == 0)
			return g_strndup((const char *)left.at + key_n + 1, n - key_n - 1);
		n = MIN(n + 1, left.n);
		left = (struct span){left.at + n, left.n - n};
	}
	return NULL;
}
