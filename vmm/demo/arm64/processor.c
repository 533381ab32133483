// SPDX-License-Identifier: BSD-2-Clause
#include "demo/console.h"
#include "demo/machine.h"

_Noreturn void exception(uint64_t vector);

/* start.S has done it. */
void processor_set_up(unsigned vcpu, void *stack_end)
{
	(void)vcpu;
	(void)stack_end;
}

void exception(uint64_t vector)
{
	uint64_t syndrome, at, address;

	__asm__("mrs %0, esr_el1" : "=r"(syndrome));
	__asm__("mrs %0, elr_el1" : "=r"(at));
	__asm__("mrs %0, far_el1" : "=r"(address));
	console_print("demo: exception ");
	console_print_number(vector, 10);
	console_print(", syndrome ");
	console_print_number(syndrome, 16);
	console_print(" at ");
	console_print_number(at, 16);
	console_print(", address ");
	console_print_number(address, 16);
	console_print("\n");
	machine_fail();
}
