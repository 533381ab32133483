// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MAX 40u /* as Linux (MAXSYMLINKS) */
#define OPEN_FLAGS (O_WRONLY | O_CLOEXEC | O_NOCTTY)

static bool G_GNUC_PRINTF(4, 5) fail(GError **error, const char *path, int number, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *why = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(number), "cannot write %s: %s", path, why);
	return false;
}

static bool fail_errno(GError **error, const char *path, int number)
{
	return fail(error, path, number, "%s", g_strerror(number));
}

struct place {
	char *path;
	bool exists;
	bool is_descriptor; /* the path is a link of procfs to an open file */
	struct stat status; /* if it exists */
};

/* The links of /proc/PID/fd lead to open files, not to paths. */
static bool link_is_descriptor(const char *path)
{
	const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs system;
	const bool is = fd >= 0 && fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;

	if (fd >= 0)
		close(fd);
	return is;
}

/* `at` is a link, which `path` led to. Returns its target; NULL: it may not be followed. */
static char *link_follow(const char *path, const char *at, const struct stat *link, GError **error)
{
	g_autofree char *text = g_file_read_link(at, NULL), *folder = g_path_get_dirname(at);

	if (!text) {
		fail_errno(error, path, errno);
		return NULL;
	}
	/* Such as /dev/stdout, which is root's. */
	const bool is_of_system = link->st_uid == 0 && g_str_has_prefix(text, "/proc/self/fd/");

	if (link->st_uid != geteuid() && !is_of_system) {
		fail(error, path, EPERM, "%s is a symbolic link of user %u; name its target, or a file that you own",
		     at, link->st_uid);
		return NULL;
	}
	return g_path_is_absolute(text) ? g_steal_pointer(&text) : g_build_filename(folder, text, NULL);
}

/* Follows links at the end of the path. */
static bool place_find(const char *path, struct place *place, GError **error)
{
	g_autofree char *at = g_strdup(path);

	*place = (struct place){0};
	for (unsigned links = 0; links <= LINKS_MAX; links++) {
		place->exists = lstat(at, &place->status) == 0;
		if (!place->exists && errno != ENOENT)
			return fail_errno(error, path, errno);
		if (!place->exists && links > 0)
			return fail(error, path, ENOENT,
			            "it is a symbolic link to %s, which does not exist; create that file or name it",
			            at);
		place->is_descriptor = place->exists && S_ISLNK(place->status.st_mode) && link_is_descriptor(at);
		if (place->is_descriptor && stat(at, &place->status) != 0)
			return fail_errno(error, path, errno);
		if (place->exists && S_ISDIR(place->status.st_mode))
			return fail_errno(error, path, EISDIR);
		if (!place->exists || !S_ISLNK(place->status.st_mode)) {
			place->path = g_steal_pointer(&at);
			return true;
		}
		char *next = link_follow(path, at, &place->status, error);

		if (!next)
			return false;
		g_free(at);
		at = next;
	}
	return fail_errno(error, path, ELOOP);
}

/* Checks again: another file may have come to the path. */
static int place_open(const char *path, const struct place *place, int flags, GError **error)
{
	const int fd = open(place->path, OPEN_FLAGS | flags | (place->is_descriptor ? 0 : O_NOFOLLOW));
	struct stat status;

	if (fd < 0) {
		fail_errno(error, path, errno);
		return -1;
	}
	if (fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == (place->status.st_mode & S_IFMT))
		return fd;
	fail(error, path, EAGAIN, "%s has just become another kind of file", place->path);
	close(fd);
	return -1;
}

/* Below a name of its own: that of the file may already be as long as names can be. */
static bool temporary_create(struct output *output, const char *path, mode_t mode, GError **error)
{
	g_autofree char *folder = g_path_get_dirname(output->place);

	output->temporary = g_build_filename(folder, ".vprof-XXXXXX", NULL);
	/* It adds O_CREAT and O_EXCL. */
	output->fd = g_mkstemp_full(output->temporary, OPEN_FLAGS | O_NOFOLLOW, (int)mode);
	if (output->fd >= 0)
		return true;
	if (errno == EACCES || errno == EPERM || errno == EROFS)
		fail(error, path, errno, "%s: no new file in the folder %s; name a file in another one",
		     g_strerror(errno), folder);
	else
		fail_errno(error, path, errno);
	g_clear_pointer(&output->temporary, g_free);
	return false;
}

bool output_create(struct output *output, const char *path, int flags, mode_t mode, GError **error)
{
	struct place place;
	bool created;

	*output = (struct output){.fd = -1};
	if (!place_find(path, &place, error))
		return false;
	output->place = place.path;
	if (!place.exists || (S_ISREG(place.status.st_mode) && !place.is_descriptor)) {
		created = temporary_create(output, path, mode, error);
	} else {
		output->fd = place_open(path, &place, flags, error);
		created = output->fd >= 0;
	}
	if (created && S_ISREG(place.status.st_mode) && place.is_descriptor && ftruncate(output->fd, 0) != 0)
		created = fail_errno(error, path, errno);
	if (!created)
		output_clear(output);
	return created;
}

bool output_publish(struct output *output, bool keep, GError **error)
{
	g_autofree char *old = g_strconcat(output->place, ".old", NULL);
	struct stat status;

	if (!output->temporary)
		return true;
	if (keep && lstat(output->place, &status) == 0 && S_ISREG(status.st_mode) && rename(output->place, old) != 0)
		return fail(error, output->place, errno, "cannot rename it to %s: %s", old, g_strerror(errno));
	if (rename(output->temporary, output->place) != 0)
		return fail_errno(error, output->place, errno);
	g_clear_pointer(&output->temporary, g_free);
	return true;
}

void output_clear(struct output *output)
{
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
	if (output->temporary)
		g_unlink(output->temporary);
	g_clear_pointer(&output->temporary, g_free);
	g_clear_pointer(&output->place, g_free);
}

int output_open(const char *path, int flags, mode_t mode, GError **error)
{
	struct place place;
	int fd;

	if (!place_find(path, &place, error))
		return -1;
	if (place.exists) {
		fd = place_open(path, &place, flags, error);
	} else {
		fd = open(place.path, OPEN_FLAGS | O_CREAT | O_NOFOLLOW | flags, mode);
		if (fd < 0)
			fail_errno(error, path, errno);
	}
	g_free(place.path);
	return fd;
}
