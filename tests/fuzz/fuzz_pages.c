// SPDX-License-Identifier: BSD-2-Clause
/* Packed pages of a dump: what vprof-parse gives back has the size that was asked for. The first byte says how they are
 * packed and how many there are. */
#include <glib.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "parse/parse.h"

#define PAGE_BYTES 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	g_autofree uint8_t *copy = g_memdup2(data + 1, size - 1);
	g_autoptr(GError) error = NULL;
	const struct parse_input input = {copy, size - 1};
	const struct vprof_parse_request request = {
		.what = VPROF_PARSE_PAGES, .start = data[0] >> 2, .length = PAGE_BYTES, .packing = data[0] & 3};
	struct parse_answer answer = {.fd = memfd_create("answer", MFD_CLOEXEC), .limit = VPROF_PARSE_ANSWER_BYTES_MAX};
	const bool done = parse_pages(&input, &request, &answer, &error);

	if (done ? answer.bytes != request.start * (PAGE_BYTES + 1) : !error)
		abort();
	close(answer.fd);
	return 0;
}
