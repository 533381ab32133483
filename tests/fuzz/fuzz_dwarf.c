// SPDX-License-Identifier: BSD-2-Clause
/*
 * What vprof-parse does with debug information: the lines of a range, the places of a file's lines, and the members of
 * structures.
 */
#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "parse/parse.h"

#define ANSWER_BYTES_MAX (1u << 20)

static void answer_try(parse_fn parse, const uint8_t *data, size_t size, struct vprof_parse_request *request)
{
	g_autoptr(GError) error = NULL;
	g_autofree uint8_t *copy = g_memdup2(data, size);
	struct parse_answer answer = {.fd = memfd_create("answer", MFD_CLOEXEC), .limit = ANSWER_BYTES_MAX};
	const struct parse_input input = {copy, size};

	if (parse(&input, request, &answer, &error) ? answer.bytes > ANSWER_BYTES_MAX || error != NULL : !error)
		g_error("an answer of %" G_GUINT64_FORMAT " bytes, %s", answer.bytes,
		        error ? error->message : "no error");
	close(answer.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vprof_parse_request lines = {
		.what = VPROF_PARSE_LINES, .answer_bytes = ANSWER_BYTES_MAX, .start = 0x401000, .length = 0x1000};
	struct vprof_parse_request types = {.what = VPROF_PARSE_TYPES,
	                                    .answer_bytes = ANSWER_BYTES_MAX,
	                                    .text = "task_struct\0file\0point",
	                                    .text_bytes = sizeof("task_struct\0file\0point")};
	struct vprof_parse_request places = {.what = VPROF_PARSE_PLACES,
	                                     .answer_bytes = ANSWER_BYTES_MAX,
	                                     .text = "a.c", /* that of the corpus */
	                                     .text_bytes = sizeof("a.c")};

	answer_try(parse_lines, data, size, &lines);
	lines.start = 0;
	answer_try(parse_lines, data, size, &lines);
	answer_try(parse_places, data, size, &places);
	answer_try(parse_types, data, size, &types);
	return 0;
}
