// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls functions in a page of a file that it maps, a known number of times, and does to that page what makes trouble
 * for a breakpoint in it: the workload of user_patches.py. The file is a copy of this program, which is not executed,
 * so that it can be written to.
 *
 *     page_calls FILE WORD...
 *
 * WORD is call, which calls; fault, which calls functions that cause page faults; move, after which the page is
 * elsewhere; copy, after which this process has the page for itself; write, which writes a byte of the page; cut, which
 * truncates the file and makes it anew; drop, which has the kernel forget the page; wait, for half a second.
 */
#define _GNU_SOURCE /* madvise */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALLS 1000
#define PAGE 4096
#define SOFT_OFFLINE 101 /* MADV_SOFT_OFFLINE of linux/mman.h, as if the memory were about to fail */

/* As <sys/sdt.h> has it. */
#define STATIC_PROBE(n)                                                                           \
	__asm__ volatile("990: nop\n"                                                             \
	                 ".pushsection .note.stapsdt,\"\",\"note\"\n"                             \
	                 ".balign 4\n.4byte 992f - 991f, 994f - 993f, 3\n"                        \
	                 "991: .asciz \"stapsdt\"\n992: .balign 4\n"                              \
	                 "993: .8byte 990b, probes_base, 0\n"                                     \
	                 ".asciz \"page\"\n.asciz \"called\"\n.asciz \"8@%0\"\n"                  \
	                 "994: .balign 4\n.popsection\n"                                          \
	                 ".pushsection .stapsdt.base,\"a\",\"progbits\"\nprobes_base: .space 1\n" \
	                 ".popsection\n"                                                          \
	                 :                                                                        \
	                 : "r"(n))

/* In a page of their own, of which the last byte belongs to nothing. */
#define IN_PAGE __attribute__((noinline, aligned(PAGE / 4), section(".text.page")))

IN_PAGE static long twice(long n)
{
	STATIC_PROBE(n);
	return 2 * n;
}

IN_PAGE static long depth(long n)
{
	if (n == 0)
		return 0;
	long below = depth(n - 1);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

/* The first instructions of both cause a page fault, if the page is a new one. */
IN_PAGE static long load(long address)
{
	return *(volatile long *)address;
}

IN_PAGE static long store(long address)
{
	*(volatile long *)address = 1;
	return 1;
}

/* Of an address in this program: where it is in its file. */
static off_t file_offset(const void *address)
{
	const Elf64_Phdr *headers = (const void *)getauxval(AT_PHDR);
	const uintptr_t base = (uintptr_t)headers - headers[0].p_vaddr;

	for (size_t i = 0; i < getauxval(AT_PHNUM); i++)
		if (headers[i].p_type == PT_LOAD && (uintptr_t)address - base - headers[i].p_vaddr < headers[i].p_memsz)
			return (off_t)((uintptr_t)address - base - headers[i].p_vaddr + headers[i].p_offset);
	return -1;
}

static const char *path;
static off_t page; /* the first of the two that the functions may be in */
static uint8_t *mapped;

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(1);
}

/* The kernel must have forgotten what is `dropped`. */
static void map(bool dropped)
{
	const int file = open(path, O_RDONLY);
	uint8_t resident[2];

	mapped = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, page);
	check(mapped == MAP_FAILED, "map");
	close(file);
	check(mincore(mapped, 2 * PAGE, resident) < 0, "look");
	if (dropped && ((resident[0] | resident[1]) & 1))
		printf("page calls: still there\n");
	for (int i = 0; i < 2; i++)
		(void)*(volatile uint8_t *)(mapped + i * PAGE);
}

static long (*function(const void *ours))(long)
{
	return (long (*)(long))(void *)(mapped + (file_offset(ours) - page));
}

static void call(void)
{
	long sum = 0;

	for (long i = 0; i < CALLS; i++)
		sum += function((const void *)twice)(i);
	for (int i = 0; i < CALLS / 4; i++)
		sum += function((const void *)depth)(3);
	printf("page calls: %d %ld\n", (int)getpid(), sum - (long)CALLS * (CALLS - 1));
}

/* Pages that are there for reading, after the first call, and new ones. */
static void fault(void)
{
	uint8_t *pages = mmap(NULL, (size_t)CALLS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;

	check(pages == MAP_FAILED, "memory");
	for (int i = 0; i < CALLS; i++) {
		if (i % 2 == 0)
			sum += function((const void *)load)((long)(pages + i * PAGE));
		sum += function((const void *)store)((long)(pages + i * PAGE));
		sum += function((const void *)load)((long)(pages + i * PAGE));
	}
	printf("page faults: %d %ld\n", (int)getpid(), sum);
	munmap(pages, (size_t)CALLS * PAGE);
}

static void copy(void)
{
	check(mprotect(mapped, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0, "protect");
	for (int i = 0; i < 2; i++) {
		volatile uint8_t *last = mapped + i * PAGE + PAGE - 1;

		*last = *last;
	}
}

static void write_byte(void)
{
	const int file = open(path, O_RDWR);
	uint8_t byte;

	for (int i = 0; i < 2; i++) {
		const off_t last = page + i * PAGE + PAGE - 1;

		check(pread(file, &byte, 1, last) != 1 || pwrite(file, &byte, 1, last) != 1, "write");
	}
	close(file);
}

static void cut(void)
{
	static uint8_t bytes[64 << 20];
	const int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_RDWR);
	const ssize_t n = read(from, bytes, sizeof(bytes));

	check(n <= 0 || ftruncate(to, 0) < 0 || pwrite(to, bytes, (size_t)n, 0) != n || fsync(to) < 0, "truncate");
	close(from);
	close(to);
	for (int i = 0; i < 2; i++)
		(void)*(volatile uint8_t *)(mapped + i * PAGE);
}

static void drop(void)
{
	const int file = open(path, O_RDONLY);

	munmap(mapped, 2 * PAGE);
	check(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0, "drop");
	close(file);
	map(true);
}

static void move(void)
{
	check(madvise(mapped, 2 * PAGE, SOFT_OFFLINE) < 0, "move");
}

static void wait_a_little(void)
{
	usleep(500000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*run)(void);
	} works[] = {{"call", call},        {"fault", fault}, {"move", move}, {"copy", copy},
	             {"write", write_byte}, {"cut", cut},     {"drop", drop}, {"wait", wait_a_little}};

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc < 2)
		return 2;
	path = argv[1];
	page = file_offset((const void *)twice) / PAGE * PAGE;
	map(false);
	for (int i = 2; i < argc; i++)
		for (size_t j = 0; j < sizeof(works) / sizeof(works[0]); j++)
			if (strcmp(argv[i], works[j].word) == 0)
				works[j].run();
	return 0;
}
