// SPDX-License-Identifier: BSD-2-Clause
/* Input: a perf.data file, of which every event goes through every exporter, and all into the page. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/export.h"
#include "export/page_data.h"
#include "fuzz_target.h"

#define EVENTS_MAX 4u /* they differ in little; the limit is on time */

static void export_all(struct input *input, FILE *to)
{
	const size_t n_events = MIN(recording_n_events(input->recording), EVENTS_MAX);

	for (size_t i = 0; exporters[i]; i++)
		for (unsigned event = 0; event < n_events; event++) {
			struct export_profile profile;
			g_autoptr(GError) error = NULL;

			export_profile_read(&profile, exporters[i], input, event,
			                    exporters[i] == &export_svg ? (int)event : -1);
			bool written = exporters[i]->write(&profile, to, &error);

			g_assert(written == !error);
			export_profile_clear(&profile);
		}
}

/* What is put into a script of the page does not end it. */
static void page_try(struct input *input)
{
	struct page_recording *recording = page_recording_read(input);
	const struct page_recording *const recordings[] = {recording};
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	g_assert(to);
	page_data_write(recordings, 1, NULL, to);
	fclose(to);
	g_assert(n > 0 && !memchr(text, '<', n) && g_utf8_validate(text, (gssize)n, NULL));
	free(text);
	page_recording_free(recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static FILE *null;
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("recording", MFD_CLOEXEC);
		null = fopen("/dev/null", "we");
	}
	g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);

	if (!null || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		return -1;
	struct input *input = input_open(path, NULL, false, NULL);

	if (input) {
		export_all(input, null);
		page_try(input);
	}
	input_free(input);
	return 0;
}
