// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/parser/parser.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int sealed_new(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool sealed_finish(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS) == 0;
}

bool sealed_is(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & SEALS) == SEALS;
}

int sealed_copy(const char *name, const void *bytes, size_t n)
{
	int fd = sealed_new(name);
	ssize_t put = 1;

	for (size_t at = 0; fd >= 0 && at < n && put > 0; at += (size_t)put)
		put = write(fd, (const char *)bytes + at, n - at);
	if (fd < 0 || (put > 0 && sealed_finish(fd)))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

struct mapping {
	void *at;
	size_t n;
};

static void mapping_free(void *data)
{
	struct mapping *mapping = data;

	munmap(mapping->at, mapping->n);
	g_free(mapping);
}

GBytes *sealed_map(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return NULL;
	if (status.st_size == 0)
		return g_bytes_new(NULL, 0);
	/* Private: before Linux 6.7, write-sealed memory could not be mapped as shared. */
	void *at = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	struct mapping *mapping = g_new(struct mapping, 1);

	*mapping = (struct mapping){at, (size_t)status.st_size};
	return g_bytes_new_with_free_func(at, mapping->n, mapping_free, mapping);
}
