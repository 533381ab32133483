// SPDX-License-Identifier: BSD-2-Clause
#include "guests/guest.h"

void guest_main(void)
{
	console_print("exit_port: 7\n");
	outb(EXIT_PORT, 7);
}
