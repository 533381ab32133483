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

/* From r10 to ss of struct pt_regs (arch/x86/include/asm/ptrace.h), which has never changed. */
struct pt_regs {
	uint64_t r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	uint64_t ip, cs, flags, sp, ss;
};
#define PT_REGS_R10 56u

#define USER_CS 0x33u /* of 64 bits */
#define CALL_FUTEX 202u

static bool user_read(struct page_walk *walk, uint64_t at, size_t bytes, struct pt_regs *user, struct guest_call *call)
{
	if (!page_walk_read(walk, (gva_t){at + PT_REGS_R10}, user, bytes))
		return false;
	*call = (struct guest_call){
		user->orig_ax, user->ax, {user->di, user->si, user->dx, user->r10, user->r8, user->r9}};
	return true;
}

static bool call_read(struct page_walk *walk, uint64_t at, struct guest_call *call)
{
	struct pt_regs user;

	return user_read(walk, at, offsetof(struct pt_regs, ip), &user, call);
}

/* A task in a system call has the struct pt_regs of it at the end of its stack. */
static bool futex_read(struct page_walk *walk, uint64_t stack_end, struct guest_call *call)
{
	const uint64_t at = stack_end - PT_REGS_R10 - sizeof(struct pt_regs);
	struct pt_regs user;

	return at >> 63 && user_read(walk, at, sizeof(user), &user, call) && user.cs == USER_CS &&
	       call->number == CALL_FUTEX;
}

const struct processor_gprs gprs_x86 = {
	.names = names,
	.n = G_N_ELEMENTS(names),
	.all = "rax to r15, rip and rflags",
	.value = value,
	.argument = argument,
	.result = result,
	.stack = stack,
	.call_read = call_read,
	.futex_read = futex_read,
	.operand_parse = operand_parse_x86,
};
