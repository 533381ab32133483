// SPDX-License-Identifier: BSD-2-Clause
#include "guest/processor.h"

static const char *const names[] = {
#define X(name) #name,
	GUEST_GPRS(X)
#undef X
};
_Static_assert(G_N_ELEMENTS(names) <= GUEST_GPRS_MAX, "the largest number of names");

static uint64_t value(const struct guest_gprs *gprs, unsigned n)
{
	const uint64_t values[] = {
#define X(name) gprs->name,
		GUEST_GPRS(X)
#undef X
	};

	return values[n];
}

/* System V ABI for x86-64, 3.2.3. */
static uint64_t argument(const struct guest_gprs *gprs, unsigned n)
{
	const uint64_t arguments[GUEST_GPR_ARGUMENTS] = {gprs->rdi, gprs->rsi, gprs->rdx,
	                                                 gprs->rcx, gprs->r8,  gprs->r9};

	return arguments[n];
}

static uint64_t result(const struct guest_gprs *gprs)
{
	return gprs->rax;
}

static uint64_t stack(const struct guest_gprs *gprs)
{
	return gprs->rsp;
}

const struct processor_gprs gprs_x86 = {
	.names = names,
	.n = G_N_ELEMENTS(names),
	.all = "rax to r15, rip and rflags",
	.value = value,
	.argument = argument,
	.result = result,
	.stack = stack,
	.operand_parse = operand_parse_x86,
};
