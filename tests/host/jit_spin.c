// SPDX-License-Identifier: BSD-2-Clause
/*
 * A compiler at run time: makes two functions that count, of which one counts for three times as long, says in its perf
 * map where the other one is and in a jitdump where this one has moved to, and runs them for some seconds.
 */
#include <stddef.h>
#include <stdint.h>
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
	fprintf(map, "%lx %zx replaced\n%lx %zx jit one\n", (unsigned long)at, sizeof(code), (unsigned long)at,
	        sizeof(code));
	return fclose(map);
}

/* Linux, tools/perf/Documentation/jitdump-specification.txt. */
struct jitdump {
	uint32_t magic, version, header_bytes, machine, pad, pid;
	uint64_t timestamp, flags;
	struct {
		uint32_t kind, bytes;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, address, size, index;
		char name[sizeof("jit three")];
		unsigned char code[sizeof(code)];
	} __attribute__((packed)) load;
	struct {
		uint32_t kind, bytes;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, from, address, size, index;
	} __attribute__((packed)) move;
} __attribute__((packed));

static int dump_write(const unsigned char *at)
{
	const uint32_t pid = (uint32_t)getpid();
	const uint64_t first = (uintptr_t)at + CODE_BYTES, last = (uintptr_t)at + SECOND_AT;
	struct jitdump dump = {0x4a695444,
	                       1,
	                       offsetof(struct jitdump, load),
	                       62,
	                       0,
	                       pid,
	                       1,
	                       0,
	                       {0, sizeof(dump.load), 2, pid, pid, first, first, sizeof(code), 1, "jit three", {0}},
	                       {1, sizeof(dump.move), 3, pid, pid, last, first, last, sizeof(code), 1}};
	char name[64];

	memcpy(dump.load.code, code, sizeof(code));
	snprintf(name, sizeof(name), "/root/jit-%d.dump", getpid());
	FILE *to = fopen(name, "w+");

	if (!to || fwrite(&dump, sizeof(dump), 1, to) != 1 || fflush(to) != 0)
		return -1;
	/* As perf wants it. */
	return mmap(NULL, sizeof(dump), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(to), 0) == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	unsigned char *memory =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || map_write(memory) != 0 || dump_write(memory) != 0) {
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
