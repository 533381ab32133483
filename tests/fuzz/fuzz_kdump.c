// SPDX-License-Identifier: BSD-2-Clause
/*
 * A compressed dump: what its headers, bitmaps and descriptions say leads nowhere but into the file. A dump of ten
 * pages is made here, in which the input changes bytes: runs of an offset (two bytes), a length (one) and the bytes.
 * Pages come back as vprof-parse would unpack them, without it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/kdump_file.h"
#include "fuzz_target.h"
#include "lib/parser/parser.h"

#define BLOCK 4096u
#define SUB_HEADER_AT BLOCK
#define BITMAPS_AT (2 * BLOCK)
#define DESCRIPTIONS_AT (4 * BLOCK)
#define PAGES_AT (5 * BLOCK)
#define PAGES 10u
#define PACKED_BYTES 16u

static uint8_t file[7 * BLOCK];

static void number_put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(file + at, &value, bytes);
}

/* As in struct header and struct sub_header of kdump_file.c. */
static void dump_make(void)
{
	memset(file, 0, sizeof(file));
	memcpy(file, "KDUMP   ", 8);
	number_put(8, 6, 4);
	memcpy(file + 12 + 4 * 65, "x86_64", 6);
	number_put(424, 1, 4); /* zlib */
	number_put(428, BLOCK, 4);
	number_put(432, 1, 4);
	number_put(436, 2, 4);
	number_put(SUB_HEADER_AT + 96, 2 * PAGES, 8);
	/* Every second page frame. */
	number_put(BITMAPS_AT + BLOCK, UINT64_C(0x55555), 8);
	for (unsigned i = 0; i < PAGES; i++) {
		const bool whole = i == PAGES - 1;

		number_put(DESCRIPTIONS_AT + i * sizeof(struct kdump_page), PAGES_AT + i * PACKED_BYTES, 8);
		number_put(DESCRIPTIONS_AT + i * sizeof(struct kdump_page) + 8, whole ? BLOCK : PACKED_BYTES, 4);
		number_put(DESCRIPTIONS_AT + i * sizeof(struct kdump_page) + 12, whole ? 0 : 1, 4);
	}
}

static size_t file_change(const uint8_t *data, size_t size)
{
	size_t file_bytes = sizeof(file);

	while (size >= 3) {
		const size_t at = (size_t)(data[0] | data[1] << 8);
		const size_t n = MIN(data[2], size - 3);

		if (n == 0) /* it is cut off */
			file_bytes = MIN(file_bytes, at);
		else if (at <= sizeof(file) - n)
			memcpy(file + at, data + 3, n);
		data += 3 + n;
		size -= 3 + n;
	}
	return file_bytes;
}

/* In the place of vprof-parse: every second page is whole. */
GBytes *__wrap_parser_ask_mapped(const struct vprof_parse_request *request, int input, GError **error);
GBytes *__wrap_parser_ask_mapped(const struct vprof_parse_request *request, int input, GError **error)
{
	const size_t n = (size_t)request->start, bytes = (size_t)request->answer_bytes;
	uint8_t *answer = g_malloc0(bytes + 1);

	(void)error;
	if (n > KDUMP_GROUP_PAGES || request->length > VPROF_PARSE_PAGE_BYTES_MAX ||
	    request->answer_bytes != n * (request->length + 1) || lseek(input, 0, SEEK_END) != (off_t)request->bytes ||
	    request->bytes < n * sizeof(uint32_t) || request->bytes > n * (request->length + sizeof(uint32_t)))
		abort();
	for (size_t i = 0; i < n; i++)
		answer[i] = i % 2 == 0;
	return g_bytes_new_take(answer, bytes);
}

static void dump_check(const struct kdump_file *dump)
{
	static uint8_t bytes[VPROF_PARSE_PAGE_BYTES_MAX + 16];
	const uint64_t page = dump->page_bytes, end = dump->n_frames * page;
	uint64_t counted = 0;

	if (dump->n_words != (dump->n_frames + 63) / 64)
		abort();
	for (size_t i = 0; i < dump->n_words; i++) {
		if (dump->before[i] != counted)
			abort();
		counted += (uint64_t)__builtin_popcountll(dump->bitmap[i]);
	}
	if (counted != dump->n_pages || counted == 0 || counted > dump->n_frames ||
	    kdump_file_memory_bytes(dump) != counted * page)
		abort();
	for (uint64_t frame = 0; frame < MIN(dump->n_frames, 300); frame++)
		kdump_file_read(dump, (gpa_t){frame * page + frame % page}, bytes, (size_t)page);
	kdump_file_read(dump, (gpa_t){end - 8}, bytes, 8);
	if (kdump_file_read(dump, (gpa_t){end - 8}, bytes, 16) || kdump_file_read(dump, (gpa_t){end}, bytes, 1) ||
	    kdump_file_read(dump, (gpa_t){UINT64_MAX - 7}, bytes, 16))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dump_bytes bytes;
	size_t file_bytes;
	int fd = memfd_create("kdump", MFD_CLOEXEC);

	dump_make();
	file_bytes = file_change(data, size);
	if (fd < 0 || write(fd, file, file_bytes) != (ssize_t)file_bytes)
		abort();
	if (dump_bytes_open(&bytes, fd, NULL)) {
		struct kdump_file *dump = kdump_file_open(&bytes, NULL);

		if (size == 0 && !dump)
			abort();
		if (dump)
			dump_check(dump);
		kdump_file_free(dump);
	}
	dump_bytes_close(&bytes);
	close(fd);
	return 0;
}
