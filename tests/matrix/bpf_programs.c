// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_programs KERNEL OBJECT...: whether BPF programs find the members that they read in the types of this kernel, as
 * if it were the host's. They are loaded on this machine and not run. 77: this machine loads no BPF programs.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest/types.h"

#define SKIPPED 77

/* A file with the types of the kernel; by g_unlink and g_free. NULL: there are none, or no file. */
static char *types_write(const char *kernel, GError **error)
{
	g_autofree char *path = NULL;
	struct image *image = image_open(kernel, error);
	size_t bytes = 0;
	const uint8_t *btf = image ? types_btf(image, &bytes, error) : NULL;
	int fd = btf ? g_file_open_tmp("vprof-btf-XXXXXX", &path, error) : -1;
	bool written = fd >= 0 && g_file_set_contents(path, (const char *)btf, (gssize)bytes, error);

	if (fd >= 0)
		close(fd);
	image_free(image);
	return written ? g_steal_pointer(&path) : NULL;
}

/* 0, or an errno. */
static int object_load(const char *path, const char *types)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = types);
	struct bpf_object *object = bpf_object__open_file(path, &options);
	const int result = object ? bpf_object__load(object) : -errno;

	bpf_object__close(object);
	return -result;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *types = argc > 2 ? types_write(argv[1], &error) : NULL;
	int status = types ? EXIT_SUCCESS : EXIT_FAILURE;

	if (!types)
		fprintf(stderr, "bpf_programs: %s\n", error ? error->message : "usage: bpf_programs KERNEL OBJECT...");
	for (int i = 2; types && i < argc && status == EXIT_SUCCESS; i++) {
		const int why = object_load(argv[i], types);

		printf("%s: %s\n", argv[i], why ? strerror(why) : "loaded");
		if (why)
			status = why == EPERM ? SKIPPED : EXIT_FAILURE;
	}
	if (types)
		g_unlink(types);
	return status;
}
