// SPDX-License-Identifier: BSD-2-Clause
/*
 * Computes for some seconds, in one function, while no other task needs the processor. With a second argument it first
 * does so as long with its program mapped once more, and says where.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MORE_BYTES 4096u

void spin_in_user_mode(void);

__attribute__((noinline)) void spin_in_user_mode(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		__asm__ volatile("" : "+r"(i));
}

static void spin(time_t seconds)
{
	time_t end = time(NULL) + seconds;

	while (time(NULL) < end)
		spin_in_user_mode();
}

static int spin_with_more_code(time_t seconds)
{
	int program = open("/proc/self/exe", O_RDONLY);

	void *more = mmap(NULL, MORE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, program, 0);

	close(program);
	if (more == MAP_FAILED) {
		perror("user_spin: mmap");
		return 1;
	}
	printf("user_spin: mapped at %lx\n", (unsigned long)more);
	spin(seconds);
	return munmap(more, MORE_BYTES);
}

int main(int argc, char **argv)
{
	time_t seconds = argc > 1 ? atoi(argv[1]) : 1;

	nice(19);

	if (argc > 2 && spin_with_more_code(seconds) != 0)
		return 1;
	spin(seconds);
	puts("user_spin: done");
	return 0;
}
