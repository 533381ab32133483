// SPDX-License-Identifier: BSD-2-Clause
/* Answers every character with its capital, and powers off on 'q'. */
#include "guests/guest.h"

#define COM1_MODEM_CONTROL (COM1 + 4)
#define MODEM_CONTROL_DTR_RTS 0x03 /* ready to receive */
#define LINE_STATUS_DATA_READY 0x01

static char console_get(void)
{
	while (!(inb(COM1_LINE_STATUS) & LINE_STATUS_DATA_READY))
		cpu_relax();
	return (char)inb(COM1);
}

void guest_main(void)
{
	outb(COM1_MODEM_CONTROL, MODEM_CONTROL_DTR_RTS);
	console_print("console_echo: type\n");
	for (;;) {
		const char c = console_get();

		if (c == 'q')
			power_off();
		console_put(c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
	}
}
