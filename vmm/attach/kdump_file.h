// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dump in makedumpfile's compressed format (`virsh dump --memory-only --format kdump-zlib`): a header, a second one
 * with QEMU's notes behind it, two bitmaps of page frames, a description of each page that the second one has, and the
 * pages, each packed by itself (makedumpfile, diskdump_mod.h; QEMU, include/sysemu/dump.h; version 6). Nothing in it
 * is trusted. vprof-parse unpacks the pages, many at a time.
 */
#ifndef VPROF_ATTACH_KDUMP_FILE_H
#define VPROF_ATTACH_KDUMP_FILE_H

#include "attach/dump_bytes.h"
#include "guest/guest.h"

#define KDUMP_BITMAP_BYTES_MAX (UINT64_C(64) << 20) /* of a guest of 2 TiB */

struct kdump_file {
	const struct dump_bytes *bytes;
	uint32_t page_bytes;
	uint32_t packing; /* enum vprof_parse_page_packing */
	uint64_t n_frames;
	uint64_t n_pages;            /* that it has */
	uint64_t descriptions;       /* where in the file they begin */
	uint64_t notes, notes_bytes; /* where they are */
	uint64_t *bitmap;            /* of page frames; [n_words] */
	uint64_t *before;            /* by word of the bitmap: how many pages come before those of it */
	size_t n_words;
	struct kdump_groups *groups;
};

bool kdump_file_is(const void *header, size_t n);
/*
 * `bytes` stays the caller's, and has to outlive it. CORE_FILE_ERROR_FORMAT (core_file.h), also when this vprof cannot
 * unpack it.
 */
struct kdump_file *kdump_file_open(const struct dump_bytes *bytes, GError **error);
void kdump_file_free(struct kdump_file *dump); /* NULL is fine */

uint64_t kdump_file_memory_bytes(const struct kdump_file *dump);
/* False when any byte of the range is not in the file, or damaged. Any thread. */
bool kdump_file_read(const struct kdump_file *dump, gpa_t from, void *to, size_t bytes);

/* ---- kdump_pages.c ---- */

#define KDUMP_GROUP_PAGES 128u

/* What describes a page in the file. */
struct kdump_page {
	uint64_t offset;
	uint32_t bytes; /* packed */
	uint32_t flags; /* 0: as it is; else how it is packed */
	uint64_t page_flags;
};

struct kdump_groups *kdump_groups_new(void);
void kdump_groups_free(struct kdump_groups *groups); /* NULL is fine */

/* Whether vprof-parse unpacks such pages; false with CORE_FILE_ERROR_FORMAT. */
bool kdump_packing_check(const struct kdump_file *dump, GError **error);
/* Part of one page. Any thread. */
bool kdump_page_read(const struct kdump_file *dump, uint64_t frame, size_t from, void *to, size_t bytes);

#endif
