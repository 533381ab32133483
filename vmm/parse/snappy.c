// SPDX-License-Identifier: BSD-2-Clause
/*
 * snappy's format (google/snappy, format_description.txt): the size in 7 bits a byte, then elements, each literal bytes
 * or a copy of what came before. Its library would bring that of C++ into each vprof-parse.
 */
#include <string.h>

#include "parse/parse.h"

struct stream {
	const uint8_t *at, *end;
	uint8_t *page;
	size_t put, room;
};

/* `bytes` of a number, little-endian. */
static bool number_take(struct stream *stream, unsigned bytes, uint64_t *number)
{
	if (bytes > (size_t)(stream->end - stream->at))
		return false;
	*number = 0;
	for (unsigned i = 0; i < bytes; i++)
		*number |= (uint64_t)*stream->at++ << 8 * i;
	return true;
}

static bool size_take(struct stream *stream, uint64_t *size)
{
	*size = 0;
	for (unsigned shift = 0; shift < 35 && stream->at < stream->end; shift += 7) {
		const uint8_t byte = *stream->at++;

		*size |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* From 60 on, the length is that many bytes less 59, behind the tag. */
static bool literal_take(struct stream *stream, uint8_t tag)
{
	uint64_t length = tag >> 2;

	if (length >= 60 && !number_take(stream, (unsigned)length - 59, &length))
		return false;
	length++;
	if (length > (size_t)(stream->end - stream->at) || length > stream->room - stream->put)
		return false;
	memcpy(stream->page + stream->put, stream->at, length);
	stream->at += length;
	stream->put += length;
	return true;
}

/* A copy that is longer than its distance repeats what it has put. */
static bool copy_take(struct stream *stream, uint8_t tag)
{
	static const unsigned offset_bytes[4] = {0, 1, 2, 4};
	const unsigned kind = tag & 3;
	size_t length = (tag >> 2) + 1u;
	uint64_t offset;

	if (!number_take(stream, offset_bytes[kind], &offset))
		return false;
	if (kind == 1) {
		length = 4u + (tag >> 2 & 7);
		offset |= (uint64_t)(tag >> 5) << 8;
	}
	if (offset == 0 || offset > stream->put || length > stream->room - stream->put)
		return false;
	for (; length > 0; length--, stream->put++)
		stream->page[stream->put] = stream->page[stream->put - offset];
	return true;
}

bool parse_snappy_page(const uint8_t *packed, uint32_t n, uint8_t *page, size_t page_bytes)
{
	struct stream stream = {.at = packed, .end = packed + n, .page = page, .room = page_bytes};
	uint64_t size;

	if (!size_take(&stream, &size) || size != page_bytes)
		return false;
	while (stream.at < stream.end) {
		const uint8_t tag = *stream.at++;

		if (!((tag & 3) == 0 ? literal_take : copy_take)(&stream, tag))
			return false;
	}
	return stream.put == page_bytes;
}
