// SPDX-License-Identifier: BSD-2-Clause
/* Computes for one of five ticks of a timer, for ever: a guest that is busy and takes little of the host. */
#include "guests/guest.h"
#include "guests/timer.h"

#define TICKS_HZ 50u
#define TICKS_ASLEEP 4u

void guest_main(void)
{
	timer_init(APIC_PERIODIC);
	timer_count(APIC_TICKS / TICKS_HZ);
	for (;;) {
		for (unsigned i = 0; i < TICKS_ASLEEP; i++)
			timer_sleep();
		timer_compute_until(ticks + 1);
	}
}
