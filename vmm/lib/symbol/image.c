// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/image.h"

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
