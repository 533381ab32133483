// SPDX-License-Identifier: BSD-2-Clause
/* A file of which a sealed copy is made, by what its ELF tables say: that has the file's bytes, or zeros. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_target.h"
#include "lib/parser/parser.h"
#include "lib/symbol/image_priv.h"

static void copy_try(int file, enum image_copy_part part, const uint8_t *data, size_t size)
{
	g_autoptr(GError) error = NULL;
	const int copy = image_copy(file, part, &error);

	if (copy < 0) {
		g_assert(error);
		return;
	}
	g_assert(sealed_is(copy));
	g_autoptr(GBytes) bytes = sealed_map(copy);
	size_t n;
	const uint8_t *got = g_bytes_get_data(bytes, &n);

	close(copy);
	g_assert(n == size);
	for (size_t i = 0; i < n; i++)
		g_assert(got[i] == data[i] || (got[i] == 0 && part != IMAGE_COPY_ALL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1;

	if (file < 0)
		file = memfd_create("file", MFD_CLOEXEC);
	if (size == 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
		return -1;
	copy_try(file, IMAGE_COPY_ALL, data, size);
	copy_try(file, IMAGE_COPY_LOADED, data, size);
	copy_try(file, IMAGE_COPY_DEBUG, data, size);
	return 0;
}
