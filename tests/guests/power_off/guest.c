// SPDX-License-Identifier: BSD-2-Clause
#include "guests/guest.h"

void guest_main(void)
{
	console_print("power_off: by ACPI\n");
	power_off();
}
