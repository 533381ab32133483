// SPDX-License-Identifier: BSD-2-Clause
/* Input: a perf.data file. */
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "lib/record/reader.h"

static volatile uint64_t sink; /* so that what is decoded is read */

static void text_read(const char *text)
{
	sink += text ? strlen(text) : 0;
}

static bool record_read(const struct perf_event_header *record, size_t n, void *data)
{
	const struct recording *recording = data;
	struct record_sample sample;
	int event;

	for (size_t i = 0; i < n; i++)
		sink += ((const uint8_t *)record)[i];
	if (recording_sample(recording, record, n, &sample, &event)) {
		g_assert(event < (int)recording_n_events(recording));
		for (uint32_t i = 0; i < sample.n_chain; i++)
			sink += sample.chain[i];
		const struct recording_symbol *symbol = recording_symbol_find(recording, sample.ip);
		g_assert(!symbol || sample.ip - symbol->address < symbol->size);
	}
	return true;
}

static void recording_read(struct recording *recording)
{
	for (size_t i = 0; i < recording_n_events(recording); i++) {
		const struct recording_event *event = recording_event(recording, i);

		text_read(event->name);
		for (size_t j = 0; j < event->n_ids; j++)
			sink += (uint64_t)recording_event_of(recording, &(struct record_sample){.id = event->ids[j]});
	}
	text_read(recording_hostname(recording));
	text_read(recording_release(recording));
	text_read(recording_description(recording));
	text_read(recording_kernel_build_id(recording));
	text_read(recording_warning(recording));
	for (const char *const *word = recording_cmdline(recording); word && *word; word++)
		text_read(*word);
	for (uint64_t address = 0; address < 64; address++) {
		const struct recording_symbol *symbol = recording_symbol_find(recording, address << 58);

		text_read(symbol ? symbol->name : NULL);
		text_read(symbol ? symbol->module : NULL);
	}
	(void)recording_each(recording, record_read, recording, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("recording", MFD_CLOEXEC);
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		return -1;
	struct recording *recording = recording_open(path, NULL);
	if (recording)
		recording_read(recording);
	recording_free(recording);
	return 0;
}
