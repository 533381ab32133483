// SPDX-License-Identifier: BSD-2-Clause
/* An image from its file: copied, unpacked, and described. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

/* Sets image->elf: to the file, or to what is packed in it. */
static bool unpack(struct image *image, struct span file, GError **error)
{
	if (image->kind == IMAGE_KERNEL && image_is_bzimage_file(file)) {
		image->is_linux = true;
		return image_unpack_bzimage(image, error);
	}
	if (image->kind == IMAGE_KERNEL && image_is_zboot_file(file))
		return image_unpack_zboot(image, error);
	if (image->kind == IMAGE_KERNEL && image_is_gzip_file(file))
		return image_unpack_payload(image, file, error);
	image->elf = g_bytes_ref(image->file);
	return true;
}

static bool read_file(struct image *image, image_describe_fn describe, GError **error)
{
	struct span file = {NULL, 0};

	file.data = g_bytes_get_data(image->file, &file.n);
	if (file.n > IMAGE_FILE_BYTES_MAX)
		return image_fail(image, error, IMAGE_ERROR_FORMAT,
		                  "it has %zu bytes, and a kernel has at most %" PRIu64
		                  "; give a vmlinux, a bzImage (vmlinuz) or another ELF64 kernel",
		                  file.n, IMAGE_FILE_BYTES_MAX);
	if (!unpack(image, file, error))
		return false;
	image->bytes.data = g_bytes_get_data(image->elf, &image->bytes.n);
	return describe(image, error);
}

struct image *image_make(const char *path, GBytes *file, enum image_kind kind, int sealed, int source,
                         image_describe_fn describe, GError **error)
{
	struct image *image = g_new0(struct image, 1);

	image->path = g_strdup(path);
	image->kind = kind;
	image->file = g_bytes_ref(file);
	image->sealed = sealed;
	image->source = source;
	image->unpacked = image->symbols = -1;
	if (!read_file(image, describe, error)) {
		image_free(image);
		return NULL;
	}
	return image;
}

struct image *image_open_fd(const char *path, enum image_kind kind, int fd, GError **error)
{
	int sealed = image_copy(fd, IMAGE_COPY_LOADED, error);
	g_autoptr(GBytes) file = sealed >= 0 ? sealed_map(sealed) : NULL;

	if (file)
		return image_make(path, file, kind, sealed, sealed_is(fd) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0),
		                  image_ask_layout, error);
	if (sealed < 0) {
		g_prefix_error(error, "cannot open %s %s: ", image_kind_name(kind), path);
		return NULL;
	}
	g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot map %s %s: %s", image_kind_name(kind), path,
	            g_strerror(errno));
	close(sealed);
	return NULL;
}

/* From what lseek(2) says; none where it does not know holes. */
void image_find_holes(struct image *image, int fd)
{
	const off_t bytes = (off_t)image->bytes.n;
	GArray *holes = g_array_new(FALSE, FALSE, sizeof(struct image_hole));
	off_t at = 0;

	while (at < bytes && (at = lseek(fd, at, SEEK_HOLE)) >= 0 && at < bytes) {
		const off_t end = lseek(fd, at, SEEK_DATA);
		const struct image_hole hole = {(uint64_t)at, (uint64_t)(end < 0 ? bytes : end)};

		g_array_append_val(holes, hole);
		at = (off_t)hole.to;
	}
	image->holes = holes;
}

struct image *image_open_partial(const char *path, int sealed, GError **error)
{
	struct image *image = image_open_fd(path, IMAGE_PROGRAM, sealed, error);

	if (!image)
		return NULL;
	image_find_holes(image, sealed);
	image_set_of_guest(image);
	return image;
}

/* How many bytes are in `fd`, which is closed if that fails, or the reason why there is none. */
static int file_take(int fd, uint64_t *bytes, GError **error)
{
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0) {
		*bytes = (uint64_t)status.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	if (error && *error)
		g_prefix_error(error, "cannot be read: ");
	else
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot be copied: %s", g_strerror(errno));
	return -1;
}

static int memory_open(const struct image *image)
{
	const int sealed = image->unpacked >= 0 ? image->unpacked : image->sealed;

	return sealed >= 0 ? fcntl(sealed, F_DUPFD_CLOEXEC, 0)
	                   : sealed_copy("vprof-elf", image->bytes.data, image->bytes.n);
}

int image_memory(const struct image *image, uint64_t *bytes, GError **error)
{
	return file_take(memory_open(image), bytes, error);
}

int image_debug_file(const struct image *image, uint64_t *bytes, GError **error)
{
	const bool is_elsewhere = image->unpacked < 0 && image->source >= 0;

	return file_take(is_elsewhere ? image_copy(image->source, IMAGE_COPY_DEBUG, error) : memory_open(image), bytes,
	                 error);
}

int image_open_kernel(const char *path, GError **error)
{
	/* O_NONBLOCK: opening a FIFO must fail when it is read, not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot open kernel %s: %s; %s", path,
		            g_strerror(errno),
		            errno == EACCES ? "ask for read permission or copy the file"
		                            : "give the path of a vmlinux or bzImage file");
	return fd;
}

struct image *image_open(const char *path, GError **error)
{
	int fd = image_open_kernel(path, error);

	if (fd < 0)
		return NULL;
	(void)parser_start(NULL); /* beside the copy */
	struct image *image = image_open_fd(path, IMAGE_KERNEL, fd, error);

	close(fd);
	return image;
}
