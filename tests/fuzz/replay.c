// SPDX-License-Identifier: BSD-2-Clause
/*
 * Feeds every file of the folder named on the command line to a fuzz target. Each lies in memory that cannot be
 * written, in front of a page that cannot be read.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"

/* False, with errno, when the host refuses. */
static bool feed(const char *contents, size_t n)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (n + page - 1) / page * page;
	uint8_t *const memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	memcpy(memory + bytes - n, contents, n);
	bool ready = mprotect(memory, bytes + page, PROT_READ) == 0 && mprotect(memory + bytes, page, PROT_NONE) == 0;

	if (ready)
		LLVMFuzzerTestOneInput(memory + bytes - n, n);
	munmap(memory, bytes + page);
	return ready;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GDir) folder = argc == 2 ? g_dir_open(argv[1], 0, &error) : NULL;
	unsigned n = 0;

	if (!folder) {
		fprintf(stderr, "usage: %s FOLDER: %s\n", argv[0], error ? error->message : "no folder given");
		return 2;
	}
	for (const char *name; (name = g_dir_read_name(folder)); n++) {
		g_autofree char *path = g_build_filename(argv[1], name, NULL);
		g_autofree char *contents = NULL;
		gsize bytes;

		if (!g_file_get_contents(path, &contents, &bytes, &error)) {
			fprintf(stderr, "%s\n", error->message);
			return 1;
		}
		if (!feed(contents, bytes)) {
			perror(path);
			return 1;
		}
	}
	printf("%u inputs\n", n);
	return n > 0 ? 0 : 1;
}
