// SPDX-License-Identifier: BSD-2-Clause
/* The first serial port, polled. */
#ifndef VPROF_DEMO_CONSOLE_H
#define VPROF_DEMO_CONSOLE_H

#include "processor.h"

static inline void console_print(const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			console_put('\r');
		console_put(*text);
	}
}

/* `base`: 2 to 16. */
static inline void console_print_number(uint64_t number, unsigned base)
{
	char text[24];
	char *at = text + sizeof text - 1;
	*at = 0;
	do {
		*--at = "0123456789abcdef"[number % base];
		number /= base;
	} while (number != 0);
	console_print(at);
}

#endif
