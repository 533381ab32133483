// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/cpio.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/initramfs/initramfs.h"

#define HEADER_BYTES 110u /* a magic number of 6 digits, 13 fields of 8 */
#define ALIGNMENT 4u      /* of contents, and of what follows them */

struct cpio {
	int fd;
	uint32_t n_entries; /* their numbers are those of inodes */
};

/* What the header of an entry says besides the sizes. */
struct entry {
	unsigned mode, major, minor;
};

static bool cpio_fail(const char *what, int why, GError **error)
{
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_WRITE, "cannot write %s to the initramfs: %s", what,
	            g_strerror(why));
	return false;
}

struct cpio *cpio_open(int fd)
{
	struct cpio *cpio = g_new0(struct cpio, 1);

	cpio->fd = fd;
	return cpio;
}

void cpio_free(struct cpio *cpio)
{
	g_free(cpio);
}

static bool bytes_write(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		const ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno != EINTR)
			return false;
		bytes += MAX(written, 0);
		n -= (size_t)MAX(written, 0);
	}
	return true;
}

/* With zeros up to the alignment; `before`: bytes of the entry ahead of these. */
static bool aligned_write(int fd, size_t before, const char *bytes, size_t n)
{
	static const char zeros[ALIGNMENT];

	return bytes_write(fd, bytes, n) && bytes_write(fd, zeros, -(before + n) % ALIGNMENT);
}

static bool entry_write(struct cpio *cpio, const char *name, const struct entry *entry, const void *content, size_t n,
                        GError **error)
{
	const size_t name_bytes = strlen(name) + 1;
	char header[HEADER_BYTES + 1];

	if (n > UINT32_MAX)
		return cpio_fail(name, EFBIG, error);
	/* inode, mode, uid, gid, links, time, bytes, device, device of a device file, bytes of the name, check */
	snprintf(header, sizeof(header), "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
	         ++cpio->n_entries, entry->mode, 0u, 0u, 1u, 0u, (unsigned)n, 0u, 0u, entry->major, entry->minor,
	         (unsigned)name_bytes, 0u);
	return (bytes_write(cpio->fd, header, HEADER_BYTES) &&
	        aligned_write(cpio->fd, HEADER_BYTES, name, name_bytes) && aligned_write(cpio->fd, 0, content, n)) ||
	       cpio_fail(name, errno, error);
}

bool cpio_end(struct cpio *cpio, GError **error)
{
	return entry_write(cpio, "TRAILER!!!", &(const struct entry){0}, "", 0, error);
}

bool cpio_add_archive(struct cpio *cpio, const char *path, const void *bytes, size_t n, GError **error)
{
	return aligned_write(cpio->fd, 0, bytes, n) || cpio_fail(path, errno, error);
}

/* The kernel unpacks relative to the root. */
static const char *name_of(const char *path)
{
	return path + 1;
}

bool cpio_add_folder(struct cpio *cpio, const char *path, GError **error)
{
	const struct entry folder = {.mode = S_IFDIR | 0755};

	return entry_write(cpio, name_of(path), &folder, "", 0, error);
}

bool cpio_add_link(struct cpio *cpio, const char *path, const char *target, GError **error)
{
	const struct entry link = {.mode = S_IFLNK | 0777};

	return entry_write(cpio, name_of(path), &link, target, strlen(target), error);
}

bool cpio_add_character_device(struct cpio *cpio, const char *path, unsigned major, unsigned minor, GError **error)
{
	const struct entry device = {.mode = S_IFCHR | 0600, .major = major, .minor = minor};

	return entry_write(cpio, name_of(path), &device, "", 0, error);
}

bool cpio_add_file(struct cpio *cpio, const char *path, unsigned permissions, GBytes *content, GError **error)
{
	const struct entry file = {.mode = S_IFREG | (permissions & 07777)};
	gsize n = 0;
	const void *bytes = content ? g_bytes_get_data(content, &n) : "";

	return entry_write(cpio, name_of(path), &file, bytes, n, error);
}
