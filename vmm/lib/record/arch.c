// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/arch.h"

#include <elf.h>
#include <glib.h>
#include <string.h>

static const struct {
	const char *name, *uname, *frames;
	uint16_t elf;
	bool said;
} archs[] = {
	[ARCH_UNKNOWN] = {.name = "an unknown architecture", .frames = "frame pointers", .elf = EM_NONE},
	[ARCH_X86_64] = {"x86-64", "x86_64", "frame pointers", EM_X86_64, false},
	[ARCH_ARM64] = {"arm64", "aarch64", "frame records", EM_AARCH64, true},
};

const char *arch_name(enum arch arch)
{
	return archs[arch].name;
}

const char *arch_uname(enum arch arch)
{
	return archs[arch].uname;
}

const char *arch_frames_name(enum arch arch)
{
	return archs[arch].frames;
}

bool arch_is_said(enum arch arch)
{
	return archs[arch].said;
}

enum arch arch_of_uname(const char *name)
{
	for (size_t i = ARCH_UNKNOWN + 1; i < G_N_ELEMENTS(archs); i++)
		if (strcmp(archs[i].uname, name) == 0)
			return (enum arch)i;
	return ARCH_UNKNOWN;
}

enum arch arch_of_elf(uint16_t e_machine)
{
	for (size_t i = ARCH_UNKNOWN + 1; i < G_N_ELEMENTS(archs); i++)
		if (archs[i].elf == e_machine)
			return (enum arch)i;
	return ARCH_UNKNOWN;
}

uint16_t arch_elf(enum arch arch)
{
	return archs[arch].elf;
}

enum arch arch_here(void)
{
#if defined(__x86_64__)
	return ARCH_X86_64;
#elif defined(__aarch64__)
	return ARCH_ARM64;
#else
#error "vprof runs on x86-64 and arm64"
#endif
}
