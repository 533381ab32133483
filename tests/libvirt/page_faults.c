// SPDX-License-Identifier: BSD-2-Clause
/*
 * An /init that makes no system call, which a host that emulates guests enters the kernel by in a way that QEMU cannot
 * mend: it touches pages for the first time, one after the other, and the kernel has to clear and map each.
 */
#define PAGE_BYTES 4096ul
#define PAGES (20ul << 10)
#define ROUNDS 1000000u /* of nothing, between two pages: a good part of the time that one takes */

static unsigned char memory[PAGES * PAGE_BYTES];

void touch_page(unsigned long page);
void rest(void);
void work(void);

__attribute__((noinline)) void touch_page(unsigned long page)
{
	((volatile unsigned char *)memory)[page * PAGE_BYTES] = 1;
}

__attribute__((noinline)) void rest(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		__asm__ volatile("" : "+r"(i));
}

/* Back to the first page after the last: those are there by then, and all time is the program's. */
void work(void)
{
	for (unsigned long page = 0;; page = (page + 1) % PAGES) {
		touch_page(page);
		rest();
	}
}

/* The outermost frame has none behind it, as the ABI wants it. */
__asm__(".globl _start\n"
        "_start:\n"
        "	xorl %ebp, %ebp\n"
        "	andq $-16, %rsp\n"
        "	call work\n"
        "	hlt\n");
