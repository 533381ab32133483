// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

static const char *const names[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",    "x7",  "x8",
                                    "x9",  "x10", "x11", "x12", "x13", "x14", "x15",   "x16", "x17",
                                    "x18", "x19", "x20", "x21", "x22", "x23", "x24",   "x25", "x26",
                                    "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate"};
_Static_assert(G_N_ELEMENTS(names) == GUEST_GPRS_MAX, "the largest number of names");

static uint64_t value(const struct guest_gprs *gprs, unsigned n)
{
	const uint64_t others[] = {gprs->arm64.sp, gprs->arm64.pc, gprs->arm64.pstate};

	return n < GUEST_GPRS_ARM64_X ? gprs->arm64.x[n] : others[n - GUEST_GPRS_ARM64_X];
}

/* AAPCS64, 6.8.2. */
static uint64_t argument(const struct guest_gprs *gprs, unsigned n)
{
	return gprs->arm64.x[n];
}

static uint64_t result(const struct guest_gprs *gprs)
{
	return gprs->arm64.x[0];
}

static uint64_t stack(const struct guest_gprs *gprs)
{
	return gprs->arm64.sp;
}

const struct processor_gprs gprs_arm64 = {
	.names = names,
	.n = G_N_ELEMENTS(names),
	.all = "x0 to x30, sp, pc and pstate",
	.value = value,
	.argument = argument,
	.result = result,
	.stack = stack,
};
