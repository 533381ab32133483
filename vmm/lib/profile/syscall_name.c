// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/syscall_name.h"

#include <stddef.h>
#include <string.h>

#define X(number, name) [number] = name,
static const char *const names[SYSCALL_NUMBER_MAX + 1] = {
#include "syscall_table.h"
};
#undef X

const char *syscall_name(uint64_t number)
{
	return number <= SYSCALL_NUMBER_MAX ? names[number] : NULL;
}

bool syscall_number(const char *name, uint32_t *number)
{
	for (uint32_t i = 0; i <= SYSCALL_NUMBER_MAX; i++) {
		if (!names[i] || strcmp(names[i], name) != 0)
			continue;
		*number = i;
		return true;
	}
	return false;
}
