// SPDX-License-Identifier: BSD-2-Clause
/* Sleeps for ever: its vCPU takes no host time. */
#include "guests/guest.h"

void guest_main(void)
{
	console_print("halt: asleep\n");
	halt();
}
