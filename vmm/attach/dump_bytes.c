// SPDX-License-Identifier: BSD-2-Clause
#include "attach/dump_bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "attach/core_file.h"

#define SIGNATURE "makedumpfile"
#define SIGNATURE_BYTES 16u
#define HEADER_BYTES 4096u
#define TYPE 1u
#define VERSION 1u

#define BLOCK_BYTES 16384u
#define BLOCKS 128u

struct dump_blocks {
	GMutex lock;              /* of all that follows */
	uint64_t numbers[BLOCKS]; /* of the block in a place; UINT64_MAX: none */
	uint8_t bytes[BLOCKS][BLOCK_BYTES];
};

static bool file_read(int fd, uint64_t offset, void *to, size_t n)
{
	uint8_t *out = to;

	while (n > 0) {
		if (offset > INT64_MAX - n)
			return false;
		ssize_t got = pread(fd, out, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		out += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

static gint piece_compare(const void *a, const void *b)
{
	const struct dump_piece *one = a, *other = b;

	return (one->offset > other->offset) - (one->offset < other->offset);
}

static bool pieces_order(GArray *pieces, GError **error)
{
	g_array_sort(pieces, piece_compare);
	for (guint i = 1; i < pieces->len; i++) {
		const struct dump_piece *piece = &g_array_index(pieces, struct dump_piece, i);

		if (piece->offset - piece[-1].offset < piece[-1].bytes)
			return core_file_fail(error, "it has the same piece twice; put it together with "
			                             "`makedumpfile -R`");
	}
	return true;
}

/* Each begins with its offset and size. */
static bool pieces_read(struct dump_bytes *bytes, GError **error)
{
	uint64_t at = HEADER_BYTES, head[2], end;

	for (;;) {
		if (!file_read(bytes->fd, at, head, sizeof(head)))
			return core_file_fail(error, "it is cut off in its pieces");
		at += sizeof(head);
		const struct dump_piece piece = {GUINT64_FROM_BE(head[0]), GUINT64_FROM_BE(head[1]), at};

		if (piece.offset == UINT64_MAX)
			return pieces_order(bytes->pieces, error);
		if (piece.bytes == 0 || __builtin_add_overflow(piece.offset, piece.bytes, &end) ||
		    __builtin_add_overflow(at, piece.bytes, &at) || at > INT64_MAX - sizeof(head) ||
		    bytes->pieces->len == DUMP_PIECES_MAX)
			return core_file_fail(error, "its pieces are not as QEMU writes them");
		g_array_append_val(bytes->pieces, piece);
	}
}

static struct dump_blocks *blocks_new(void)
{
	struct dump_blocks *blocks = g_new(struct dump_blocks, 1);

	g_mutex_init(&blocks->lock);
	memset(blocks->numbers, 0xff, sizeof(blocks->numbers));
	return blocks;
}

static void blocks_free(struct dump_blocks *blocks)
{
	if (blocks)
		g_mutex_clear(&blocks->lock);
	g_free(blocks);
}

bool dump_bytes_open(struct dump_bytes *bytes, int fd, GError **error)
{
	struct {
		char signature[SIGNATURE_BYTES];
		uint64_t type, version;
	} header;

	*bytes = (struct dump_bytes){.fd = fd, .blocks = blocks_new()};
	if (!file_read(fd, 0, &header, sizeof(header)) || memcmp(header.signature, SIGNATURE, sizeof(SIGNATURE)) != 0)
		return true;
	if (header.type != GUINT64_TO_BE(TYPE) || header.version != GUINT64_TO_BE(VERSION))
		return core_file_fail(error, "it is flattened in another way than QEMU's; put it together with "
		                             "`makedumpfile -R`");
	bytes->pieces = g_array_new(FALSE, FALSE, sizeof(struct dump_piece));
	return pieces_read(bytes, error);
}

void dump_bytes_close(struct dump_bytes *bytes)
{
	if (bytes->pieces)
		g_array_free(bytes->pieces, TRUE);
	g_clear_pointer(&bytes->blocks, blocks_free);
	bytes->pieces = NULL;
}

/* How many pieces begin at or before `offset`. */
static guint pieces_before(const GArray *pieces, uint64_t offset)
{
	guint low = 0, high = pieces->len;

	while (low < high) {
		const guint middle = low + (high - low) / 2;

		if (g_array_index(pieces, struct dump_piece, middle).offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The next bytes of one piece, or of the zeros before it; how many. 0: there are none. */
static size_t some_read(const struct dump_bytes *bytes, uint64_t offset, void *to, size_t n)
{
	const guint next = pieces_before(bytes->pieces, offset);
	const struct dump_piece *piece = next > 0 ? &g_array_index(bytes->pieces, struct dump_piece, next - 1) : NULL;

	if (piece && offset - piece->offset < piece->bytes) {
		const uint64_t skipped = offset - piece->offset;

		n = MIN(n, piece->bytes - skipped);
		return file_read(bytes->fd, piece->at + skipped, to, n) ? n : 0;
	}
	if (next == bytes->pieces->len)
		return 0;
	n = MIN(n, g_array_index(bytes->pieces, struct dump_piece, next).offset - offset);
	memset(to, 0, n);
	return n;
}

static bool all_read(const struct dump_bytes *bytes, uint64_t offset, void *to, size_t n)
{
	uint8_t *out = to;
	size_t some;

	if (!bytes->pieces)
		return file_read(bytes->fd, offset, to, n);
	for (; n > 0; n -= some, out += some, offset += some) {
		some = some_read(bytes, offset, out, n);
		if (some == 0)
			return false;
	}
	return true;
}

/* Of one block. False: it cannot be read as a whole, as the last one. */
static bool block_read(const struct dump_bytes *bytes, uint64_t number, size_t from, void *to, size_t n)
{
	struct dump_blocks *blocks = bytes->blocks;
	const size_t place = number % BLOCKS;
	bool known;

	g_mutex_lock(&blocks->lock);
	known = blocks->numbers[place] == number;
	if (!known) {
		known = all_read(bytes, number * BLOCK_BYTES, blocks->bytes[place], BLOCK_BYTES);
		blocks->numbers[place] = known ? number : UINT64_MAX;
	}
	if (known)
		memcpy(to, blocks->bytes[place] + from, n);
	g_mutex_unlock(&blocks->lock);
	return known;
}

bool dump_bytes_read(const struct dump_bytes *bytes, uint64_t offset, void *to, size_t n)
{
	const size_t from = offset % BLOCK_BYTES;

	if (n <= BLOCK_BYTES - from && block_read(bytes, offset / BLOCK_BYTES, from, to, n))
		return true;
	return all_read(bytes, offset, to, n);
}
