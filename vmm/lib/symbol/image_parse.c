// SPDX-License-Identifier: BSD-2-Clause
/* What the bytes of an image say, once they are not packed: for vprof-parse, and for tests. */
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

bool image_parse(struct image *image, GError **error)
{
	if (image->kind == IMAGE_KERNEL && image_is_boot_file(image->bytes))
		return image_parse_boot(image, error);
	return image_parse_elf(image, error) && (image->kind != IMAGE_MODULE || image_lay_out_module(image, error));
}

void image_find_release(struct image *image)
{
	if (!image->release)
		image->release = release_find(image);
	image->is_linux = image->is_linux || image->release;
}

struct image *image_new_unpacked(enum image_kind kind, GBytes *bytes, bool was_packed, GError **error)
{
	struct image *image = g_new0(struct image, 1);

	image->kind = kind;
	image->elf = g_bytes_ref(bytes);
	image->compression = was_packed ? "packed" : NULL;
	image->sealed = image->unpacked = image->source = image->symbols = -1;
	image->bytes.data = g_bytes_get_data(bytes, &image->bytes.n);
	if (image_parse(image, error))
		return image;
	image_free(image);
	return NULL;
}

/* ---- without vprof-parse ---- */

static bool describe(struct image *image, GError **error)
{
	if (!image_parse(image, error))
		return false;
	if (image->kind == IMAGE_KERNEL)
		image_find_release(image);
	return true;
}

struct image *image_new(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_KERNEL, -1, -1, describe, error);
}

struct image *image_new_program(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_PROGRAM, -1, -1, describe, error);
}

struct image *image_new_module(const char *path, GBytes *file, GError **error)
{
	return image_make(path, file, IMAGE_MODULE, -1, -1, describe, error);
}
