// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/syscall_name.h"

#include <stddef.h>
#include <string.h>

#define X(number, name) [number] = name,
static const char *const names[SYSCALL_NUMBER_MAX + 1] = {
#include "syscall_table.h"
};
#undef X

/* Later calls, which the headers may not have; they have the same numbers with all processors. */
#define NEWER_FIRST 451u
static const char *const newer[] = {
	"cachestat",        "fchmodat2",      "map_shadow_stack", "futex_wake",        "futex_wait",
	"futex_requeue",    "statmount",      "listmount",        "lsm_get_self_attr", "lsm_set_self_attr",
	"lsm_list_modules", "mseal",          "setxattrat",       "getxattrat",        "listxattrat",
	"removexattrat",    "open_tree_attr", "file_getattr",     "file_setattr",
};

static const char *name_of(uint32_t number)
{
	if (names[number] || number < NEWER_FIRST || number - NEWER_FIRST >= sizeof(newer) / sizeof(newer[0]))
		return names[number];
	return newer[number - NEWER_FIRST];
}

const char *syscall_name(uint64_t number)
{
	return number <= SYSCALL_NUMBER_MAX ? name_of((uint32_t)number) : NULL;
}

bool syscall_number(const char *name, uint32_t *number)
{
	for (uint32_t i = 0; i <= SYSCALL_NUMBER_MAX; i++) {
		if (!name_of(i) || strcmp(name_of(i), name) != 0)
			continue;
		*number = i;
		return true;
	}
	return false;
}
