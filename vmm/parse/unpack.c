// SPDX-License-Identifier: BSD-2-Clause
/* What is packed, by libarchive: payloads of kernels, kernel modules, the files of an initramfs. */
#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "parse/parse.h"

#define PIECE_BYTES (256u << 10)
/* Unpacked, of one archive: some ten times what a distribution has. Zeros pack a thousand to one. */
#define ARCHIVE_BYTES_MAX (UINT64_C(4) << 30)

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

/* "bin/sh", "./bin/sh" and "/bin/sh" are the same. */
static bool is_named(struct archive_entry *entry, const char *name)
{
	const char *path = archive_entry_pathname(entry);

	return path && archive_entry_filetype(entry) == AE_IFREG &&
	       strcmp(path + strspn(path, "./"), name + strspn(name, "./")) == 0;
}

static bool entries_read(struct archive *archive, const struct vprof_parse_request *request,
                         struct parse_answer *answer, GError **error)
{
	struct archive_entry *entry;
	int result;

	while ((result = archive_read_next_header(archive, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
		if ((uint64_t)archive_filter_bytes(archive, 0) > ARCHIVE_BYTES_MAX)
			return parse_fail(error, "it unpacks to more than %" G_GUINT64_FORMAT " bytes",
			                  ARCHIVE_BYTES_MAX);
		if (!is_named(entry, request->text))
			continue;
		if (!parse_answer_clear(answer, error) || !data_read(archive, answer, error))
			return false;
	}
	/* What was found before a damaged end counts. */
	return result == ARCHIVE_EOF || answer->bytes > 0 || fail(archive, error);
}

/* Looks through one archive; *used is how many bytes it has. */
static bool archive_search(const uint8_t *from, size_t n, const struct vprof_parse_request *request,
                           struct parse_answer *answer, size_t *used, GError **error)
{
	struct archive *archive = archive_read_new();
	bool read;

	filters_allow(archive, VPROF_PARSE_ANY);
	archive_read_support_format_cpio(archive);
	if (archive_read_open_memory(archive, from, n) == ARCHIVE_OK)
		read = is_simple(archive, error) && entries_read(archive, request, answer, error);
	else
		read = fail(archive, error);
	*used = (size_t)MAX(archive_filter_bytes(archive, -1), 0);
	archive_read_free(archive);
	return read;
}

/*
 * Archives may follow one another, with zeros between them, and what a later one has counts (Linux,
 * Documentation/driver-api/early-userspace/buffer-format.rst).
 */
bool parse_member(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error)
{
	size_t at = 0, used = 0;

	if (request->text_bytes == 0)
		return parse_fail(error, "no file is named");
	for (;; at += used) {
		while (at < input->n && input->bytes[at] == 0)
			at++;
		if (at == input->n)
			return true;
		if (!archive_search(input->bytes + at, input->n - at, request, answer, &used, error))
			return false;
		if (used == 0 || used > input->n - at)
			return true;
	}
}
