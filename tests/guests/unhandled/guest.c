// SPDX-License-Identifier: BSD-2-Clause
/* Fetches an instruction where there is no memory: no KVM emulates that. */
#include "guests/guest.h"

#define NO_MEMORY_GPA 0xe0000000

void guest_main(void)
{
	console_print("unhandled: jumping out of memory\n");
	((void (*)(void))NO_MEMORY_GPA)();
}
