// SPDX-License-Identifier: BSD-2-Clause
/*
 * A compiler at run time: makes two functions that count, of which one counts for three times as long, says in its perf
 * map where they are, and runs them for some seconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CODE_BYTES 4096u
#define SECOND_AT 0x100u
#define COUNT 100000u

/* MOV ECX, n; DEC ECX; JNZ; RET */
static const unsigned char code[] = {0xb9, 0, 0, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void *function_make(unsigned char *at, unsigned count)
{
	memcpy(at, code, sizeof(code));
	memcpy(at + 1, &count, sizeof(count));
	return at;
}

static int map_write(const unsigned char *at)
{
	char name[64];

	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(name, "w");

	if (!map)
		return -1;
	fprintf(map, "%lx %zx replaced\n%lx %zx jit one\n%lx %zx jit three\n", (unsigned long)at, sizeof(code),
	        (unsigned long)at, sizeof(code), (unsigned long)at + SECOND_AT, sizeof(code));
	return fclose(map);
}

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	unsigned char *memory =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || map_write(memory) != 0) {
		perror("jit_spin");
		return 1;
	}
	void (*one)(void), (*three)(void);

	*(void **)&one = function_make(memory, COUNT);
	*(void **)&three = function_make(memory + SECOND_AT, 3 * COUNT);
	while (time(NULL) < end) {
		one();
		three();
	}
	return 0;
}
