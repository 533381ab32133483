// SPDX-License-Identifier: BSD-2-Clause
/* A file of a spool, which earlier versions and other programs may have written, and the request that is made of it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "push/push_parca.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())
#define FRAME_HEADER_BYTES 5u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct push_profile profile;
	gsize n;

	if (!push_profile_parse((const char *)data, size, &profile))
		return 0;
	const void *bytes = g_bytes_get_data(profile.bytes, &n);

	REQUIRE(profile.format == PUSH_FORMAT_PPROF || profile.format == PUSH_FORMAT_OTLP);
	REQUIRE(g_utf8_validate(profile.name, -1, NULL));
	REQUIRE(profile.from_s <= INT64_MAX && profile.until_s <= INT64_MAX);
	REQUIRE(n < size && (n == 0 || memcmp(bytes, data + size - n, n) == 0));

	g_autoptr(GByteArray) request = push_parca_request(&profile);
	guint32 length;

	memcpy(&length, request->data + 1, sizeof(length));
	REQUIRE(request->len > FRAME_HEADER_BYTES + n && GUINT32_FROM_BE(length) == request->len - FRAME_HEADER_BYTES);
	push_profile_clear(&profile);
	return 0;
}
