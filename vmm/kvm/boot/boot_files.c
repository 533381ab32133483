// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/boot_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool boot_check(const struct boot_config *config, size_t command_line_max, GError **error)
{
	if (config->vcpus < 1 || config->vcpus > GUEST_VCPUS_MAX) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_RANGE, "cannot give a guest %u vCPUs: 1 to %u are possible",
		            config->vcpus, GUEST_VCPUS_MAX);
		return false;
	}
	size_t length = strlen(config->command_line);
	if (length >= command_line_max) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_RANGE,
		            "cannot pass a kernel command line of %zu bytes: a kernel takes at most %zu", length,
		            command_line_max - 1);
		return false;
	}
	return true;
}

/* All pages of a mapped file at once, rather than by a fault for every few; advice: without it, the faults do it. */
static void read_in(const uint8_t *from, uint64_t bytes)
{
	uint8_t *page = (uint8_t *)((uintptr_t)from & -(uintptr_t)BOOT_PAGE_BYTES);

	(void)madvise(page, (size_t)(from + bytes - page), MADV_POPULATE_READ);
}

/*
 * The part of a segment that is not in the file needs no clearing: the memory is fresh, so it is zero, and claims do
 * not overlap.
 */
bool boot_segments_load(struct boot_claims *claims, const struct image *image, GError **error)
{
	size_t n;
	const struct image_segment *segment = image_segments(image, &n);
	size_t file_bytes;
	const uint8_t *file = image_bytes(image, &file_bytes);

	for (size_t i = 0; i < n; i++) {
		void *to = boot_claim(claims, "a kernel segment", segment[i].gpa, segment[i].memory_bytes, error);
		if (!to) {
			g_prefix_error(error, "cannot load %s: ", image_path(image));
			return false;
		}
		read_in(file + segment[i].file_offset, segment[i].file_bytes);
		memcpy(to, file + segment[i].file_offset, segment[i].file_bytes);
	}
	return true;
}

static bool initrd_open(const char *path, int *fd, uint64_t *bytes, GError **error)
{
	struct stat status;
	/* O_NONBLOCK: a FIFO is refused, not waited for. */
	int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (opened < 0 || fstat(opened, &status) != 0) {
		int saved = errno;

		g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO, "cannot open initramfs %s: %s", path, g_strerror(saved));
		if (opened >= 0)
			close(opened);
		return false;
	}
	if (!S_ISREG(status.st_mode) || status.st_size == 0) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO, "cannot load initramfs %s: it is %s", path,
		            S_ISREG(status.st_mode) ? "empty" : "not a regular file");
		close(opened);
		return false;
	}
	*fd = opened;
	*bytes = (uint64_t)status.st_size;
	return true;
}

static bool initrd_read(int fd, const char *path, uint8_t *to, uint64_t bytes, GError **error)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(fd, to + done, bytes - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int saved = errno;

			g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO,
			            "cannot read initramfs %s at byte %" PRIu64 " of %" PRIu64 ": %s", path, done,
			            bytes, n == 0 ? "the file became shorter" : g_strerror(saved));
			return false;
		}
		done += (uint64_t)n;
	}
	return true;
}

/* At the end of the room, page-aligned. */
static uint8_t *initrd_claim(struct boot_claims *claims, const char *path, const struct boot_range *room,
                             struct boot_range *loaded, uint64_t bytes, GError **error)
{
	if (bytes > room->bytes) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_MEMORY,
		            "cannot load initramfs %s: it has %" PRIu64 " bytes, and %" PRIu64
		            " are usable for it in the guest's %" PRIu64 " MiB of memory",
		            path, bytes, room->bytes, memory_bytes(claims->memory) >> 20);
		return NULL;
	}
	uint64_t start = (room->start + room->bytes - bytes) & ~(uint64_t)(BOOT_PAGE_BYTES - 1);
	uint8_t *to = boot_claim(claims, "the initramfs", start, bytes, error);
	if (!to) {
		g_prefix_error(error, "cannot load initramfs %s into %" PRIu64 " MiB of guest memory: ", path,
		               memory_bytes(claims->memory) >> 20);
		return NULL;
	}
	*loaded = (struct boot_range){start, bytes};
	return to;
}

bool boot_initrd_load(struct boot_claims *claims, const char *path, const struct boot_range *room,
                      struct boot_range *loaded, GError **error)
{
	int fd;
	uint64_t bytes;

	if (!path)
		return true;
	if (!initrd_open(path, &fd, &bytes, error))
		return false;
	uint8_t *to = initrd_claim(claims, path, room, loaded, bytes, error);
	bool read = to && initrd_read(fd, path, to, bytes, error);
	close(fd);
	return read;
}

bool boot_entry_is_loaded(const struct image *image, uint64_t entry)
{
	size_t n;
	const struct image_segment *segment = image_segments(image, &n);

	for (size_t i = 0; i < n; i++)
		if (entry >= segment[i].gpa && entry - segment[i].gpa < segment[i].memory_bytes)
			return true;
	return false;
}
