// SPDX-License-Identifier: BSD-2-Clause
/*
 * Feeds every file of the folder named on the command line to a fuzz target.
 */
#include <glib.h>
#include <stdio.h>

#include "fuzz_target.h"

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
		/* A copy of the exact size, without the NUL behind it, so that ASan sees a step beyond. */
		g_autofree uint8_t *input = g_memdup2(contents, bytes);

		LLVMFuzzerTestOneInput(input, bytes);
	}
	printf("%u inputs\n", n);
	return n > 0 ? 0 : 1;
}
