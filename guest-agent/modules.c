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

#define FOLDER "/lib/modules/vprof" /* KERNEL_MODULES_PATH in vmm/lib/initramfs/kernel_modules.h */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void load(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST))
		fprintf(stderr, "vprof-agent: cannot load kernel module %s: %s\n", name, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void modules_load(void)
{
	struct dirent **entries;
	int n = scandir(FOLDER, &entries, is_visible, alphasort);
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < n; i++) {
		load(folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (folder >= 0)
		close(folder);
}
