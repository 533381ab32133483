// SPDX-License-Identifier: BSD-2-Clause
/* Computes for ever. */
#include "guests/guest.h"

void hang_here(void);

__attribute__((noinline)) void hang_here(void)
{
	for (;;)
		cpu_relax();
}

void guest_main(void)
{
	console_print("hang: computing\n");
	hang_here();
}
