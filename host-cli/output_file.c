// SPDX-License-Identifier: BSD-2-Clause
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"

static bool write_failed(const char *path, int number, GError **error)
{
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(number), "cannot write %s: %s", path,
	            g_strerror(number));
	return false;
}

/* A device or a pipe: a file renamed over it would take its place. */
static bool is_stream(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* *temporary: what is to replace `path`; NULL: the file is `path` itself. New string. */
static FILE *file_open(const char *path, char **temporary)
{
	int fd;

	*temporary = is_stream(path) ? NULL : g_strconcat(path, ".XXXXXX", NULL);
	fd = *temporary != NULL ? g_mkstemp_full(*temporary, O_WRONLY | O_CLOEXEC, 0666)
	                        : g_open(path, O_WRONLY | O_CLOEXEC, 0);
	return fd >= 0 ? fdopen(fd, "w") : NULL;
}

bool output_file_write(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                       GError **error)
{
	g_autofree char *temporary = NULL;
	bool written, lost;
	FILE *file;
	int number;

	if (strcmp(path, "-") == 0) {
		progress_beside_output();
		return write(stdout, data, error);
	}
	file = file_open(path, &temporary);
	if (file == NULL)
		return write_failed(path, errno, error);
	progress_begin("writing", path, 0);
	written = write(file, data, error);
	/* It is here that a full disk is found. */
	lost = fflush(file) != 0 || ferror(file) != 0;
	number = errno;
	progress_end();
	fclose(file);
	if (written && lost)
		written = write_failed(path, number, error);
	else if (written && temporary != NULL && g_rename(temporary, path) != 0)
		written = write_failed(path, errno, error);
	if (!written && temporary != NULL)
		g_unlink(temporary);
	return written;
}
