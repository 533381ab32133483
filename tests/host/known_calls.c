// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does known things a known number of times, each under a name of its own, as the guest's process 1 and then as a
 * child: the workload of one_liners.py. The disk is read past the page cache. With an argument, it has that name and
 * ticks, ten times a second.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS 300
#define OPENS 25
#define FORKS 20
#define BLOCKS 16

/* As <sys/sdt.h> has it: a NOP, and a note with the address, the base, no semaphore, and the names. */
#define STATIC_PROBE(operands, ...)                                                               \
	__asm__ volatile("990: nop\n"                                                             \
	                 ".pushsection .note.stapsdt,\"\",\"note\"\n"                             \
	                 ".balign 4\n.4byte 992f - 991f, 994f - 993f, 3\n"                        \
	                 "991: .asciz \"stapsdt\"\n992: .balign 4\n"                              \
	                 "993: .8byte 990b, probes_base, 0\n"                                     \
	                 ".asciz \"known\"\n.asciz \"tick\"\n.asciz \"" operands "\"\n"           \
	                 "994: .balign 4\n.popsection\n"                                          \
	                 ".pushsection .stapsdt.base,\"a\",\"progbits\"\nprobes_base: .space 1\n" \
	                 ".popsection\n"                                                          \
	                 :                                                                        \
	                 : __VA_ARGS__                                                            \
	                 : "memory")

static void name(const char *text)
{
	prctl(PR_SET_NAME, text);
}

static void call(void)
{
	name("caller");
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	name("between");
}

static void open_files(void)
{
	close(open("/known-file", O_RDWR | O_CREAT, 0600));
	name("opener");
	for (int i = 0; i < OPENS; i++)
		close(open("/known-file", O_RDONLY));
	name("between");
}

static void read_sizes(void)
{
	static const struct {
		size_t bytes;
		int times;
	} sizes[] = {{1, 10}, {70, 13}, {450, 7}, {1500, 11}, {1900, 5}};
	int zero = open("/dev/zero", O_RDONLY);
	char bytes[4096];

	name("reader");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int n = 0; n < sizes[i].times; n++)
			if (read(zero, bytes, sizes[i].bytes) < 0)
				perror("read");
	name("between");
	close(zero);
}

static void make_children(void)
{
	name("parent");
	for (int i = 0; i < FORKS; i++) {
		if (fork() == 0)
			_exit(0);
		wait(NULL);
	}
	name("between");
}

static void read_disk(void)
{
	static _Alignas(4096) char block[8192];
	int disk = open("/dev/vda", O_RDONLY | O_DIRECT);

	name("driver");
	for (int i = 0; i < BLOCKS; i++)
		if (pread(disk, block, 4096, i * 65536) < 0)
			perror("disk");
	for (int i = 0; i < BLOCKS / 2; i++)
		if (pread(disk, block, 8192, (BLOCKS + i) * 65536) < 0)
			perror("disk");
	name("between");
	close(disk);
}

/* Of the processes beside it, until they are killed. */
__attribute__((noinline)) static void tick(long seven, long n)
{
	STATIC_PROBE("8@%0 -4@%1 8@%2 1@%b3", "r"(seven), "i"(-5), "m"(n), "q"(n));
}

enum end { RETURNS, LEAPS, EXITS };

/* Calls itself `n` times, and returns how often. */
__attribute__((noinline)) static long steps(jmp_buf *away, long n, enum end end)
{
	if (n == 0 && end == LEAPS)
		longjmp(*away, 1);
	if (n == 0 && end == EXITS)
		_exit(0);
	if (n == 0)
		return 0;
	long below = steps(away, n - 1, end);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

/* Calls that return, and that do not. */
static void make_steps(void)
{
	jmp_buf away;

	steps(&away, 3, RETURNS);
	if (setjmp(away) == 0)
		steps(&away, 3, LEAPS);
}

/* A call that ends with its process. */
static void end_in_step(void)
{
	if (fork() == 0)
		steps(NULL, 3, EXITS);
	wait(NULL);
}

static void tick_for_ever(const char *text)
{
	name(text);
	for (long n = 0;; n++) {
		tick(7, n);
		make_steps();
		if (n % 4 == 0)
			end_in_step();
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
}

int main(int argc, char *argv[])
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1)
		tick_for_ever(argv[1]);
	call();
	open_files();
	read_sizes();
	make_children();
	read_disk();
	nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
	printf("known calls: done\n");
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return 0;
}
