// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/user_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ".." would lead out of the folder; no directory entry has that name. */
static bool is_plain_path(const char *name)
{
	g_auto(GStrv) components = g_strsplit(name, "/", -1);

	return name[0] == '/' && !g_strv_contains((const char *const *)components, "..");
}

static GBytes *map_regular(const char *path)
{
	/* O_NONBLOCK: a FIFO must not make us wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	g_autoptr(GMappedFile) file = NULL;
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		file = g_mapped_file_new_from_fd(fd, FALSE, NULL);
	if (fd >= 0)
		close(fd);
	return file ? g_mapped_file_get_bytes(file) : NULL;
}

GBytes *user_file_symfs(const char *folder, const char *name)
{
	g_autofree char *path = g_strconcat(folder, name, NULL);

	return is_plain_path(name) ? map_regular(path) : NULL;
}

static GBytes *entry_read(struct archive *archive, struct archive_entry *entry)
{
	int64_t bytes = archive_entry_size(entry);
	uint8_t *data;

	if (archive_entry_filetype(entry) != AE_IFREG || bytes <= 0 || (uint64_t)bytes > USER_FILE_BYTES_MAX)
		return NULL;
	data = g_try_malloc((size_t)bytes);
	if (data && archive_read_data(archive, data, (size_t)bytes) == (la_ssize_t)bytes)
		return g_bytes_new_take(data, (size_t)bytes);
	g_free(data);
	return NULL;
}

/* "bin/sh", "./bin/sh" and "/bin/sh" are the same. */
static bool is_entry(struct archive_entry *entry, const char *name)
{
	const char *path = archive_entry_pathname(entry);

	if (!path)
		return false;
	path += strspn(path, "./");
	return strcmp(path, name + 1) == 0;
}

/* Looks through one archive at `from`; returns how many bytes it has, 0 when it is none. */
static size_t archive_search(const uint8_t *from, size_t n, const char *name, GBytes **found)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	size_t used = 0;

	archive_read_support_filter_all(archive);
	archive_read_support_format_all(archive);
	if (archive_read_open_memory(archive, from, n) == ARCHIVE_OK) {
		while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
			GBytes *bytes = is_entry(entry, name) ? entry_read(archive, entry) : NULL;

			if (bytes) {
				g_clear_pointer(found, g_bytes_unref);
				*found = bytes;
			}
		}
		used = (size_t)MAX(archive_filter_bytes(archive, -1), 0);
	}
	archive_read_free(archive);
	return used;
}

/*
 * Archives may follow one another, with zeros between them, and what a later one has counts (Linux,
 * Documentation/driver-api/early-userspace/buffer-format.rst).
 */
GBytes *user_file_initrd(const char *archive, const char *name)
{
	g_autoptr(GBytes) file = map_regular(archive);
	GBytes *found = NULL;
	const uint8_t *data;
	size_t n, at = 0, used;

	if (!file || name[0] != '/')
		return NULL;
	data = g_bytes_get_data(file, &n);
	for (;;) {
		while (at < n && data[at] == 0)
			at++;
		if (at == n || (used = archive_search(data + at, n - at, name, &found)) == 0 || used > n - at)
			return found;
		at += used;
	}
}
