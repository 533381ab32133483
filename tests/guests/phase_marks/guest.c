// SPDX-License-Identifier: BSD-2-Clause
#include "guests/guest.h"

void guest_main(void)
{
	static const uint8_t phases[] = {0x20, 0x40, 0x60, 0x80};

	for (unsigned i = 0; i < sizeof phases; i++)
		outb(PHASE_PORT, phases[i]);
	power_off();
}
