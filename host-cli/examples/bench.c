// SPDX-License-Identifier: BSD-2-Clause
/*
 * bench [--iterations N]: a benchmark to try vprof with. It fills a buffer, sums it up, and prints how long an
 * iteration took, as a metric that vprof records.
 *
 *   cc -O2 -g -fno-omit-frame-pointer -o bench bench.c
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORDS (256 * 1024)

static uint32_t buffer[WORDS];

__attribute__((noinline)) static void fill(uint32_t seed)
{
	for (unsigned i = 0; i < WORDS; i++)
		buffer[i] = seed = seed * 1664525 + 1013904223;
}

__attribute__((noinline)) static uint32_t checksum(void)
{
	uint32_t a = 1, b = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		a = (a + buffer[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned iterations = argc > 2 && strcmp(argv[1], "--iterations") == 0 ? (unsigned)atoi(argv[2]) : 2000;
	double begin = seconds();
	uint32_t sum = 0;

	for (unsigned i = 0; i < iterations; i++) {
		fill(i);
		sum ^= checksum();
	}
	printf("%u iterations, checksum %08x\n", iterations, sum);
	printf("vprof: metric iteration=%.3f ms\n", (seconds() - begin) * 1000 / iterations);
	return 0;
}
