// SPDX-License-Identifier: BSD-2-Clause
#include "demo/machine.h"

static uint64_t decimal(const char *text)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return number;
}

uint64_t machine_option(const char *name, uint64_t otherwise, uint64_t limit)
{
	const char *line = machine_command_line();
	unsigned name_length = 0;

	while (name[name_length])
		name_length++;
	for (const char *at = line; at && *at; at++) {
		if ((at != line && at[-1] != ' ') || !text_starts_with(at, name))
			continue;
		const uint64_t number = decimal(at + name_length);
		if (number > 0 && number <= limit)
			return number;
	}
	return otherwise;
}
