// SPDX-License-Identifier: BSD-2-Clause
#include "ui/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/record/output.h"
#include "ui/progress.h"

static bool write_failed(const char *path, int number, GError **error)
{
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(number), "cannot write %s: %s", path,
	            g_strerror(number));
	return false;
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

/* Prints into the file *fd, which is closed: *fd becomes -1. */
static bool file_fill(int *fd, const char *path, bool (*write)(FILE *to, const void *data, GError **error),
                      const void *data, GError **error)
{
	FILE *file = fdopen(*fd, "w");
	bool written;
	int lost;

	*fd = -1;
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
	struct output output;
	bool written;

	if (strcmp(path, "-") == 0) {
		progress_beside_output();
		return write(stdout, data, error);
	}
	if (!output_create(&output, path, 0, mode, error))
		return false;
	written = file_fill(&output.fd, path, write, data, error) && output_publish(&output, false, error);
	output_clear(&output);
	return written;
}

bool output_file_append(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                        GError **error)
{
	int fd;

	if (strcmp(path, "-") == 0)
		return write(stdout, data, error);
	fd = output_open(path, O_APPEND, 0666, error);
	return fd >= 0 && file_fill(&fd, path, write, data, error);
}
