// SPDX-License-Identifier: BSD-2-Clause
/* Answers every character with its capital, and powers off on 'q'. */
#include "guests/guest.h"

#define LINE_STATUS_DATA_READY 0x01

static char console_get(void)
{
	while (!(inb(COM1_LINE_STATUS) & LINE_STATUS_DATA_READY))
		cpu_relax();
	return (char)inb(COM1);
}

void guest_main(void)
{
	console_print("console_echo: type\n");
	for (;;) {
		const char c = console_get();
		if (c == 'q')
			power_off();
		console_put(c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
	}
}
