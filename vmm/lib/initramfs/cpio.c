// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/cpio.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "lib/initramfs/initramfs.h"

struct cpio {
	struct archive *archive;
};

static bool cpio_fail(struct cpio *cpio, const char *what, GError **error)
{
	const char *why = archive_error_string(cpio->archive);

	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_WRITE, "cannot write %s to the initramfs: %s", what,
	            why ? why : "no memory");
	return false;
}

struct cpio *cpio_open(int fd, GError **error)
{
	struct cpio *cpio = g_new(struct cpio, 1);

	cpio->archive = archive_write_new();
	if (archive_write_set_format_cpio_newc(cpio->archive) == ARCHIVE_OK &&
	    archive_write_set_bytes_in_last_block(cpio->archive, 1) == ARCHIVE_OK &&
	    archive_write_open_fd(cpio->archive, fd) == ARCHIVE_OK)
		return cpio;
	cpio_fail(cpio, "the header", error);
	cpio_free(cpio);
	return NULL;
}

bool cpio_close(struct cpio *cpio, GError **error)
{
	return archive_write_close(cpio->archive) == ARCHIVE_OK || cpio_fail(cpio, "the trailer", error);
}

void cpio_free(struct cpio *cpio)
{
	if (!cpio)
		return;
	archive_write_free(cpio->archive);
	g_free(cpio);
}

/* The kernel unpacks relative to the root. */
static struct archive_entry *entry_new(const char *path, unsigned mode)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_copy_pathname(entry, path + 1);
	archive_entry_set_mode(entry, mode);
	archive_entry_set_nlink(entry, 1);
	archive_entry_set_mtime(entry, 0, 0);
	return entry;
}

static bool entry_write(struct cpio *cpio, struct archive_entry *entry, const char *path, GBytes *content,
                        GError **error)
{
	gsize n = 0;

	const void *bytes = content ? g_bytes_get_data(content, &n) : NULL;
	bool written;

	archive_entry_set_size(entry, (la_int64_t)n);
	written = archive_write_header(cpio->archive, entry) == ARCHIVE_OK &&
	          (n == 0 || archive_write_data(cpio->archive, bytes, n) == (la_ssize_t)n);
	archive_entry_free(entry);
	return written || cpio_fail(cpio, path, error);
}

bool cpio_add_folder(struct cpio *cpio, const char *path, GError **error)
{
	return entry_write(cpio, entry_new(path, S_IFDIR | 0755), path, NULL, error);
}

bool cpio_add_link(struct cpio *cpio, const char *path, const char *target, GError **error)
{
	struct archive_entry *entry = entry_new(path, S_IFLNK | 0777);

	archive_entry_copy_symlink(entry, target);
	return entry_write(cpio, entry, path, NULL, error);
}

bool cpio_add_character_device(struct cpio *cpio, const char *path, unsigned major, unsigned minor, GError **error)
{
	struct archive_entry *entry = entry_new(path, S_IFCHR | 0600);

	archive_entry_set_rdevmajor(entry, major);
	archive_entry_set_rdevminor(entry, minor);
	return entry_write(cpio, entry, path, NULL, error);
}

bool cpio_add_file(struct cpio *cpio, const char *path, unsigned permissions, GBytes *content, GError **error)
{
	return entry_write(cpio, entry_new(path, S_IFREG | (permissions & 07777)), path, content, error);
}
