// SPDX-License-Identifier: BSD-2-Clause
/* The demonstration guest's kernel: starts the other vCPUs, runs the program on each, ends when all have. */
#include "demo/console.h"
#include "demo/demo.h"
#include "demo/machine.h"
#include "demo/spend.h"

#define PHASE_KERNEL 0x40
#define PHASE_USER 0x60

#define SECONDS_DEFAULT 5u
#define SECONDS_MAX 86400u

/* start.S */
extern uint8_t kernel_stacks[VCPUS_MAX][STACK_BYTES];
_Noreturn void enter_user(uint64_t ip, uint64_t sp, uint64_t slice_ticks, uint64_t run_ticks, uint64_t seed);

static uint8_t user_stacks[VCPUS_MAX][STACK_BYTES] __attribute__((section(".user_stacks"), aligned(16)));
static unsigned vcpus_present; /* written by vCPU 0 before it starts the others, as are the two below */
static uint64_t slice_ticks;
static uint64_t run_ticks;
static unsigned vcpus_done;
static uint64_t user_looks; /* at the clock, by all programs that are done */

_Noreturn void kernel_main(unsigned vcpu);
uint64_t system_call(uint64_t argument, enum system_call number);
void tcp_checksum(uint64_t ticks);
void copy_page(uint64_t ticks);

__attribute__((noinline)) void tcp_checksum(uint64_t ticks)
{
	spend(ticks);
}

__attribute__((noinline)) void copy_page(uint64_t ticks)
{
	spend(ticks);
}

static uint64_t kernel_work(const uint8_t *order)
{
	uint64_t n = 0;

	for (; workload_in_kernel(order[n]); n++) {
		if (order[n] == TCP_CHECKSUM)
			tcp_checksum(slice_ticks);
		else
			copy_page(slice_ticks);
	}
	return n;
}

static _Noreturn void vcpu_done(uint64_t looks)
{
	__atomic_add_fetch(&user_looks, looks, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&vcpus_done, 1, __ATOMIC_ACQ_REL) == vcpus_present) {
		console_print("demo: done, ");
		console_print_number(user_looks, 10);
		console_print(" looks at the clock in user space\n");
		machine_power_off();
	}
	halt();
}

uint64_t system_call(uint64_t argument, enum system_call number)
{
	if (number == SYSTEM_CALL_DONE)
		vcpu_done(argument);
	return kernel_work((const uint8_t *)argument);
}

static void machine_set_up(void)
{
	machine_phase(PHASE_KERNEL);
	machine_interrupts_mask();
	const uint64_t seconds = machine_option("seconds=", SECONDS_DEFAULT, SECONDS_MAX);
	const uint64_t hz = machine_clock_hz();
	slice_ticks = hz / SLICES_A_SECOND;
	run_ticks = hz * seconds;
	struct machine_vcpus found;
	machine_vcpus_find(&found);
	vcpus_present = found.n;
	console_print("demo: ");
	console_print_number(found.n, 10);
	console_print(found.n == 1 ? " vCPU for " : " vCPUs for ");
	console_print_number(seconds, 10);
	console_print(" s: 50 % render_page, 30 % tcp_checksum, 15 % parse_request, 5 % copy_page\n");
	machine_vcpus_start(&found);
	machine_phase(PHASE_USER);
}

void kernel_main(unsigned vcpu)
{
	processor_set_up(vcpu, &kernel_stacks[vcpu + 1]);
	if (vcpu == 0)
		machine_set_up();
	enter_user((uint64_t)user_main, (uint64_t)&user_stacks[vcpu + 1], slice_ticks, run_ticks, vcpu);
}
