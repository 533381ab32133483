// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes of a dump: of a file as it is, or of one that was written "flattened", as QEMU and makedumpfile write
 * compressed dumps to what they cannot seek in. After a header of 4096 bytes, such a file has pieces, each with its
 * offset and its size before it (64 bits, big-endian), up to the offset -1 (QEMU, dump/dump.c; makedumpfile(8), -F).
 */
#ifndef VPROF_ATTACH_DUMP_BYTES_H
#define VPROF_ATTACH_DUMP_BYTES_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMP_PIECES_MAX (1u << 24) /* of 16 KiB, as QEMU writes them: 256 GiB */

struct dump_piece {
	uint64_t offset, bytes; /* in the dump */
	uint64_t at;            /* in the file */
};

/* Blocks of a dump that were read last: reading tasks and stacks asks for few bytes at a time, many of them near each
 * other. */
struct dump_blocks;

struct dump_bytes {
	int fd;
	GArray *pieces; /* of dump_piece, by offset; they do not overlap. NULL: the file is the dump */
	struct dump_blocks *blocks;
};

/* `fd` stays the caller's. False with CORE_FILE_ERROR_FORMAT (core_file.h), when its pieces are not of this form. */
bool dump_bytes_open(struct dump_bytes *bytes, int fd, GError **error);
void dump_bytes_close(struct dump_bytes *bytes);

/* False when any of them is beyond the end. What no piece has is zero. Any thread. */
bool dump_bytes_read(const struct dump_bytes *bytes, uint64_t offset, void *to, size_t n);

#endif
