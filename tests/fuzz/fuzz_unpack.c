// SPDX-License-Identifier: BSD-2-Clause
/* What vprof-parse does with packed bytes: streams by each filter, and the members of an initramfs. */
#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "parse/parse.h"

#define ANSWER_BYTES_MAX (1u << 20)

static void answer_try(parse_fn parse, const struct parse_input *input, const struct vprof_parse_request *request)
{
	g_autoptr(GError) error = NULL;
	struct parse_answer answer = {.fd = memfd_create("answer", MFD_CLOEXEC), .limit = ANSWER_BYTES_MAX};

	if (parse(input, request, &answer, &error) ? answer.bytes > ANSWER_BYTES_MAX || error != NULL : !error)
		g_error("an answer of %" G_GUINT64_FORMAT " bytes, %s", answer.bytes,
		        error ? error->message : "no error");
	close(answer.fd);
}

/* libarchive asks for as much memory as a file says, which the limits of vprof-parse refuse; here, AddressSanitizer
 * does. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "max_allocation_size_mb=512:allocator_may_return_null=1";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree uint8_t *copy = g_memdup2(data, size);
	const struct parse_input input = {copy, size};
	const struct vprof_parse_request stream = {.what = VPROF_PARSE_UNPACK,
	                                           .answer_bytes = ANSWER_BYTES_MAX,
	                                           .packing = size > 0 ? data[size - 1] % VPROF_PARSE_PACKINGS : 0};
	const struct vprof_parse_request member = {.what = VPROF_PARSE_MEMBER,
	                                           .answer_bytes = ANSWER_BYTES_MAX,
	                                           .text = "/bin/sh",
	                                           .text_bytes = sizeof("/bin/sh")};
	const struct vprof_parse_request programs = {.what = VPROF_PARSE_PROGRAMS, .answer_bytes = ANSWER_BYTES_MAX};

	answer_try(parse_unpack, &input, &stream);
	answer_try(parse_member, &input, &member);
	answer_try(parse_programs, &input, &programs);
	return 0;
}
