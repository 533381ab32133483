// SPDX-License-Identifier: BSD-2-Clause
/*
 * bzImage: Linux, Documentation/arch/x86/boot.rst ("The Real-Mode Kernel Header"). The payload is vmlinux with its
 * debug sections removed, followed by relocation data, compressed (arch/x86/boot/compressed/Makefile).
 */
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <inttypes.h>

#include "lib/symbol/image_priv.h"

/* Offsets in the file; the header begins at 0x1f1 and ends at 0x202 plus the byte at 0x201 (a jump's distance). */
#define SETUP_SECTORS 0x1f1u
#define SETUP_BOOT_FLAG 0x1feu
#define SETUP_END 0x201u
#define SETUP_MAGIC 0x202u
#define SETUP_VERSION 0x206u
#define SETUP_KERNEL_VERSION 0x20eu
#define SETUP_PAYLOAD_OFFSET 0x248u
#define SETUP_PAYLOAD_LENGTH 0x24cu

#define SETUP_VERSION_WITH_PAYLOAD 0x208u
#define SECTOR_BYTES 512u
/* What the build appends to every payload: the size of what was compressed (gzip ends with such a field itself). */
#define TRAILER_BYTES 4u

/* One decoder for each magic, and never libarchive's own guess: that may chain filters or start programs. */
static const struct packing {
	const char *name;
	const char *magic;
	uint8_t magic_bytes;
	bool owns_trailer;
	int filter;
} PACKINGS[] = {
	{"gzip", "\x1f\x8b", 2, true, ARCHIVE_FILTER_GZIP},
	{"bzip2", "BZh", 3, false, ARCHIVE_FILTER_BZIP2},
	{"lzma", "\x5d\0\0", 3, false, ARCHIVE_FILTER_LZMA},
	{"xz", "\xfd\x37zXZ\0", 6, false, ARCHIVE_FILTER_XZ},
	{"lz4", "\x02\x21\x4c\x18", 4, false, ARCHIVE_FILTER_LZ4}, /* legacy frame */
	{"lz4", "\x04\x22\x4d\x18", 4, false, ARCHIVE_FILTER_LZ4},
	{"zstd", "\x28\xb5\x2f\xfd", 4, false, ARCHIVE_FILTER_ZSTD},
};

/*
 * What is used of libarchive. It is loaded when there is something to unpack: with the ten libraries behind it, that
 * takes a fourth of the VMM's time from its start to the guest's first instruction.
 */
#define LIBARCHIVE "libarchive.so.13"
#define LIBARCHIVE_FUNCTIONS(X)                \
	X(archive_read_new)                    \
	X(archive_read_free)                   \
	X(archive_read_support_filter_by_code) \
	X(archive_read_support_format_raw)     \
	X(archive_read_open_memory)            \
	X(archive_read_next_header)            \
	X(archive_read_data)                   \
	X(archive_error_string)                \
	X(archive_set_error)
struct libarchive {
#define X(name) __typeof__(name) *name;
	LIBARCHIVE_FUNCTIONS(X)
#undef X
};

/* NULL with *why where it cannot be loaded; it stays. */
static const struct libarchive *libarchive_load(const char **why)
{
	static struct libarchive library;
	static GMutex mutex;

	static void *handle;
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&mutex);
	bool loaded = handle || (handle = dlopen(LIBARCHIVE, RTLD_NOW)) != NULL;

	(void)locker;
#define X(name) loaded = loaded && (*(void **)&library.name = dlsym(handle, #name)) != NULL;
	LIBARCHIVE_FUNCTIONS(X)
#undef X
	*why = loaded ? NULL : dlerror();
	return loaded ? &library : NULL;
}

bool image_is_bzimage_file(struct span file)
{
	return span_holds(file, SETUP_BOOT_FLAG, 8) && memcmp(file.data + SETUP_BOOT_FLAG, "\x55\xaa", 2) == 0 &&
	       memcmp(file.data + SETUP_MAGIC, "HdrS", 4) == 0;
}

static const struct packing *packing_of(struct span payload)
{
	for (size_t i = 0; i < G_N_ELEMENTS(PACKINGS); i++)
		if (span_holds(payload, 0, PACKINGS[i].magic_bytes) &&
		    memcmp(payload.data, PACKINGS[i].magic, PACKINGS[i].magic_bytes) == 0)
			return &PACKINGS[i];
	return NULL;
}

/* Positions `archive` on the only member of the raw stream. */
static bool open_stream(const struct libarchive *library, struct archive *archive, const struct packing *packing,
                        struct span packed)
{
	struct archive_entry *entry;

	return library->archive_read_support_filter_by_code(archive, packing->filter) == ARCHIVE_OK &&
	       library->archive_read_support_format_raw(archive) == ARCHIVE_OK &&
	       library->archive_read_open_memory(archive, packed.data, packed.n) == ARCHIVE_OK &&
	       library->archive_read_next_header(archive, &entry) == ARCHIVE_OK;
}

