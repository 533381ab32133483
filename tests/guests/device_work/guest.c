// SPDX-License-Identifier: BSD-2-Clause
/* Asks the CMOS clock again and again for ever: most of the time is the hypervisor's, in KVM and in QEMU's device. */
#include "guests/guest.h"

#define CMOS_DATA_PORT 0x71

void read_clock(void);

__attribute__((noinline)) void read_clock(void)
{
	inb(CMOS_DATA_PORT);
}

void guest_main(void)
{
	console_print("device_work: reads port 0x71\n");
	for (;;)
		read_clock();
}
