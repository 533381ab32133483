// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel image: ELF64 for x86-64 or arm64 (vmlinux, PVH kernels, freestanding), a bzImage, which is unpacked to such
 * an ELF, or a boot image for arm64, packed or not, which is one segment of code and data. The file is hostile: every
 * offset and size is checked once, at image_open, and no later call can leave the bytes.
 */
#ifndef VPROF_SYMBOL_IMAGE_H
#define VPROF_SYMBOL_IMAGE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/arch.h"

#define IMAGE_ERROR image_error_quark()
GQuark image_error_quark(void);
enum image_error {
	IMAGE_ERROR_IO,
	IMAGE_ERROR_FORMAT,    /* neither ELF, bzImage nor boot image */
	IMAGE_ERROR_CLASS,     /* ELF32, or for another architecture */
	IMAGE_ERROR_TRUNCATED, /* headers or segments outside the file */
	IMAGE_ERROR_SEGMENTS,  /* no PT_LOAD, overlapping ones, sizes that wrap */
	IMAGE_ERROR_PAYLOAD,   /* what is packed in it cannot be unpacked */
};

/* Of a file, most may be debug information. What of it is read, and what a kernel unpacks to, takes memory. */
#define IMAGE_FILE_BYTES_MAX (UINT64_C(8) << 30)
#define IMAGE_BYTES_MAX (UINT64_C(1) << 30)
#define IMAGE_UNPACKED_BYTES_MAX (UINT64_C(256) << 20)
#define IMAGE_SEGMENTS_MAX 64u
#define IMAGE_BUILD_ID_BYTES_MAX 32u

struct image_segment {
	uint64_t gpa;         /* p_paddr */
	uint64_t gva;         /* p_vaddr */
	uint64_t file_offset; /* into image_bytes */
	uint64_t file_bytes;
	uint64_t memory_bytes; /* >= file_bytes; the rest is zero */
	uint32_t flags;        /* PF_R, PF_W, PF_X */
};

/* The path of a kernel that was found in a guest's memory. */
#define IMAGE_GUEST_MEMORY "[guest memory]"

struct image;

enum image_kind { IMAGE_KERNEL, IMAGE_PROGRAM, IMAGE_MODULE };

/* What is used of the file is copied: it may change, or become shorter, at any time. vprof-parse reads it. */
struct image *image_open(const char *path, GError **error);
/* A kernel's file, open for reading, for image_open_fd; -1: cannot be opened. */
int image_open_kernel(const char *path, GError **error);
/* The same for bytes in memory, which it references and reads itself; `path` is for messages. For tests. */
struct image *image_new(const char *path, GBytes *file, GError **error);
/*
 * A program or library, or the file that a distribution keeps its debug information in, which has the program's headers
 * and not its contents: segments may lie outside the file, and have no file_bytes then.
 */
struct image *image_new_program(const char *path, GBytes *file, GError **error);
/*
 * A loadable module of Linux, as its .ko file is without compression. It is not linked: what is code has the addresses
 * that the kernel's layout gives it, counted from the module's first byte of code; and from the next page on, that of
 * its init function. These two are its segments, and addresses their file_offset.
 */
struct image *image_new_module(const char *path, GBytes *file, GError **error);
/* The same for the regular file or the sealed memory behind `fd`, which the caller still owns. */
struct image *image_open_fd(const char *path, enum image_kind kind, int fd, GError **error);
/*
 * A program of the guest, in sealed memory of which the holes are not known: none of the functions below returns what
 * is there as bytes of the file, but for image_bytes, image_section and image_at, whose callers ask image_has.
 */
struct image *image_open_partial(const char *path, int sealed, GError **error);
/* For vprof-parse: of bytes that are not packed any more, or never were, which it references. Its errors have no path.
 */
struct image *image_new_unpacked(enum image_kind kind, GBytes *bytes, bool was_packed, GError **error);
/* There: what image_open_fd is told. With Linux' release, which is searched for. */
GByteArray *image_encode(struct image *image, bool with_release);
/* Makes it one like those of image_open_partial, by the holes of `fd`. */
void image_find_holes(struct image *image, int fd);
void image_free(struct image *image);
/* Gives back the memory that mapped contents take; what is used of them again is there again. */
void image_rest(const struct image *image);
/*
 * Gives back all memory that the contents take: there are none from now on, as in a file of which only path, release,
 * build-id and the addresses of segments are known.
 */
void image_forget(struct image *image);

