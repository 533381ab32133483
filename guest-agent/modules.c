// SPDX-License-Identifier: BSD-2-Clause
#include "modules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "module_bare.h"

#define FOLDER "/lib/modules/vprof" /* KERNEL_MODULES_PATH in vmm/lib/initramfs/kernel_modules.h */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* finit_module(2) refuses a file that is open for writing. */
static void change(int folder, const char *name, bool (*how)(int fd))
{
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC);

	if (fd < 0 || !how(fd))
		fprintf(stderr, "vprof-agent: cannot change kernel module %s: %s\n", name, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static bool load(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC), error;
	bool done = fd >= 0 && (syscall(SYS_finit_module, fd, "", 0) == 0 || errno == EEXIST);

	error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return done;
}

/* A module that has functions for BPF programs does not load without its types. */
static bool load_bare(int folder, const char *name)
{
	change(folder, name, module_bare);
	if (load(folder, name))
		return true;
	change(folder, name, module_with_types);
	return load(folder, name);
}

void modules_load(bool bare)
{
	struct dirent **entries;
	int n = scandir(FOLDER, &entries, is_visible, alphasort);
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (!(bare ? load_bare(folder, name) : load(folder, name)))
			fprintf(stderr, "vprof-agent: cannot load kernel module %s: %s\n", name, strerror(errno));
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (folder >= 0)
		close(folder);
}
