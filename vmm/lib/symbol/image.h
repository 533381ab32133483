// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel image: ELF64 x86-64 (vmlinux, PVH kernels, freestanding), or a bzImage, which is unpacked to such an
 * ELF. The file is hostile: every offset and size is checked once, at image_open, and no later call can leave the
 * bytes.
 */
#ifndef VPROF_SYMBOL_IMAGE_H
#define VPROF_SYMBOL_IMAGE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_ERROR image_error_quark()
GQuark image_error_quark(void);
enum image_error {
	IMAGE_ERROR_IO,
	IMAGE_ERROR_FORMAT,    /* neither ELF nor bzImage */
	IMAGE_ERROR_CLASS,     /* ELF32, or another machine */
	IMAGE_ERROR_TRUNCATED, /* headers or segments outside the file */
	IMAGE_ERROR_SEGMENTS,  /* no PT_LOAD, overlapping ones, sizes that wrap */
	IMAGE_ERROR_PAYLOAD,   /* the payload of a bzImage cannot be unpacked */
};

/* A file is only mapped, and a vmlinux with debug information has gigabytes; an unpacked payload takes memory. */
#define IMAGE_FILE_BYTES_MAX (UINT64_C(8) << 30)
#define IMAGE_BYTES_MAX (UINT64_C(1) << 30)
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

struct image;

/* A plain ELF is mapped, not copied: if the file is truncated meanwhile, this process ends with SIGBUS. */
struct image *image_open(const char *path, GError **error);
/* The same for bytes in memory, which it references; `path` is for messages. */
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
/* The same for the regular file behind `fd`, which the caller still owns. */
struct image *image_open_fd(const char *path, int fd, GError **error);
void image_free(struct image *image);

/*
 * Where KASLR has put a kernel: adds `slide` to every address in the kernel's half of the address space that the image
 * gives from now on, of segments, sections and, in a symtab_load behind it, symbols. Once for each image.
 */
void image_set_slide(struct image *image, uint64_t slide);
uint64_t image_slide(const struct image *image);

const char *image_path(const struct image *image);
bool image_is_bzimage(const struct image *image);
/* "gzip", "xz", ...: how the payload was packed; NULL for a plain ELF. */
const char *image_compression(const struct image *image);

/* The (unpacked) ELF; after a bzImage's, its relocation data. Borrowed. */
const uint8_t *image_bytes(const struct image *image, size_t *bytes);

/* PT_LOAD segments of more than 0 bytes, sorted by gpa, not overlapping. */
const struct image_segment *image_segments(const struct image *image, size_t *n);
uint64_t image_entry(const struct image *image); /* e_entry */
/* True and *entry_gpa when the image has a XEN_ELFNOTE_PHYS32_ENTRY note. */
bool image_pvh_entry(const struct image *image, uint32_t *entry_gpa);
/* Whether this is a Linux kernel (it is a bzImage or has Linux' banner). */
bool image_is_linux(const struct image *image);
/* "6.1.0-50-cloud-amd64", from the banner or the bzImage header; NULL if unknown. */
const char *image_release(const struct image *image);
/* GNU build-id note; NULL if there is none. */
const uint8_t *image_build_id(const struct image *image, size_t *bytes);
/* The same in hexadecimal, which the caller frees (g_free). */
char *image_build_id_text(const struct image *image);
/* The setup header of a bzImage, from offset 0x1f1 (struct setup_header); NULL for a plain ELF. */
const uint8_t *image_setup_header(const struct image *image, size_t *bytes);

/* The bytes of a section by name; NULL if absent or without contents in the file. */
const uint8_t *image_section(const struct image *image, const char *name, size_t *bytes, uint64_t *address);

/* The file bytes behind guest virtual address `gva` of a PT_LOAD; *bytes: how many follow. NULL outside. */
const uint8_t *image_at(const struct image *image, uint64_t gva, size_t *bytes);

#endif
