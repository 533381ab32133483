// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/unpack.h"

#include <zstd.h>

/* struct unpacker is the library's stream under our name. */
static ZSTD_DStream *stream_of(struct unpacker *unpacker)
{
	return (ZSTD_DStream *)unpacker;
}

struct unpacker *unpacker_new(void)
{
	return (struct unpacker *)ZSTD_createDStream();
}

void unpacker_free(struct unpacker *unpacker)
{
	ZSTD_freeDStream(stream_of(unpacker));
}

bool unpacker_step(struct unpacker *unpacker, const uint8_t **from, size_t *n, uint8_t *to, size_t room,
                   size_t *unpacked)
{
	ZSTD_inBuffer in = {.src = *from, .size = *n};
	ZSTD_outBuffer out = {.dst = to, .size = room};

	if (ZSTD_isError(ZSTD_decompressStream(stream_of(unpacker), &out, &in)))
		return false;
	*from += in.pos;
	*n -= in.pos;
	*unpacked = out.pos;
	return true;
}
