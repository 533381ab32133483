// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_blk.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR_BYTES 512u

G_DEFINE_QUARK(vprof_disk_error, disk_error)

static bool set_error(GError **error, enum disk_error code, const char *path, const char *why)
{
	g_set_error(error, DISK_ERROR, (gint)code, "cannot use disk image %s: %s", path, why);
	return false;
}

static bool lock_image(const struct disk *disk, GError **error)
{
	struct flock lock = {.l_type = disk->read_only ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};

	/* A file system without locks refuses with another error; the image works there all the same. */
	if (fcntl(disk->fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
		return true;
	return set_error(error, DISK_ERROR_IN_USE, disk->path,
	                 "another guest uses it; give each its own copy, or all of them \",ro\"");
}

static bool measure(struct disk *disk, GError **error)
{
	struct stat status;

	if (fstat(disk->fd, &status) < 0 || (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)))
		return set_error(error, DISK_ERROR_OPEN, disk->path, "it is neither a file nor a block device");
	off_t end = lseek(disk->fd, 0, SEEK_END); /* also of a block device */
	if (end < (off_t)SECTOR_BYTES)
		return set_error(error, DISK_ERROR_SIZE, disk->path, "it has less than one sector of 512 bytes");
	disk->sectors = (uint64_t)end / SECTOR_BYTES;
	return true;
}

bool disk_open(struct disk *disk, const char *path, bool read_only, GError **error)
{
	*disk = (struct disk){.path = g_strdup(path), .read_only = read_only};
	/* O_NONBLOCK: a FIFO is refused, not waited for. */
	disk->fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
	if (disk->fd < 0) {
		bool denied = !read_only && (errno == EACCES || errno == EROFS || errno == EPERM);
		g_autofree char *why = g_strdup_printf("%s%s", g_strerror(errno),
		                                       denied ? "; \",ro\" behind it lets the guest only read" : "");

		return set_error(error, DISK_ERROR_OPEN, path, why);
	}
	return measure(disk, error) && lock_image(disk, error);
}

void disk_close(struct disk *disk)
{
	if (disk->fd >= 0)
		close(disk->fd);
	g_free(disk->path);
}

/* [from, from + bytes) of the buffers, in `parts`; returns how many parts. */
static unsigned slice(const struct iovec *buffers, unsigned count, uint64_t from, uint64_t bytes, struct iovec *parts)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count && bytes > 0; i++) {
		if (from >= buffers[i].iov_len) {
			from -= buffers[i].iov_len;
			continue;
		}
		size_t piece = (size_t)MIN(bytes, buffers[i].iov_len - from);
		parts[n++] = (struct iovec){(uint8_t *)buffers[i].iov_base + from, piece};
		bytes -= piece;
		from = 0;
	}
	return n;
}

/* Data of a request: `bytes` of the buffers behind `from`, at a sector. 0, or an errno. */
static int transfer(const struct disk *disk, const struct iovec *buffers, unsigned count, uint64_t from, uint64_t bytes,
                    uint64_t sector, bool write)
{
	struct iovec parts[VIRTIO_QUEUE_SIZE_MAX];

	for (uint64_t done = 0; done < bytes;) {
		int n = (int)slice(buffers, count, from + done, bytes - done, parts);
		off_t at = (off_t)(sector * SECTOR_BYTES + done);
		ssize_t moved = write ? pwritev(disk->fd, parts, n, at) : preadv(disk->fd, parts, n, at);

		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return errno;
		if (moved == 0) /* the image has become shorter */
			return EIO;
		done += (uint64_t)moved;
	}
	return 0;
}

static bool within(const struct disk *disk, uint64_t sector, uint64_t bytes)
{
	return bytes % SECTOR_BYTES == 0 && sector <= disk->sectors && bytes / SECTOR_BYTES <= disk->sectors - sector;
}

/* The bytes that a chain has for data, without its header and its status. */
struct payload {
	const struct iovec *readable, *writable;
	unsigned n_readable, n_writable;
	uint64_t to_disk, from_disk;
};

static uint8_t outcome(int failed, int *failure)
{
	*failure = failed;
	return failed ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK;
}

static uint8_t write_sectors(const struct disk *disk, const struct payload *payload, uint64_t sector, bool flush,
                             int *failure)
{
	if (disk->read_only || !within(disk, sector, payload->to_disk))
		return VIRTIO_BLK_S_IOERR;
	int failed = transfer(disk, payload->readable, payload->n_readable, sizeof(struct virtio_blk_outhdr),
	                      payload->to_disk, sector, true);
	if (!failed && flush && fdatasync(disk->fd) < 0)
		failed = errno;
	return outcome(failed, failure);
}

static uint8_t read_sectors(const struct disk *disk, const struct payload *payload, uint64_t sector, uint32_t *written,
                            int *failure)
{
	if (!within(disk, sector, payload->from_disk))
		return VIRTIO_BLK_S_IOERR;
	int failed = transfer(disk, payload->writable, payload->n_writable, 0, payload->from_disk, sector, false);
	*written = failed ? 0 : (uint32_t)payload->from_disk;
	return outcome(failed, failure);
}

static uint8_t read_id(const struct payload *payload, const char *id, uint32_t *written)
{
	char text[VIRTIO_BLK_ID_BYTES] = {0};

	memcpy(text, id, strnlen(id, sizeof(text)));
	size_t bytes = (size_t)MIN(payload->from_disk, sizeof(text));
	*written = (uint32_t)virtio_buffers_write(payload->writable, payload->n_writable, 0, text, bytes);
	return VIRTIO_BLK_S_OK;
}

uint32_t disk_serve(const struct disk *disk, const char *id, const struct virtio_chain *chain, bool flush, int *failure)
{
	struct virtio_blk_outhdr header;
	struct payload payload = {.readable = chain->buffers,
	                          .n_readable = chain->n_readable,
	                          .writable = virtio_chain_writable(chain),
	                          .n_writable = chain->n_writable};
	uint64_t out = virtio_buffers_bytes(payload.readable, payload.n_readable);
	uint64_t in = virtio_buffers_bytes(payload.writable, payload.n_writable);
	uint32_t written = 0;
	uint8_t status = VIRTIO_BLK_S_UNSUPP;

	*failure = 0;
	/* The status is the last byte; `written` is 32 bits wide. */
	if (out < sizeof(header) || in < sizeof(status) || in > UINT32_MAX)
		return 0;
	payload.to_disk = out - sizeof(header);
	payload.from_disk = in - sizeof(status);
	virtio_buffers_read(payload.readable, payload.n_readable, 0, &header, sizeof(header));
	switch (header.type) {
	case VIRTIO_BLK_T_IN:
		status = read_sectors(disk, &payload, header.sector, &written, failure);
		break;
	case VIRTIO_BLK_T_OUT:
		status = write_sectors(disk, &payload, header.sector, flush, failure);
		break;
	case VIRTIO_BLK_T_FLUSH:
		status = outcome(fdatasync(disk->fd) < 0 ? errno : 0, failure);
		break;
	case VIRTIO_BLK_T_GET_ID:
		status = read_id(&payload, id, &written);
		break;
	default:
		break;
	}
	virtio_buffers_write(payload.writable, payload.n_writable, payload.from_disk, &status, sizeof(status));
	return written + (uint32_t)sizeof(status);
}
