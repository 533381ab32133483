// SPDX-License-Identifier: BSD-2-Clause
#include "guests/guest.h"

void guest_main(void)
{
	console_print("reboot: by the keyboard controller\n");
	outb(I8042_COMMAND_PORT, I8042_RESET);
}