/* The stream's `expected` bytes and no more; NULL with *got = what came instead, or < 0 on a decoder's error. */
static GBytes *read_stream(const struct libarchive *library, struct archive *archive, size_t expected, la_ssize_t *got)
{
	g_autofree uint8_t *to = g_try_malloc(expected);
	uint8_t beyond;

	*got = -1;
	if (!to) {
		library->archive_set_error(archive, ENOMEM, "not enough memory");
		return NULL;
	}
	*got = library->archive_read_data(archive, to, expected);
	if (*got < 0 || (size_t)*got != expected)
		return NULL;

	la_ssize_t more = library->archive_read_data(archive, &beyond, 1);

	if (more != 0) {
		*got = more < 0 ? more : *got + more;
		return NULL;
	}
	return g_bytes_new_take(g_steal_pointer(&to), expected);
}

static bool unpack(struct image *image, const struct packing *packing, struct span payload, GError **error)
{
	struct span packed = {payload.data, payload.n - (packing->owns_trailer ? 0 : TRAILER_BYTES)};
	const char *why;
	const struct libarchive *library = libarchive_load(&why);
	la_ssize_t got = -1;
	uint32_t expected;

	if (!library)
		return image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		                  "its %s payload is unpacked by %s, which cannot be loaded: %s", packing->name,
		                  LIBARCHIVE, why ? why : "it is another version");

	struct archive *archive = library->archive_read_new();

	memcpy(&expected, payload.data + payload.n - TRAILER_BYTES, sizeof(expected));
	if (expected == 0 || expected > IMAGE_BYTES_MAX)
		image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		           "its %s payload says that it unpacks to %u bytes (the limit is %" PRIu64
		           "); copy or build it again",
		           packing->name, expected, IMAGE_BYTES_MAX);
	else if (!open_stream(library, archive, packing, packed) ||
	         (!(image->elf = read_stream(library, archive, expected, &got)) && got < 0))
		image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		           "its %s payload of %zu bytes cannot be unpacked: %s; copy or build it again", packing->name,
		           payload.n,
		           library->archive_error_string(archive) ? library->archive_error_string(archive)
		                                                  : "corrupt stream");
	else if (!image->elf)
		image_fail(image, error, IMAGE_ERROR_PAYLOAD,
		           "its %s payload unpacks to %s than the %u bytes it was made of; copy or build it again",
		           packing->name, (uint64_t)got < expected ? "less" : "more", expected);
	library->archive_read_free(archive);
	return image->elf != NULL;
}

/* kernel_version: an offset, less 0x200, of "RELEASE (BUILDER@HOST) #1 ..." in the setup sectors. */
static char *release_of(struct span setup)
{
	uint16_t offset = 0;
	struct span text;

	span_read(setup, SETUP_KERNEL_VERSION, &offset, sizeof(offset));
	if (offset == 0 ||
	    !span_slice(setup, SECTOR_BYTES + offset, setup.n - MIN(setup.n, SECTOR_BYTES + offset), &text))
		return NULL;
	return image_release_from(text);
}

bool image_unpack_bzimage(struct image *image, GError **error)
{
	uint32_t payload_offset = 0, payload_length = 0;
	uint16_t version = 0;
	struct span file, setup, payload;

	file.data = g_bytes_get_data(image->file, &file.n);
	span_read(file, SETUP_VERSION, &version, sizeof(version));
	if (version < SETUP_VERSION_WITH_PAYLOAD)
		return image_fail(
			image, error, IMAGE_ERROR_PAYLOAD,
			"its boot protocol %u.%02u does not say where the payload is (2.08 does, Linux 2.6.26); give the vmlinux it was made of",
			version >> 8, version & 0xff);

	/* 0 means 4, boot.rst. One more sector is the boot sector. */
	uint64_t setup_bytes = (uint64_t)((file.data[SETUP_SECTORS] ? file.data[SETUP_SECTORS] : 4) + 1) * SECTOR_BYTES;

	if (!span_slice(file, 0, setup_bytes, &setup) ||
	    !span_slice(file, SETUP_SECTORS, SETUP_MAGIC + file.data[SETUP_END] - SETUP_SECTORS,
	                &image->setup_header) ||
	    !span_read(file, SETUP_PAYLOAD_OFFSET, &payload_offset, sizeof(payload_offset)) ||
	    !span_read(file, SETUP_PAYLOAD_LENGTH, &payload_length, sizeof(payload_length)) ||
	    !span_slice(file, setup_bytes + payload_offset, payload_length, &payload))
		return image_fail(image, error, IMAGE_ERROR_TRUNCATED,
		                  "its setup (0x%" PRIx64 " bytes) and payload (0x%x bytes at 0x%" PRIx64
		                  ") are outside the file (0x%zx bytes); copy or build it again",
		                  setup_bytes, payload_length, setup_bytes + payload_offset, file.n);

	const struct packing *packing = packing_of(payload);

	if (!packing || payload.n <= packing->magic_bytes + TRAILER_BYTES)
		return image_fail(
			image, error, IMAGE_ERROR_PAYLOAD,
			"its payload of %zu bytes is not packed with gzip, bzip2, lzma, xz, lz4 or zstd; give the vmlinux it was made of",
			payload.n);
	if (!unpack(image, packing, payload, error))
		return false;
	image->compression = packing->name;
	image->release = release_of(setup);
	return true;
}
