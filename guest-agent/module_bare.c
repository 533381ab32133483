// SPDX-License-Identifier: BSD-2-Clause
#include "module_bare.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The end of a signed module (Linux, include/linux/module_signature.h): signature, its size in 4 big-endian bytes,
 * this. */
#define MARK "~Module signature appended~\n"
#define MARK_BYTES (sizeof(MARK) - 1)
#define SIGNATURE_HEAD_BYTES 12 /* struct module_signature; the size is at its end */
#define TAIL_BYTES (SIGNATURE_HEAD_BYTES + MARK_BYTES)

#define TYPES ".BTF"
#define HIDDEN_TYPES ".btf"

static bool read_at(int fd, uint64_t at, void *bytes, size_t n)
{
	return at <= INT64_MAX && pread(fd, bytes, n, (off_t)at) == (ssize_t)n;
}

static bool signature_cut(int fd)
{
	unsigned char tail[TAIL_BYTES], *end = tail + SIGNATURE_HEAD_BYTES;
	struct stat file;
	uint64_t bytes;

	if (fstat(fd, &file) != 0 || file.st_size < (off_t)TAIL_BYTES ||
	    !read_at(fd, (uint64_t)file.st_size - TAIL_BYTES, tail, TAIL_BYTES) || memcmp(end, MARK, MARK_BYTES) != 0)
		return true;
	bytes = TAIL_BYTES + ((uint64_t)end[-4] << 24 | (uint64_t)end[-3] << 16 | (uint64_t)end[-2] << 8 | end[-1]);
	return bytes > (uint64_t)file.st_size || ftruncate(fd, file.st_size - (off_t)bytes) == 0;
}

static bool section_read(int fd, const Elf64_Ehdr *header, unsigned i, Elf64_Shdr *section)
{
	uint64_t at;

	return i < header->e_shnum && header->e_shentsize == sizeof(*section) &&
	       !__builtin_add_overflow(header->e_shoff, (uint64_t)i * sizeof(*section), &at) &&
	       read_at(fd, at, section, sizeof(*section));
}

/* The kernel looks for them by the name of their section: `from` becomes `to`. */
static bool types_rename(int fd, const char from[static sizeof(TYPES)], const char to[static sizeof(TYPES)])
{
	Elf64_Ehdr header;
	Elf64_Shdr names, section;
	char name[sizeof(TYPES)];
	uint64_t at;

	if (!read_at(fd, 0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    !section_read(fd, &header, header.e_shstrndx, &names))
		return true;
	for (unsigned i = 0; section_read(fd, &header, i, &section); i++)
		if (!__builtin_add_overflow(names.sh_offset, (uint64_t)section.sh_name, &at) &&
		    read_at(fd, at, name, sizeof(name)) && memcmp(name, from, sizeof(TYPES)) == 0)
			return pwrite(fd, to, sizeof(TYPES), (off_t)at) == (ssize_t)sizeof(TYPES);
	return true;
}

bool module_bare(int fd)
{
	return signature_cut(fd) && types_rename(fd, TYPES, HIDDEN_TYPES);
}

bool module_with_types(int fd)
{
	return types_rename(fd, HIDDEN_TYPES, TYPES);
}
