// SPDX-License-Identifier: BSD-2-Clause
/* What is packed, by libarchive: payloads of kernels, kernel modules, the files of an initramfs. */
#include <archive.h>
#include <archive_entry.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "parse/parse.h"

#define PIECE_BYTES (256u << 10)
/* Unpacked, of all archives that are packed together: some ten times what a distribution has. */
#define ARCHIVE_BYTES_MAX (UINT64_C(4) << 30)
#define CPIO_ALIGN 4u

/* What Linux has decoders for, and libarchive, too. archive_read_support_filter_all starts programs for some others. */
static const int filters[VPROF_PARSE_PACKINGS] = {
	[VPROF_PARSE_GZIP] = ARCHIVE_FILTER_GZIP, [VPROF_PARSE_BZIP2] = ARCHIVE_FILTER_BZIP2,
	[VPROF_PARSE_LZMA] = ARCHIVE_FILTER_LZMA, [VPROF_PARSE_XZ] = ARCHIVE_FILTER_XZ,
	[VPROF_PARSE_LZ4] = ARCHIVE_FILTER_LZ4,   [VPROF_PARSE_ZSTD] = ARCHIVE_FILTER_ZSTD,
};

static bool fail(struct archive *archive, GError **error)
{
	const char *why = archive_error_string(archive);

	return parse_fail(error, "%s", why ? why : "corrupt stream");
}

static void filters_allow(struct archive *archive, uint32_t packing)
{
	for (uint32_t i = VPROF_PARSE_ANY + 1; i < VPROF_PARSE_PACKINGS; i++)
		if (packing == VPROF_PARSE_ANY || packing == i)
			archive_read_support_filter_by_code(archive, filters[i]);
}

/* Packed once at most: libarchive itself unpacks 25 layers. The last filter stands for the bytes as they are. */
static bool is_simple(struct archive *archive, GError **error)
{
	return archive_filter_count(archive) <= 2 || parse_fail(error, "it is packed more than once");
}

static bool data_read(struct archive *archive, struct parse_answer *answer, GError **error)
{
	g_autofree uint8_t *piece = g_malloc(PIECE_BYTES);
	la_ssize_t n;

	while ((n = archive_read_data(archive, piece, PIECE_BYTES)) > 0)
		if (!parse_answer_put(answer, piece, (size_t)n, error))
			return false;
	return n == 0 || fail(archive, error);
}

