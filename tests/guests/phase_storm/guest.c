// SPDX-License-Identifier: BSD-2-Clause
/* Marks phases for ever, as fast as it runs. */
#include "guests/guest.h"

void guest_main(void)
{
	console_print("phase_storm: begins\n");
	for (uint8_t phase = 0;; phase++)
		outb(PHASE_PORT, phase);
}
