// SPDX-License-Identifier: BSD-2-Clause
/*
 * A ring as a hostile engine leaves it. The input begins with four words for the header, as of perf_event_mmap_page:
 * data_head, data_tail, and what is added to the right data_offset and data_size; the rest is the ring's data.
 */
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "fuzz_target.h"
#include "lib/record/ring_reader.h"

#define RECORDS_MAX 4096u /* more than the ring has room for */

static void ring_fill(int memfd, const uint8_t *data, size_t size)
{
	struct perf_event_mmap_page header = {0};
	uint64_t words[4] = {0};
	const size_t rest = size - MIN(size, sizeof(words));

	memcpy(words, data, size - rest);
	header.data_head = words[0];
	header.data_tail = words[1];
	header.data_offset = VPROF_RING_HEADER_BYTES + words[2];
	header.data_size = VPROF_RING_DATA_BYTES_MIN + words[3];
	if (ftruncate(memfd, VPROF_RING_HEADER_BYTES + VPROF_RING_DATA_BYTES_MIN) != 0 ||
	    pwrite(memfd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    pwrite(memfd, data + size - rest, MIN(rest, VPROF_RING_DATA_BYTES_MIN), VPROF_RING_HEADER_BYTES) < 0 ||
	    fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		g_error("cannot make a ring");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int memfd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	const struct perf_event_header *record;
	static uint8_t copy[UINT16_MAX];
	struct ring_reader *reader;
	unsigned n = 0;
	size_t bytes;

	ring_fill(memfd, data, size);
	reader = ring_reader_open(memfd, NULL);
	close(memfd);
	if (!reader)
		return 0;
	while ((record = ring_reader_next(reader, &bytes)) != NULL) {
		if (bytes > sizeof(copy) || bytes < sizeof(*record) || record->size != bytes || ++n > RECORDS_MAX)
			g_error("record %u has %zu bytes, and says %u", n, bytes, record->size);
		memcpy(copy, record, bytes); /* all of it can be read */
	}
	ring_reader_release(reader);
	ring_reader_free(reader);
	return 0;
}
