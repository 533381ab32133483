// SPDX-License-Identifier: BSD-2-Clause
/* What Linux prints when it panics, and then nothing. */
#include "guests/guest.h"

void guest_main(void)
{
	console_print("Kernel panic - not syncing: a test\n"
	              "---[ end Kernel panic - not syncing: a test ]---\n");
	halt();
}
