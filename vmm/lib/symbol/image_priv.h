// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of an image that the files of this folder fill in and read.
 */
#ifndef VPROF_SYMBOL_IMAGE_PRIV_H
#define VPROF_SYMBOL_IMAGE_PRIV_H

#include <elf.h>

#include <vprof/parse.h>

#include "lib/symbol/image.h"
#include "lib/symbol/span_priv.h"

/* Bytes of the file that are not known. */
struct image_hole {
	uint64_t from, to;
};

/* All spans point into `file` or `elf`. */
struct image {
	char *path;
	enum image_kind kind;
	GBytes *file;
	int sealed;     /* memory with `file`; -1: bytes of the caller */
	int unpacked;   /* memory with `elf`; -1: it is `file` */
	int source;     /* the file with debug information that `sealed` has not; -1 */
	int symbols;    /* sealed memory with what vprof-parse says of its symbols; -1: none is kept */
	GBytes *elf;    /* `file` again, or the unpacked payload */
	GBytes *layout; /* what vprof-parse says of it, with section_names; NULL: read here */
	struct span bytes;
	struct span setup_header;
	const char *compression;
	char *release;
	bool is_linux;
	bool is_of_guest;
	enum arch arch;
	uint64_t entry;
	uint64_t slide;
	bool has_pvh_entry;
	uint32_t pvh_entry;
	struct span build_id;
	uint64_t build_id_gva; /* of one without contents; 0: in no segment */
	uint8_t build_id_copy[IMAGE_BUILD_ID_BYTES_MAX];
	uint64_t frame_header_gva; /* PT_GNU_EH_FRAME */
	struct span frame_header;
	GArray *holes; /* struct image_hole, by offset; NULL: all bytes are known */
	struct image_segment segments[IMAGE_SEGMENTS_MAX];
	size_t n_segments;
	Elf64_Shdr *sections; /* copies; every one but SHT_NOBITS and SHT_NULL lies inside `bytes` */
	size_t n_sections;
	struct span section_names;
};

/* An address of an image where it is in memory. Per-CPU offsets and a program's addresses do not slide. */
static inline uint64_t address_slid(uint64_t address, uint64_t slide)
{
	return address >> 63 ? address + slide : address;
}

/* "kernel", "program", "kernel module". */
const char *image_kind_name(enum image_kind kind);

/* "cannot use kernel PATH: ...", or only the reason without a path; returns false. */
G_GNUC_PRINTF(4, 5)
bool image_fail(const struct image *image, GError **error, enum image_error code, const char *format, ...);

/* image_copy.c. Sealed memory with a part of a file, or -1 with IMAGE_ERROR_IO and no more than the reason. Sealed
 * memory is not copied again. */
enum image_copy_part { IMAGE_COPY_ALL, IMAGE_COPY_LOADED, IMAGE_COPY_DEBUG };
int image_copy(int fd, enum image_copy_part part, GError **error);

/* x86/image_bzimage.c. `file` is a bzImage: sets elf, setup_header, compression and release. */
bool image_is_bzimage_file(struct span file);
bool image_unpack_bzimage(struct image *image, GError **error);

/* arm64/image_zboot.c, image_boot.c. Boot images for arm64: packed in a program for EFI, or plain, with the header in
 * image->bytes. */
bool image_is_zboot_file(struct span file);
bool image_unpack_zboot(struct image *image, GError **error);
bool image_is_gzip_file(struct span file);
bool image_is_boot_file(struct span file);
bool image_parse_boot(struct image *image, GError **error);

/* image_payload.c. Sets elf and compression. The last bytes of `payload` are the size of what was packed. */
bool image_unpack_payload(struct image *image, struct span payload, GError **error);

/* image_ask.c. Sealed memory with what vprof-parse says of the image, or its contents; -1 or NULL with PARSER_ERROR or
 * IMAGE_ERROR, as a clause without a subject. */
int image_ask_memory(const struct image *image, enum vprof_parse_what what, uint64_t answer_bytes, GError **error);
GBytes *image_answer_map(int answer, GError **error);
GBytes *image_ask(const struct image *image, enum vprof_parse_what what, uint64_t answer_bytes, GError **error);

/* image_open.c. Of bytes, or of sealed memory and its source, which are taken over; `describe` fills in what
 * image->bytes, which are not packed, say. */
typedef bool (*image_describe_fn)(struct image *image, GError **error);
struct image *image_make(const char *path, GBytes *file, enum image_kind kind, int sealed, int source,
                         image_describe_fn describe, GError **error);

/* image_layout.c. By vprof-parse; and what it has said, which is checked. */
bool image_ask_layout(struct image *image, GError **error);
bool image_decode(struct image *image, GBytes *answer);

/* image_parse.c. In there. */
bool image_parse(struct image *image, GError **error);
/* Linux' banner, for kernels, which image_parse does not look for. */
void image_find_release(struct image *image);

/* image_elf.c. The same of an ELF file. */
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
