// SPDX-License-Identifier: BSD-2-Clause
/* What the demonstration guest does in a way of its processor; demo/arm64 has the same. */
#ifndef VPROF_DEMO_X86_PROCESSOR_H
#define VPROF_DEMO_X86_PROCESSOR_H

#include "demo/x86/x86.h"

#define COM1 0x3f8
#define COM1_LINE_STATUS (COM1 + 5)
#define LINE_STATUS_THRE 0x20

static inline void console_put(char c)
{
	while (!(inb(COM1_LINE_STATUS) & LINE_STATUS_THRE))
		cpu_relax();
	outb(COM1, (uint8_t)c);
}

/* The clock of `spend`. */
static inline uint64_t clock_read(void)
{
	return rdtsc();
}

/* A system call of the program's (demo.h). */
static inline uint64_t user_call(uint64_t number, uint64_t argument)
{
	uint64_t result;

	__asm__ volatile("syscall"
	                 : "=a"(result), "+D"(argument)
	                 : "0"(number)
	                 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
	return result;
}

#endif
