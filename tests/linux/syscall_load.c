// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes system calls for some seconds. What it does depends on the name it is called by: "reader" reads from /dev/zero,
 * "lister" reads the folder /bin. Built with frame pointers.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long calls;

static __attribute__((noinline)) void read_zeros(int zero)
{
	char bytes[512];
	for (int i = 0; i < 100; i++)
		calls += read(zero, bytes, sizeof(bytes)) > 0;
}

static __attribute__((noinline)) void list_folder(int unused)
{
	DIR *folder = opendir("/bin");
	(void)unused;
	while (folder && readdir(folder))
		calls++;
	closedir(folder);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	void (*work)(int) = strcmp(name, "reader") == 0 ? read_zeros : list_folder;
	int zero = open("/dev/zero", O_RDONLY);
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	while (time(NULL) < end)
		work(zero);
	printf("%s: pid %d, %lu calls\n", name, (int)getpid(), calls);
	return 0;
}
