// SPDX-License-Identifier: BSD-2-Clause
/* bench_calls NAME: the nanoseconds of a system call that does next to nothing, a median of rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 9
#define CALLS 1000

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

int main(int argc, char *argv[])
{
	long taken[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		const long began = now_ns();

		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		taken[round] = (now_ns() - began) / CALLS;
	}
	qsort(taken, ROUNDS, sizeof(taken[0]), compare);
	printf("bench: %s: %ld ns\n", argc > 1 ? argv[1] : "", taken[ROUNDS / 2]);
	return 0;
}
