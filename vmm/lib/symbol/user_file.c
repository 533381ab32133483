// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

#define PROGRAMS_BYTES_MAX (UINT64_C(256) << 20) /* unpacked, and kept */

/* ---- files ---- */

/* ".." would lead out of the folder; no directory entry has that name. */
static bool is_plain_path(const char *name)
{
	g_auto(GStrv) components = g_strsplit(name, "/", -1);

	return name[0] == '/' && !g_strv_contains((const char *const *)components, "..");
}

static int open_regular(const char *path, struct stat *status)
{
	/* O_NONBLOCK: a FIFO must not make us wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || (fstat(fd, status) == 0 && S_ISREG(status->st_mode)))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

int user_file_open(const char *path, uint64_t *bytes, GError **error)
{
	struct stat status;
	int fd = open_regular(path, &status), sealed = -1;

	if (fd < 0) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot be opened: %s", g_strerror(errno));
		return -1;
	}
	sealed = image_copy(fd, IMAGE_COPY_ALL, error);
	if (sealed < 0)
		g_prefix_error(error, "cannot be read: ");
	close(fd);
	if (sealed >= 0 && fstat(sealed, &status) == 0)
		*bytes = (uint64_t)status.st_size;
	return sealed;
}

int user_file_symfs(const char *folder, const char *name)
{
	g_autofree char *path = g_strconcat(folder, name, NULL);
	struct stat status;

	return is_plain_path(name) ? open_regular(path, &status) : -1;
}

/* ---- archives ---- */

struct user_archive {
	char *path;
	int sealed; /* -1: not read yet */
	uint64_t bytes;
	bool failed;
};

struct user_archive *user_archive_new(const char *path)
{
	struct user_archive *archive = g_new0(struct user_archive, 1);

	archive->path = g_strdup(path);
	archive->sealed = -1;
	return archive;
}

void user_archive_free(struct user_archive *archive)
{
	if (!archive)
		return;
	if (archive->sealed >= 0)
		close(archive->sealed);
	g_free(archive->path);
	g_free(archive);
}

const char *user_archive_path(const struct user_archive *archive)
{
	return archive->path;
}

/* A member of no bytes is as good as none. */
static int answer_or_none(int answer)
{
	struct stat status;

	if (answer < 0 || (fstat(answer, &status) == 0 && status.st_size > 0))
		return answer;
	close(answer);
	return -1;
}

/* Sealed memory with the archive, or with what counts of it, which is then unpacked once and not for each member. */
static int archive_open(struct user_archive *archive, GError **why)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_PROGRAMS, .answer_bytes = PROGRAMS_BYTES_MAX};
	int whole = user_file_open(archive->path, &request.bytes, why);
	int programs = whole >= 0 ? parser_ask(&request, whole, NULL) : -1;
	struct stat status;

	archive->bytes = request.bytes;
	if (programs < 0 || fstat(programs, &status) != 0)
		return whole;
	archive->bytes = (uint64_t)status.st_size;
	close(whole);
	return programs;
}

int user_archive_find(struct user_archive *archive, const char *name, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_MEMBER, .answer_bytes = USER_FILE_BYTES_MAX};
	g_autoptr(GError) why = NULL;
	int answer = -1;

	if (archive->failed || name[0] != '/' || !parser_add_name(&request, name))
		return -1;
	if (archive->sealed < 0)
		archive->sealed = archive_open(archive, &why);
	request.bytes = archive->bytes;
	if (archive->sealed >= 0)
		answer = answer_or_none(parser_ask(&request, archive->sealed, &why));
	archive->failed = archive->sealed < 0 || why;
	/* One that is gone by now is like none. */
	if (why && archive->sealed >= 0)
		g_set_error(error, PARSER_ERROR, PARSER_ERROR_REFUSED,
		            "initial file system %s %s; programs are not looked for in it", archive->path,
		            why->message);
	return answer;
}
