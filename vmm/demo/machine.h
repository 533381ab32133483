// SPDX-License-Identifier: BSD-2-Clause
/* What the demonstration guest knows of the machine it runs on: PVH start information, ACPI, LAPIC, kvmclock. */
#ifndef VPROF_DEMO_MACHINE_H
#define VPROF_DEMO_MACHINE_H

#include <stdint.h>

#include "demo/demo.h"

/* The decimal number behind `name` on the command line; `otherwise` when absent, 0 or above `limit`. */
uint64_t machine_option(const char *name, uint64_t otherwise, uint64_t limit);

/* TSC ticks in a second, as kvmclock says; without kvmclock it cannot know and answers 10^9. */
uint64_t machine_tsc_hz(void);

struct machine_vcpus {
	unsigned n; /* 1..VCPUS_MAX */
	uint8_t apic_ids[VCPUS_MAX];
};

/* The enabled processors in ACPI's MADT; the calling one alone where there is none. */
void machine_vcpus_find(struct machine_vcpus *found);

/* Starts all but the calling one: INIT and SIPI. */
void machine_vcpus_start(const struct machine_vcpus *found);

_Noreturn void machine_power_off(void);
/* Ends the guest with a status that says failure. */
_Noreturn void machine_fail(void);

#endif
