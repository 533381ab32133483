// SPDX-License-Identifier: BSD-2-Clause
/* An image from its file: unpacked, parsed, and with its release. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

/*
 * linux_banner of init/version.c: "Linux version RELEASE (BUILDER@HOST) ...". linux_proc_banner, which has "%s" there,
 * does not match.
 */
static char *release_from_banner(struct span bytes)
{
	static const char prefix[] = "Linux version ";
	const size_t prefix_bytes = sizeof(prefix) - 1;
	const uint8_t *at = bytes.data, *end = at + bytes.n;

	while ((at = memmem(at, (size_t)(end - at), prefix, prefix_bytes))) {
		at += prefix_bytes;
		g_autofree char *release = image_release_from((struct span){at, (size_t)(end - at)});
		size_t length = release ? strlen(release) : 0;

		if (release && (size_t)(end - at) >= length + 2 && memcmp(at + length, " (", 2) == 0)
			return g_steal_pointer(&release);
	}
	return NULL;
}

/* Where the banner is, if there are sections: a search of all the code takes a VMM longer than to load it. */
static char *release_find(const struct image *image)
{
	struct span rodata = {NULL, 0};
	uint64_t address;

	rodata.data = image_section(image, ".rodata", &rodata.n, &address);

	char *release = rodata.data ? release_from_banner(rodata) : NULL;

	for (size_t i = 0; i < image->n_segments && !release; i++) {
		const struct image_segment *segment = &image->segments[i];

		release = release_from_banner(
			(struct span){image->bytes.data + segment->file_offset, segment->file_bytes});
	}
	return release;
}

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

static bool parse(struct image *image, GError **error)
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
	if (!image_parse(image, error))
		return false;
	if (image->kind == IMAGE_KERNEL && !image->release) {
		image->release = release_find(image);
		image->is_linux = image->is_linux || image->release;
	}
	return true;
}

/* Of bytes, or of sealed memory and its source, which are taken over. */
static struct image *image_make(const char *path, GBytes *file, enum image_kind kind, int sealed, int source,
                                GError **error)
{
	struct image *image = g_new0(struct image, 1);

	image->path = g_strdup(path);
	image->kind = kind;
	image->file = g_bytes_ref(file);
	image->sealed = sealed;
	image->source = source;
	image->unpacked = image->symbols = -1;
	if (!parse(image, error)) {
		image_free(image);
		return NULL;
	}
	return image;
}

struct image *image_new(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_KERNEL, -1, -1, error);
}

struct image *image_new_program(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_PROGRAM, -1, -1, error);
}

struct image *image_new_module(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_MODULE, -1, -1, error);
}

struct image *image_open_fd(const char *path, enum image_kind kind, int fd, GError **error)
{
	int sealed = image_copy(fd, IMAGE_COPY_LOADED, error);
	g_autoptr(GBytes) file = sealed >= 0 ? sealed_map(sealed) : NULL;

	if (file)
		return image_make(path, file, kind, sealed, sealed_is(fd) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), error);
	if (sealed < 0) {
		g_prefix_error(error, "cannot open %s %s: ", image_kind_name(kind), path);
		return NULL;
	}
	g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot map %s %s: %s", image_kind_name(kind), path,
	            g_strerror(errno));
	close(sealed);
	return NULL;
}

struct image *image_open_partial(const char *path, int sealed, GError **error)
{
	struct image *image = image_open_fd(path, IMAGE_PROGRAM, sealed, error);

	if (image)
		image_find_holes(image, sealed);
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
