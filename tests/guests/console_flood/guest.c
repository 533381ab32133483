// SPDX-License-Identifier: BSD-2-Clause
/* Most of its time is the VMM's: every character is two exits. */
#include "guests/guest.h"

#define LINES 300

void guest_main(void)
{
	for (unsigned i = 0; i < LINES; i++)
		console_print("console_flood: the quick brown fox jumps over the lazy dog\n");
	power_off();
}
