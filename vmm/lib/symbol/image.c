// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/image.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/record/hex.h"
#include "lib/symbol/image_priv.h"

#define RELEASE_BYTES_MAX 64u /* __NEW_UTS_LEN of include/uapi/linux/utsname.h */

G_DEFINE_QUARK(vprof_image_error, image_error)

const char *image_kind_name(enum image_kind kind)
{
	static const char *const names[] = {
		[IMAGE_KERNEL] = "kernel", [IMAGE_PROGRAM] = "program", [IMAGE_MODULE] = "kernel module"};

	return names[kind];
}

bool image_fail(const struct image *image, GError **error, enum image_error code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *what = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error_literal(error, IMAGE_ERROR, (int)code, what);
	if (image->path)
		g_prefix_error(error, "cannot use %s %s: ", image_kind_name(image->kind), image->path);
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

static void file_close(int *file)
{
	if (*file >= 0)
		close(*file);
	*file = -1;
}

static void contents_clear(struct image *image)
{
	g_clear_pointer(&image->sections, g_free);
	g_clear_pointer(&image->holes, g_array_unref);
	g_clear_pointer(&image->elf, g_bytes_unref);
	g_clear_pointer(&image->file, g_bytes_unref);
	g_clear_pointer(&image->layout, g_bytes_unref);
	file_close(&image->sealed);
	file_close(&image->unpacked);
	file_close(&image->source);
	image_give_symbols(image, -1);
}

void image_free(struct image *image)
{
	if (!image)
		return;
	contents_clear(image);
	g_free(image->path);
	g_free(image->release);
	g_free(image);
}

void image_forget(struct image *image)
{
	const struct span none = {NULL, 0};

	if (image->bytes.n == 0)
		return;
	(void)image_build_id_address(image, &image->build_id_gva);
	if (image->build_id.n > 0)
		image->build_id.data = memcpy(image->build_id_copy, image->build_id.data, image->build_id.n);
	contents_clear(image);
	image->n_sections = 0;
	image->bytes = image->setup_header = image->frame_header = image->section_names = none;
	for (size_t i = 0; i < image->n_segments; i++)
		image->segments[i].file_bytes = 0;
}

/* The mapping of a sealed file begins at a page; its pages stay in the file. */
void image_rest(const struct image *image)
{
	gsize n = 0;
	const void *bytes = image->file ? g_bytes_get_data(image->file, &n) : NULL;

	if (image->sealed >= 0 && n > 0)
		madvise((void *)(uintptr_t)bytes, n, MADV_DONTNEED);
}

void image_set_slide(struct image *image, uint64_t slide)
{
	image->slide = slide;
	for (size_t i = 0; i < image->n_segments; i++)
		image->segments[i].gva = address_slid(image->segments[i].gva, slide);
	for (size_t i = 0; i < image->n_sections; i++)
		image->sections[i].sh_addr = address_slid(image->sections[i].sh_addr, slide);
}

int image_take_symbols(struct image *image)
{
	const int symbols = image->symbols;

	image->symbols = -1;
	return symbols;
}

void image_give_symbols(struct image *image, int symbols)
{
	if (image->symbols >= 0)
		close(image->symbols);
	image->symbols = symbols;
}

uint64_t image_slide(const struct image *image)
{
	return image->slide;
}

const char *image_path(const struct image *image)
{
	return image->path;
}

enum arch image_arch(const struct image *image)
{
	return image->arch;
}

bool image_check_arch(const struct image *image, enum arch arch, const char *of, GError **error)
{
	return image->arch == arch ||
	       image_fail(image, error, IMAGE_ERROR_CLASS, "it is for %s, %s is %s; give one for %s",
	                  arch_name(image->arch), of, arch_name(arch), arch_name(arch));
}

bool image_is_bzimage(const struct image *image)
{
	return image->setup_header.n > 0;
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

void image_set_of_guest(struct image *image)
{
	image->is_of_guest = true;
}

bool image_is_of_guest(const struct image *image)
{
	return image->is_of_guest;
}

bool image_is_linux(const struct image *image)
{
	return image->is_linux;
}

void image_find_start(const struct image *image, struct image_start *start)
{
	*start = (struct image_start){0};
	for (size_t i = 0; image->is_linux && i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (!(segment->flags & PF_X))
			continue;
		if (start->bytes == 0)
			*start = (struct image_start){.gpa = segment->gpa, .gva = segment->gva};
		if (segment->gva - segment->gpa == start->gva - start->gpa)
			start->bytes = segment->gpa + segment->memory_bytes - start->gpa;
	}
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

bool image_build_id_address(const struct image *image, uint64_t *gva)
{
	*gva = image->build_id_gva;
	for (size_t i = 0; *gva == 0 && image->build_id.n > 0 && i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];
		const uint64_t offset = (uint64_t)(image->build_id.data - image->bytes.data);

		if (offset - segment->file_offset < segment->file_bytes)
			*gva = segment->gva + (offset - segment->file_offset);
	}
	return *gva != 0;
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

bool image_has(const struct image *image, const uint8_t *bytes, size_t n)
{
	const uint64_t from = (uint64_t)(bytes - image->bytes.data), to = from + n;

	guint low = 0, high = image->holes ? image->holes->len : 0;

	/* The first hole that ends behind `from`. */
	while (low < high) {
		const guint middle = (low + high) / 2;

		if (g_array_index(image->holes, struct image_hole, middle).to <= from)
			low = middle + 1;
		else
			high = middle;
	}
	return !image->holes || low == image->holes->len ||
	       g_array_index(image->holes, struct image_hole, low).from >= to;
}

const uint8_t *image_frame_header(const struct image *image, size_t *bytes, uint64_t *address)
{
	*address = image->frame_header_gva;
	return span_or_null(image->frame_header, bytes);
}

bool image_code_address(const struct image *image, uint64_t offset, uint64_t *gva)
{
	for (size_t i = 0; i < image->n_segments; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (offset - segment->file_offset < segment->file_bytes && (segment->flags & PF_X) != 0) {
			*gva = segment->gva + (offset - segment->file_offset);
			return true;
		}
	}
	return false;
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