static bool stream_read(struct archive *archive, const struct parse_input *input,
                        const struct vprof_parse_request *request, struct parse_answer *answer, GError **error)
{
	struct archive_entry *entry;

	filters_allow(archive, request->packing);
	archive_read_support_format_raw(archive);
	if (archive_read_open_memory(archive, input->bytes, input->n) != ARCHIVE_OK)
		return fail(archive, error);
	if (!is_simple(archive, error))
		return false;
	if (archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return fail(archive, error);
	return data_read(archive, answer, error);
}

bool parse_unpack(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	struct archive *archive = archive_read_new();
	bool done = stream_read(archive, input, request, answer, error);

	archive_read_free(archive);
	return done;
}

/* ---- the archives of an initramfs ---- */

struct search {
	const struct vprof_parse_request *request;
	struct parse_answer *answer;
	/* What becomes of a file. */
	bool (*take)(const struct search *search, struct archive *archive, const char *name, uint64_t bytes,
	             GError **error);
	bool takes_part; /* what was found before a damaged end counts */
};

static bool entries_read(const struct search *search, struct archive *archive, GError **error)
{
	struct archive_entry *entry;
	int result;

	while ((result = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(entry);

		if (name && archive_entry_filetype(entry) == AE_IFREG &&
		    !search->take(search, archive, name, (uint64_t)MAX(archive_entry_size(entry), 0), error))
			return false;
	}
	return result == ARCHIVE_EOF || (search->takes_part && search->answer->bytes > 0) || fail(archive, error);
}

/* The bytes of a stream, unpacked block by block. */
struct stream {
	struct archive *archive; /* of one file, without a name */
	const uint8_t *block;    /* the last one */
	size_t n, at;            /* its bytes, and how many of them were given to a reader */
	uint64_t given;          /* to the present one */
	uint64_t unpacked;       /* all blocks */
};

/* False at the end of the stream, or where it is damaged. */
static bool block_next(struct stream *stream)
{
	const void *block;
	size_t n;
	la_int64_t offset;

	stream->at = stream->n = 0;
	if (archive_read_data_block(stream->archive, &block, &n, &offset) != ARCHIVE_OK)
		return false;
	stream->unpacked += n;
	if (stream->unpacked > ARCHIVE_BYTES_MAX) {
		archive_set_error(stream->archive, EFBIG, "it unpacks to more than %" G_GUINT64_FORMAT " bytes",
		                  ARCHIVE_BYTES_MAX);
		return false;
	}
	stream->block = block;
	stream->n = n;
	return true;
}

static la_ssize_t block_give(struct archive *reader, void *data, const void **bytes)
{
	struct stream *stream = data;

	if (stream->at == stream->n && !block_next(stream) && archive_errno(stream->archive) != 0) {
		archive_set_error(reader, archive_errno(stream->archive), "%s", archive_error_string(stream->archive));
		return ARCHIVE_FATAL;
	}
	const size_t n = stream->n - stream->at;

	*bytes = stream->block + stream->at;
	stream->at = stream->n;
	stream->given += n;
	return (la_ssize_t)n;
}

/* Takes back what a reader was given and has not used, and skips zeros. False at the end of the stream. */
static bool stream_go_on(struct stream *stream, uint64_t used)
{
	stream->at -= (size_t)MIN(stream->given - MIN(used, stream->given), stream->at);
	do
		for (; stream->at < stream->n; stream->at++)
			if (stream->block[stream->at] != 0)
				return true;
	while (block_next(stream));
	return false;
}

/* Looks through the archive that begins where the stream is; *used is how many bytes it has. */
static bool archive_search(const struct search *search, struct stream *stream, uint64_t *used, GError **error)
{
	struct archive *archive = archive_read_new();
	bool read;

	stream->given = 0;
	archive_read_support_format_cpio(archive);
	read = archive_read_open(archive, stream, NULL, block_give, NULL) == ARCHIVE_OK
	               ? entries_read(search, archive, error)
	               : fail(archive, error);
	*used = (uint64_t)MAX(archive_filter_bytes(archive, -1), 0);
	archive_read_free(archive);
	return read;
}

/*
 * Looks through the archive at `from`, or through those that are packed there together: two streams of gzip, one
 * behind the other, unpack to one. *used is how many bytes that is of what is not unpacked.
 */
static bool stream_search(const struct search *search, struct archive *archive, const uint8_t *from, size_t n,
                          size_t *used, GError **error)
{
	struct stream stream = {.archive = archive, .block = (const uint8_t *)""};
	struct archive_entry *entry;
	uint64_t unpacked;
	bool read;

	filters_allow(archive, VPROF_PARSE_ANY);
	archive_read_support_format_raw(archive);
	if (archive_read_open_memory(archive, from, n) != ARCHIVE_OK)
		return fail(archive, error);
	if (!is_simple(archive, error))
		return false;
	if (archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return fail(archive, error);
	const bool packed = archive_filter_count(archive) > 1;

	do
		read = archive_search(search, &stream, &unpacked, error);
	while (read && packed && unpacked > 0 && stream_go_on(&stream, unpacked));
	*used = packed ? (size_t)MAX(archive_filter_bytes(archive, -1), 0) : (size_t)unpacked;
	return read;
}

/*
 * Archives may follow one another, with zeros between them, and what a later one has counts (Linux,
 * Documentation/driver-api/early-userspace/buffer-format.rst).
 */
static bool archives_search(const struct search *search, const struct parse_input *input, GError **error)
{
	size_t at = 0, used = 0;

	for (;; at += used) {
		while (at < input->n && input->bytes[at] == 0)
			at++;
		if (at == input->n)
			return true;
		struct archive *archive = archive_read_new();
		bool read = stream_search(search, archive, input->bytes + at, input->n - at, &used, error);

		archive_read_free(archive);
		if (!read)
			return false;
		if (used == 0 || used > input->n - at)
			return true;
	}
}

/* ---- one file ---- */

/* "bin/sh", "./bin/sh" and "/bin/sh" are the same. */
static bool member_take(const struct search *search, struct archive *archive, const char *name, uint64_t bytes,
                        GError **error)
{
	const char *wanted = search->request->text;

	(void)bytes;
	if (strcmp(name + strspn(name, "./"), wanted + strspn(wanted, "./")) != 0)
		return true;
	return parse_answer_clear(search->answer, error) && data_read(archive, search->answer, error);
}

bool parse_member(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	const struct search search = {request, answer, member_take, true};

	if (request->text_bytes == 0)
		return parse_fail(error, "no file is named");
	return archives_search(&search, input, error);
}

/* ---- all programs ---- */

static bool padding_put(struct parse_answer *answer, GError **error)
{
	static const char zeros[CPIO_ALIGN];

	return parse_answer_put(answer, zeros, -answer->bytes % CPIO_ALIGN, error);
}

/* Of the "newc" format (Linux, buffer-format.rst). */
static bool header_put(struct parse_answer *answer, const char *name, uint32_t bytes, GError **error)
{
	const uint32_t name_bytes = (uint32_t)strlen(name) + 1;
	g_autofree char *header =
		g_strdup_printf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", 0u, AE_IFREG | 0755u, 0u,
	                        0u, 1u, 0u, bytes, 0u, 0u, 0u, 0u, name_bytes, 0u);

	return parse_answer_put(answer, header, strlen(header), error) &&
	       parse_answer_put(answer, name, name_bytes, error) && padding_put(answer, error);
}

/* What can be mapped to be executed: kernel modules cannot. */
static bool is_program(const uint8_t *piece, size_t n)
{
	return n > offsetof(Elf64_Ehdr, e_type) && memcmp(piece, ELFMAG, SELFMAG) == 0 &&
	       piece[offsetof(Elf64_Ehdr, e_type)] != ET_REL;
}

static bool program_take(const struct search *search, struct archive *archive, const char *name, uint64_t bytes,
                         GError **error)
{
	g_autofree uint8_t *piece = g_malloc(PIECE_BYTES);
	la_ssize_t n = archive_read_data(archive, piece, PIECE_BYTES);

	if (n < 0)
		return fail(archive, error);
	if (!is_program(piece, (size_t)n) || bytes > UINT32_MAX)
		return header_put(search->answer, name, 0, error);
	return header_put(search->answer, name, (uint32_t)bytes, error) &&
	       parse_answer_put(search->answer, piece, (size_t)n, error) && data_read(archive, search->answer, error) &&
	       padding_put(search->answer, error);
}

bool parse_programs(const struct parse_input *input, const struct vprof_parse_request *request,
                    struct parse_answer *answer, GError **error)
{
	const struct search search = {request, answer, program_take, false};

	return archives_search(&search, input, error) && header_put(answer, "TRAILER!!!", 0, error);
}
