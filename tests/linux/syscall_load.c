// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes system calls for some seconds. What it does depends on the name it is called by: "reader" reads from /dev/zero,
 * "lister" reads the folder /bin, "driver" the disk /dev/vda past the page cache. Built with frame pointers.
 */
#define _GNU_SOURCE /* O_DIRECT */
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

static __attribute__((noinline)) void read_disk(int unused)
{
	static _Alignas(4096) char block[4096];
	int disk = open("/dev/vda", O_RDONLY | O_DIRECT);
	(void)unused;
	for (int i = 0; i < 100 && read(disk, block, sizeof(block)) > 0; i++)
		calls++;
	close(disk);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	void (*work)(int) = strcmp(name, "reader") == 0   ? read_zeros
	                    : strcmp(name, "driver") == 0 ? read_disk
	                                                  : list_folder;
	int zero = open("/dev/zero", O_RDONLY);
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	while (time(NULL) < end)
		work(zero);
	printf("%s: pid %d, %lu calls\n", name, (int)getpid(), calls);
	return 0;
}
