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
static bool make_bare(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC);
	bool done = fd >= 0 && module_bare(fd);

	if (fd >= 0)
		close(fd);
	return done;
}

static void load(int folder, const char *name, bool bare)
{
	if (bare && !make_bare(folder, name))
		fprintf(stderr, "vprof-agent: cannot change kernel module %s: %s\n", name, strerror(errno));

	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
		fprintf(stderr, "vprof-agent: cannot load kernel module %s: %s\n", name, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void modules_load(bool bare)
{
	struct dirent **entries;
	int n = scandir(FOLDER, &entries, is_visible, alphasort);
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < n; i++) {
		load(folder, entries[i]->d_name, bare);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (folder >= 0)
		close(folder);
}
