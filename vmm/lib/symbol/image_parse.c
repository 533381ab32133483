// SPDX-License-Identifier: BSD-2-Clause
/* What the bytes of an image say, once they are not packed. */
#include <unistd.h>

#include "lib/symbol/image_priv.h"

bool image_parse(struct image *image, GError **error)
{
	if (image->kind == IMAGE_KERNEL && image_is_boot_file(image->bytes))
		return image_parse_boot(image, error);
	return image_parse_elf(image, error) && (image->kind != IMAGE_MODULE || image_lay_out_module(image, error));
}

struct image *image_new_unpacked(enum image_kind kind, GBytes *bytes, GError **error)
{
	struct image *image = g_new0(struct image, 1);

	image->kind = kind;
	image->elf = g_bytes_ref(bytes);
	image->sealed = image->unpacked = image->source = image->symbols = -1;
	image->bytes.data = g_bytes_get_data(bytes, &image->bytes.n);
	if (image_parse(image, error))
		return image;
	image_free(image);
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
