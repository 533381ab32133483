// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the demonstration guest knows of the machine it runs on. x86: PVH start information, ACPI, LAPIC, kvmclock;
 * arm64: device tree, PSCI, the generic timer.
 */
#ifndef VPROF_DEMO_MACHINE_H
#define VPROF_DEMO_MACHINE_H

#include <stdint.h>

#include "demo/demo.h"

static inline int text_starts_with(const char *text, const char *start)
{
	for (; *start; text++, start++)
		if (*text != *start)
			return 0;
	return 1;
}

/* NULL: there is none. */
const char *machine_command_line(void);

/* The decimal number behind `name` on the command line; `otherwise` when absent, 0 or above `limit`. */
uint64_t machine_option(const char *name, uint64_t otherwise, uint64_t limit);

/* Ticks in a second of the clock of `spend`: the TSC's, as kvmclock says (without, 10^9); or the generic timer's. */
uint64_t machine_clock_hz(void);

/*
 * Masks the lines of the interrupt controllers (8259A) where there are: the tasks run with IF set, and no device is to
 * interrupt them. Some emulators (Bochs 2.7) hold the host's own interrupts back while a guest has IF clear, and would
 * never leave such a task.
 */
void machine_interrupts_mask(void);

struct machine_vcpus {
	unsigned n;              /* 1..VCPUS_MAX */
	uint32_t ids[VCPUS_MAX]; /* of the APIC; MPIDR_EL1's affinity */
};

/* The enabled processors in ACPI's MADT or the device tree; the calling one alone where there is none. */
void machine_vcpus_find(struct machine_vcpus *found);

/* Starts all but the calling one: INIT and SIPI, or PSCI. */
void machine_vcpus_start(const struct machine_vcpus *found);

/* What a processor needs to run the program and to be called by it. */
void processor_set_up(unsigned vcpu, void *stack_end);

/* Marks a phase. */
void machine_phase(uint8_t phase);

_Noreturn void machine_power_off(void);
/* Ends the guest with a status that says failure. */
_Noreturn void machine_fail(void);

#endif
