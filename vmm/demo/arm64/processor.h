// SPDX-License-Identifier: BSD-2-Clause
/* What the demonstration guest does in a way of its processor; demo/x86 has the same. */
#ifndef VPROF_DEMO_ARM64_PROCESSOR_H
#define VPROF_DEMO_ARM64_PROCESSOR_H

#include "demo/arm64/layout.h"

/* The first UART, a 16550A; the VMM's device tree has it at /serial. */
#define UART_GPA 0xd0000000
#define UART_LINE_STATUS 5
#define LINE_STATUS_THRE 0x20

static inline void cpu_relax(void)
{
	__asm__ volatile("yield" : : : "memory");
}

static inline void console_put(char c)
{
	volatile uint8_t *uart = physical(UART_GPA);

	while (!(uart[UART_LINE_STATUS] & LINE_STATUS_THRE))
		cpu_relax();
	uart[0] = (uint8_t)c;
}

/* For ever. */
static inline _Noreturn void halt(void)
{
	for (;;)
		__asm__ volatile("msr daifset, #15; wfi" : : : "memory");
}

/* The clock of `spend`: the generic timer's virtual count. */
static inline uint64_t clock_read(void)
{
	uint64_t ticks;
	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

/* A system call of the program's (demo.h). */
static inline uint64_t user_call(uint64_t number, uint64_t argument)
{
	register uint64_t x0 __asm__("x0") = argument;
	register uint64_t x8 __asm__("x8") = number;

	__asm__ volatile("svc #0"
	                 : "+r"(x0), "+r"(x8)
	                 :
	                 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
	                   "x16", "x17", "x18", "cc", "memory");
	return x0;
}

#endif