/*
 * The bytes are what a guest has in its memory, not a file that the user named: tables that are made of them have the
 * limits of a guest (symtab.h, types.h). Images of image_open_partial are such ones.
 */
void image_set_of_guest(struct image *image);
bool image_is_of_guest(const struct image *image);

/* Whether all of these bytes, of what image_section or image_at returned, are known. */
bool image_has(const struct image *image, const uint8_t *bytes, size_t n);

/*
 * Where KASLR has put a kernel: adds `slide` to every address in the kernel's half of the address space that the image
 * gives from now on, of segments, sections and, in a symtab_load behind it, symbols. Once for each image.
 */
void image_set_slide(struct image *image, uint64_t slide);
uint64_t image_slide(const struct image *image);

const char *image_path(const struct image *image);
enum arch image_arch(const struct image *image);
/* IMAGE_ERROR_CLASS, with both names, unless the image is for `arch`. `of`: what it has to fit, "this host". */
bool image_check_arch(const struct image *image, enum arch arch, const char *of, GError **error);
bool image_is_bzimage(const struct image *image);
/* "gzip", "xz", ...: how the payload was packed; NULL for a plain ELF. */
const char *image_compression(const struct image *image);

/* The (unpacked) ELF or boot image; after a bzImage's, its relocation data. Borrowed. */
const uint8_t *image_bytes(const struct image *image, size_t *bytes);

/* PT_LOAD segments of more than 0 bytes, sorted by gpa, not overlapping. */
const struct image_segment *image_segments(const struct image *image, size_t *n);
/* The address of the code at byte `offset` of the file; false: there is none in an executable segment. */
bool image_code_address(const struct image *image, uint64_t offset, uint64_t *gva);
uint64_t image_entry(const struct image *image); /* e_entry */
/* True and *entry_gpa when the image has a XEN_ELFNOTE_PHYS32_ENTRY note. */
bool image_pvh_entry(const struct image *image, uint32_t *entry_gpa);
/*
 * Where the code of Linux runs until it has mapped itself (arch/x86/kernel/head_64.S): guest physical addresses from
 * gpa on, for code that is linked at gva.
 */
struct image_start {
	uint64_t gpa, gva;
	uint64_t bytes; /* 0: not known, or no Linux */
};
void image_find_start(const struct image *image, struct image_start *start);
/* Whether this is a Linux kernel (it is a bzImage or has Linux' banner). */
bool image_is_linux(const struct image *image);
/* "6.1.0-50-cloud-amd64", from the banner or the bzImage header; NULL if unknown. */
const char *image_release(const struct image *image);
/* GNU build-id note; NULL if there is none. */
const uint8_t *image_build_id(const struct image *image, size_t *bytes);
/* The same in hexadecimal, which the caller frees (g_free). */
char *image_build_id_text(const struct image *image);
/* Where the build-id is in memory; false: in no segment. */
bool image_build_id_address(const struct image *image, uint64_t *gva);
/* The setup header of a bzImage, from offset 0x1f1 (struct setup_header); NULL for a plain ELF. */
const uint8_t *image_setup_header(const struct image *image, size_t *bytes);

/* Sealed memory with image_bytes, for vprof-parse; *bytes is its size. -1 with IMAGE_ERROR_IO. The caller closes it. */
int image_memory(const struct image *image, uint64_t *bytes, GError **error);
/*
 * Sealed memory with the ELF file's debug information, for vprof-parse; *bytes is its size. -1 with IMAGE_ERROR_IO. The
 * caller closes it.
 */
int image_debug_file(const struct image *image, uint64_t *bytes, GError **error);

/*
 * What vprof-parse has said of the symbols (symtab_load_keeping), in sealed memory: the image has it no more, and the
 * caller closes it. -1: it has none.
 */
int image_take_symbols(struct image *image);
/* Takes it over, -1 for none: also that of the same image in another program, for symtab_load, which checks it. */
void image_give_symbols(struct image *image, int symbols);

/* The bytes of a section by name; NULL if absent or without contents in the file. */
const uint8_t *image_section(const struct image *image, const char *name, size_t *bytes, uint64_t *address);

/* .eh_frame_hdr, by its program header; NULL: there is none. */
const uint8_t *image_frame_header(const struct image *image, size_t *bytes, uint64_t *address);

/* The file bytes behind guest virtual address `gva` of a PT_LOAD; *bytes: how many follow. NULL outside. */
const uint8_t *image_at(const struct image *image, uint64_t gva, size_t *bytes);

#endif
