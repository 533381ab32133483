// SPDX-License-Identifier: BSD-2-Clause
#include "record/guest_file.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vprof/control.h>

#include "engine/engine_process.h"
#include "lib/parser/parser.h"

#define PIECE_BYTES (1u << 13)
#define PAGE_BYTES UINT64_C(4096)

static bool fail(GError **error, const char *what)
{
	g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL, "cannot copy a file of the guest: %s", what);
	return false;
}

static bool range_copy(int from, off_t at, off_t end, int to, off_t offset, GError **error)
{
	uint8_t piece[PIECE_BYTES];

	while (at < end) {
		ssize_t n = pread(from, piece, (size_t)MIN(end - at, PIECE_BYTES), at);

		if (n <= 0 || pwrite(to, piece, (size_t)n, offset + at) != n)
			return fail(error, n == 0 ? "it ends too early" : g_strerror(errno));
		at += n;
	}
	return true;
}

/* Copies what is there of a part to *offset of the whole, and moves that behind it. */
static bool part_copy(int from, int to, uint64_t *offset, GError **error)
{
	const off_t begin = (off_t)*offset;
	struct stat status;
	off_t at = 0, end;

	if (!sealed_is(from) || fstat(from, &status) != 0 || status.st_size > (off_t)GUEST_FILE_BYTES_MAX)
		return fail(error, "the engine's memory with it is not as it should be");
	*offset += ((uint64_t)status.st_size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	while (at < status.st_size && (at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0 || !range_copy(from, at, end, to, begin, error))
			return false;
		at = end;
	}
	return true;
}

/* Adds the part at *offset; *bytes is the size of the file, and *pages what there is of it so far. */
static bool part_read(struct client *client, const json_t *which, int to, uint64_t *offset, uint64_t *bytes,
                      uint64_t *pages, GError **error)
{
	json_t *arguments = json_copy((json_t *)which);
	g_autofree int *fds = NULL;
	size_t n_fds = 0;

	json_object_set_new(arguments, "offset", json_integer((json_int_t)*offset));
	json_t *answer = client_execute(client, "file-read", arguments, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);
	bool done = answer != NULL;

	if (answer) {
		*bytes = (uint64_t)json_integer_value(json_object_get(answer, "bytes"));
		*pages += (uint64_t)json_integer_value(json_object_get(answer, "pages"));
		done = n_fds == 1 ? part_copy(fds[0], to, offset, error) : fail(error, "the engine has sent no memory");
	}
	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return done;
}

/* which: the arguments that name it; it is taken over. */
static int file_read(struct client *client, json_t *which, GError **error)
{
	uint64_t bytes = 0, pages = 0, offset = 0, before;
	int to = sealed_new("vprof-guest-file");
	bool done = to >= 0 || fail(error, g_strerror(errno));

	do {
		before = offset;
		done = done && part_read(client, which, to, &offset, &bytes, &pages, error);
		if (done && bytes > GUEST_FILE_BYTES_MAX)
			done = fail(error, "it is too large");
	} while (done && offset < bytes && offset > before); /* it may have been cut off meanwhile */
	json_decref(which);
	if (done && pages != 0 && ftruncate(to, (off_t)bytes) == 0 && sealed_finish(to))
		return to;
	if (to >= 0)
		close(to);
	return -1;
}

int guest_file_read(struct client *client, const char *build_id, GError **error)
{
	return file_read(client, json_pack("{s:s}", "build-id", build_id), error);
}

int guest_jit_file_read(struct client *client, const char *which, uint32_t pid, GError **error)
{
	return file_read(client, json_pack("{s:I}", which, (json_int_t)pid), error);
}
