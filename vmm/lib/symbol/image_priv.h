// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of an image that the files of this folder fill in and read.
 */
#ifndef VPROF_SYMBOL_IMAGE_PRIV_H
#define VPROF_SYMBOL_IMAGE_PRIV_H

#include <elf.h>

#include "lib/symbol/image.h"
#include "lib/symbol/span_priv.h"

/* All spans point into `file` or `elf`. */
struct image {
	char *path;
	enum image_kind { IMAGE_KERNEL, IMAGE_PROGRAM, IMAGE_MODULE } kind;
	GBytes *file;
	GBytes *elf; /* `file` again, or the unpacked payload */
	struct span bytes;
	struct span setup_header;
	const char *compression;
	char *release;
	bool is_linux;
	uint64_t entry;
	uint64_t slide;
	bool has_pvh_entry;
	uint32_t pvh_entry;
	struct span build_id;
	struct image_segment segments[IMAGE_SEGMENTS_MAX];
	size_t n_segments;
	Elf64_Shdr *sections; /* copies; every one but SHT_NOBITS and SHT_NULL lies inside `bytes` */
	size_t n_sections;
	struct span section_names;
};

/* `address` of the image, where it is in memory. Per-CPU offsets and a program's addresses do not slide. */
static inline uint64_t image_slid(const struct image *image, uint64_t address)
{
	return address >> 63 ? address + image->slide : address;
}

/* "cannot use kernel PATH: ..."; returns false. */
G_GNUC_PRINTF(4, 5)
bool image_fail(const struct image *image, GError **error, enum image_error code, const char *format, ...);

/* image_bzimage.c. `file` is a bzImage: sets elf, setup_header, compression and release. */
bool image_is_bzimage_file(struct span file);
bool image_unpack_bzimage(struct image *image, GError **error);

/* image_elf.c. Fills in what the ELF in image->bytes says. */
bool image_parse_elf(struct image *image, GError **error);

/* image_module.c. Gives the sections of a module their addresses, and makes its segments of them. */
bool image_lay_out_module(struct image *image, GError **error);

/* image_elf.c. Takes what is of use among the notes at `from` of the file. */
void image_walk_notes(struct image *image, uint64_t from, uint64_t bytes, uint64_t alignment);

/* The contents of section `index`; an empty span for SHT_NOBITS and SHT_NULL. */
struct span image_section_span(const struct image *image, size_t index);

/* The first word of `text` when it looks like a kernel release ("6.1.0-50-cloud-amd64"), else NULL. */
char *image_release_from(struct span text);

#endif
