// SPDX-License-Identifier: BSD-2-Clause
/* Halts for two ticks of a timer, a second each, computes for another, and powers off. */
#include "guests/guest.h"
#include "guests/timer.h"

#define SLEEP_TICKS 2u

static void sleep_until(uint32_t tick)
{
	while (ticks < tick)
		timer_sleep();
}

void guest_main(void)
{
	timer_init(APIC_PERIODIC);
	timer_count(APIC_TICKS);
	sleep_until(SLEEP_TICKS);
	timer_compute_until(SLEEP_TICKS + 1);
	power_off();
}
