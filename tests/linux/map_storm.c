// SPDX-License-Identifier: BSD-2-Clause
/*
 * map_storm NUMBER SECONDS: maps code NUMBER times from a file with a long name, and then forks for some seconds:
 * children that compute for a moment, one after the other, each with all those mappings.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 230u
#define PAGE_BYTES 4096u

void spin_in_child(void);

__attribute__((noinline)) void spin_in_child(void)
{
	for (unsigned i = 0; i < 20000000; i++)
		__asm__ volatile("" : "+r"(i));
}

/* Of one page; each mapping of it is one of its own, because they do not go on in the file. */
static int file_make(void)
{
	char path[2 * NAME_BYTES + 16] = "/tmp/", *end = path + strlen(path);

	end = memset(end, 'd', NAME_BYTES);
	if (mkdir("/tmp", 0777) != 0 && access("/tmp", W_OK) != 0)
		return -1;
	if (mkdir(path, 0777) != 0)
		return -1;
	end[NAME_BYTES] = '/';
	memset(end + NAME_BYTES + 1, 'f', NAME_BYTES);
	int file = open(path, O_RDWR | O_CREAT, 0755);

	return file >= 0 && ftruncate(file, PAGE_BYTES) == 0 ? file : -1;
}

static int map_all(int number)
{
	int file = file_make();

	for (int i = 0; file >= 0 && i < number; i++)
		if (mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED)
			return -1;
	return file;
}

int main(int argc, char **argv)
{
	if (argc != 3 || map_all(atoi(argv[1])) < 0) {
		perror("map_storm");
		return 1;
	}
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
		pid_t child = fork();

		if (child == 0) {
			spin_in_child();
			_exit(0);
		}
		if (child < 0 || waitpid(child, NULL, 0) != child) {
			perror("map_storm: fork");
			return 1;
		}
	}
	puts("map_storm: done");
	return 0;
}
