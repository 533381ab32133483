// SPDX-License-Identifier: BSD-2-Clause
/* A dump of a guest: what it says of memory and registers leads nowhere but into the file. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/core_file.h"
#include "fuzz_target.h"

static void check_memory(const struct core_file *core)
{
	uint8_t bytes[4096];

	for (size_t i = 0; i < core->n_ranges; i++) {
		const struct core_range *range = &core->ranges[i];

		if (range->bytes == 0 || (i > 0 && range->gpa < range[-1].gpa + range[-1].bytes))
			abort();
		core_file_read(core, (gpa_t){range->gpa}, bytes, sizeof(bytes));
		core_file_read(core, (gpa_t){range->gpa + range->bytes - 1}, bytes, 2);
	}
	core_file_read(core, (gpa_t){UINT64_MAX - 1}, bytes, sizeof(bytes));
	core_file_read(core, (gpa_t){0x2ff0}, bytes, sizeof(bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("core", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	struct core_file *core = core_file_open_fd(fd, "core", NULL);

	if (core && (core->n_vcpus == 0 || core->n_vcpus > GUEST_VCPUS_MAX))
		abort();
	if (core)
		check_memory(core);
	core_file_free(core);
	return 0;
}
