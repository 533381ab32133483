// SPDX-License-Identifier: BSD-2-Clause
/*
 * ROUNDS rounds, each of which calls every function below once and makes one access of each kind with the round's
 * number; countdown's first instruction is executed COUNTDOWN times a round. Then it powers off.
 */
#include "guests/guest.h"

#define ROUNDS 100u
#define COUNTDOWN 3u
#define TEST_PORT 0x510u
#define TEST_MMIO UINT64_C(0xd0001000)
#define MSR_IA32_SYSENTER_CS 0x174u

void round_port(unsigned round);
void round_mmio(unsigned round);
void round_msr(unsigned round);
void round_mark(unsigned round);
void countdown(uint64_t n);

__asm__(".type countdown, @function\n"
        "countdown: dec %rdi\n"
        "	jnz countdown\n"
        "	ret\n"
        ".size countdown, . - countdown\n");

__attribute__((noinline)) void round_port(unsigned round)
{
	outb(TEST_PORT, (uint8_t)round);
	inb(TEST_PORT + 1);
}

__attribute__((noinline)) void round_mmio(unsigned round)
{
	volatile uint32_t *at = (volatile uint32_t *)TEST_MMIO;

	at[0] = round;
	(void)at[1];
}

__attribute__((noinline)) void round_msr(unsigned round)
{
	wrmsr(MSR_IA32_SYSENTER_CS, round);
	rdmsr(MSR_IA32_SYSENTER_CS);
}

__attribute__((noinline)) void round_mark(unsigned round)
{
	outb(PHASE_PORT, (uint8_t)round);
}

void guest_main(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		round_port(round);
		round_mmio(round);
		round_msr(round);
		round_mark(round);
		countdown(COUNTDOWN);
	}
	power_off();
}
