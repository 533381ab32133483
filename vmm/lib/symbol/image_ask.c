// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

static enum vprof_parse_image kind_of(const struct image *image)
{
	switch (image->kind) {
	case IMAGE_KERNEL:
		return VPROF_PARSE_KERNEL;
	case IMAGE_MODULE:
		return VPROF_PARSE_MODULE;
	default:
		return image->holes ? VPROF_PARSE_PROGRAM_PART : VPROF_PARSE_PROGRAM;
	}
}

int image_ask_memory(const struct image *image, enum vprof_parse_what what, uint64_t answer_bytes, GError **error)
{
	struct vprof_parse_request request = {.what = what, .answer_bytes = answer_bytes, .image = kind_of(image)};

	if (what == VPROF_PARSE_LAYOUT) {
		request.packing = image->compression ? VPROF_PARSE_GZIP : VPROF_PARSE_ANY; /* or another */
		request.with_release = image->kind == IMAGE_KERNEL && !image->release;
	}
	int file = image_memory(image, &request.bytes, error);
	int answer = file >= 0 ? parser_ask(&request, file, error) : -1;

	if (file >= 0)
		close(file);
	return answer;
}

GBytes *image_answer_map(int answer, GError **error)
{
	GBytes *mapped = sealed_map(answer);

	if (!mapped)
		g_set_error_literal(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot be read: the answer cannot be mapped");
	return mapped;
}

GBytes *image_ask(const struct image *image, enum vprof_parse_what what, uint64_t answer_bytes, GError **error)
{
	int answer = image_ask_memory(image, what, answer_bytes, error);
	GBytes *mapped = answer >= 0 ? image_answer_map(answer, error) : NULL;

	if (answer >= 0)
		close(answer);
	return mapped;
}
