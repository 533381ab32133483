// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/record/hex.h"
#include "lib/symbol/image_priv.h"

#define RELEASE_BYTES_MAX 64u /* __NEW_UTS_LEN of include/uapi/linux/utsname.h */

G_DEFINE_QUARK(vprof_image_error, image_error)

bool image_fail(const struct image *image, GError **error, enum image_error code, const char *format, ...)
{
	static const char *const kinds[] = {
		[IMAGE_KERNEL] = "kernel", [IMAGE_PROGRAM] = "program", [IMAGE_MODULE] = "kernel module"};
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *what = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error(error, IMAGE_ERROR, (int)code, "cannot use %s %s: %s", kinds[image->kind], image->path, what);
	return false;
}

char *image_release_from(struct span text)
{
	size_t n = 0;

	while (n < text.n && n <= RELEASE_BYTES_MAX && g_ascii_isgraph((char)text.data[n]))
		n++;
	if (n == 0 || n > RELEASE_BYTES_MAX || !g_ascii_isdigit((char)text.data[0]))
		return NULL;
	return g_strndup((const char *)text.data, n);
}

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
	if (!image_parse_elf(image, error))
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

void image_free(struct image *image)
{
	if (!image)
		return;
	g_free(image->path);
	g_free(image->release);
	g_free(image->sections);
	g_clear_pointer(&image->elf, g_bytes_unref);
	g_clear_pointer(&image->file, g_bytes_unref);
	g_free(image);
}

void image_set_slide(struct image *image, uint64_t slide)
{
	image->slide = slide;
	for (size_t i = 0; i < image->n_segments; i++)
		image->segments[i].gva = image_slid(image, image->segments[i].gva);
	for (size_t i = 0; i < image->n_sections; i++)
		image->sections[i].sh_addr = image_slid(image, image->sections[i].sh_addr);
}

uint64_t image_slide(const struct image *image)
{
	return image->slide;
}

const char *image_path(const struct image *image)
{
	return image->path;
}

bool image_is_bzimage(const struct image *image)
{
	return image->compression != NULL;
}

const char *image_compression(const struct image *image)
{
	return image->compression;
}

const uint8_t *image_bytes(const struct image *image, size_t *bytes)
{
	*bytes = image->bytes.n;
	return image->bytes.data;
}

const struct image_segment *image_segments(const struct image *image, size_t *n)
{
	*n = image->n_segments;
	return image->segments;
}

uint64_t image_entry(const struct image *image)
{
	return image->entry;
}

bool image_pvh_entry(const struct image *image, uint32_t *entry_gpa)
{
	if (image->has_pvh_entry)
		*entry_gpa = image->pvh_entry;
	return image->has_pvh_entry;
}

bool image_is_linux(const struct image *image)
{
	return image->is_linux;
}

const char *image_release(const struct image *image)
{
	return image->release;
}

static const uint8_t *span_or_null(struct span span, size_t *bytes)
{
	*bytes = span.n;
	return span.n > 0 ? span.data : NULL;
}

const uint8_t *image_build_id(const struct image *image, size_t *bytes)
{
	return span_or_null(image->build_id, bytes);
}

char *image_build_id_text(const struct image *image)
{
	return image->build_id.n > 0 ? hex_encode(image->build_id.data, image->build_id.n) : NULL;
}

const uint8_t *image_setup_header(const struct image *image, size_t *bytes)
{
	return span_or_null(image->setup_header, bytes);
}

struct span image_section_span(const struct image *image, size_t index)
{
	const Elf64_Shdr *section = &image->sections[index];

	if (section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL)
		return (struct span){NULL, 0};
	return (struct span){image->bytes.data + section->sh_offset, (size_t)section->sh_size};
}

const uint8_t *image_section(const struct image *image, const char *name, size_t *bytes, uint64_t *address)
{
	for (size_t i = 0; i < image->n_sections; i++) {
		const char *have = span_string(image->section_names, image->sections[i].sh_name);
		struct span contents = image_section_span(image, i);

		if (contents.n > 0 && g_strcmp0(have, name) == 0) {
			*address = image->sections[i].sh_addr;
			return span_or_null(contents, bytes);
		}
	}
	return NULL;
}

const uint8_t *image_at(const struct image *image, uint64_t gva, size_t *bytes)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (gva >= segment->gva && gva - segment->gva < segment->file_bytes) {
			uint64_t offset = gva - segment->gva;

			*bytes = (size_t)(segment->file_bytes - offset);
			return image->bytes.data + segment->file_offset + offset;
		}
	}
	return NULL;
}
