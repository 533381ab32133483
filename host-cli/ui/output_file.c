// SPDX-License-Identifier: BSD-2-Clause
#include "ui/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/progress.h"

static bool write_failed(const char *path, int number, GError **error)
{
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(number), "cannot write %s: %s", path,
	            g_strerror(number));
	return false;
}

/* A device or a pipe is written directly: renaming a file over it would replace it. */
static bool is_stream(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* *temporary: what is to replace `path`; NULL: the file is `path` itself. New string. */
static FILE *file_open(const char *path, mode_t mode, char **temporary)
{
	int fd;

	*temporary = is_stream(path) ? NULL : g_strconcat(path, ".XXXXXX", NULL);
	fd = *temporary ? g_mkstemp_full(*temporary, O_WRONLY | O_CLOEXEC, (int)mode)
	                : g_open(path, O_WRONLY | O_CLOEXEC, 0);
	return fd >= 0 ? fdopen(fd, "w") : NULL;
}

int output_file_lost(FILE *file)
{
	errno = 0;
	if (fflush(file) != 0)
		return errno;
	if (!ferror(file))
		return 0;
	/* A stream does not keep the errno of its error. Writing again fails with the same errno. */
	return write(fileno(file), "\n", 1) < 0 ? errno : EIO;
}

/* Prints into `file`, which is closed. */
static bool file_fill(FILE *file, const char *path, bool (*write)(FILE *to, const void *data, GError **error),
                      const void *data, GError **error)
{
	bool written;
	int lost;

	progress_begin("writing", path, 0);
	written = write(file, data, error);
	lost = output_file_lost(file); /* a full disk is noticed here */
	progress_end();
	/* Some file systems report errors only here: NFS, quotas. */
	if (fclose(file) != 0 && lost == 0)
		lost = errno;
	return written && (lost == 0 || write_failed(path, lost, error));
}

bool output_file_write(const char *path, mode_t mode, bool (*write)(FILE *to, const void *data, GError **error),
                       const void *data, GError **error)
{
	g_autofree char *temporary = NULL;
	bool written;
	FILE *file;

	if (strcmp(path, "-") == 0) {
		progress_beside_output();
		return write(stdout, data, error);
	}
	file = file_open(path, mode, &temporary);
	if (!file)
		return write_failed(path, errno, error);
	written = file_fill(file, path, write, data, error);
	if (written && temporary && g_rename(temporary, path) != 0)
		written = write_failed(path, errno, error);
	if (!written && temporary)
		g_unlink(temporary);
	return written;
}

bool output_file_append(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                        GError **error)
{
	FILE *file;

	if (strcmp(path, "-") == 0)
		return write(stdout, data, error);
	file = fopen(path, "ae");
	return file ? file_fill(file, path, write, data, error) : write_failed(path, errno, error);
}
