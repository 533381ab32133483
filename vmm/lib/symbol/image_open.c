// SPDX-License-Identifier: BSD-2-Clause
/* An image from its file: unpacked, parsed, and with its release. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool parse(struct image *image, GError **error)
{
	struct span file = {NULL, 0};

	file.data = g_bytes_get_data(image->file, &file.n);
	if (file.n > IMAGE_FILE_BYTES_MAX)
		return image_fail(image, error, IMAGE_ERROR_FORMAT,
		                  "it has %zu bytes, and a kernel has at most %" PRIu64
		                  "; give a vmlinux, a bzImage (vmlinuz) or another ELF64 kernel",
		                  file.n, IMAGE_FILE_BYTES_MAX);
	if (image->kind == IMAGE_KERNEL && image_is_bzimage_file(file)) {
		if (!image_unpack_bzimage(image, error))
			return false;
		image->is_linux = true;
	} else {
		image->elf = g_bytes_ref(image->file);
	}
	image->bytes.data = g_bytes_get_data(image->elf, &image->bytes.n);
	if (!image_parse_elf(image, error) || (image->kind == IMAGE_MODULE && !image_lay_out_module(image, error)))
		return false;
	if (image->kind == IMAGE_KERNEL && !image->release) {
		image->release = release_find(image);
		image->is_linux = image->is_linux || image->release;
	}
	return true;
}

static struct image *image_make(const char *path, GBytes *file, enum image_kind kind, GError **error)
{
	struct image *image = g_new0(struct image, 1);

	image->path = g_strdup(path);
	image->kind = kind;
	image->file = g_bytes_ref(file);
	if (!parse(image, error)) {
		image_free(image);
		return NULL;
	}
	return image;
}

struct image *image_new(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_KERNEL, error);
}

struct image *image_new_program(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_PROGRAM, error);
}

struct image *image_new_module(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_MODULE, error);
}

static GBytes *map_file(const char *path, int fd, GError **error)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot open kernel %s: %s", path, g_strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO,
		            "cannot open kernel %s: %s; give the path of a vmlinux or bzImage file", path,
		            S_ISDIR(st.st_mode) ? "it is a directory" : "it is not a regular file");
		return NULL;
	}

	g_autoptr(GError) cause = NULL;
	g_autoptr(GMappedFile) mapped = g_mapped_file_new_from_fd(fd, false, &cause);

	if (!mapped) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot map kernel %s: %s", path, cause->message);
		return NULL;
	}
	return g_mapped_file_get_bytes(mapped);
}

struct image *image_open_fd(const char *path, int fd, GError **error)
{
	g_autoptr(GBytes) file = map_file(path, fd, error);

	return file ? image_new(path, file, error) : NULL;
}

struct image *image_open(const char *path, GError **error)
{
	/* O_NONBLOCK: opening a FIFO must fail below, not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot open kernel %s: %s; %s", path,
		            g_strerror(errno),
		            errno == EACCES ? "ask for read permission or copy the file"
		                            : "give the path of a vmlinux or bzImage file");
		return NULL;
	}

	struct image *image = image_open_fd(path, fd, error);

	close(fd);
	return image;
}
