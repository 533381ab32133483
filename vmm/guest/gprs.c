// SPDX-License-Identifier: BSD-2-Clause
#include "guest/gprs.h"

#include <string.h>

#include "guest/page_walk.h"

static const char *const x86_names[] = {
#define X(name) #name,
	GUEST_GPRS(X)
#undef X
};

static const char *const arm64_names[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",    "x7",  "x8",
                                          "x9",  "x10", "x11", "x12", "x13", "x14", "x15",   "x16", "x17",
                                          "x18", "x19", "x20", "x21", "x22", "x23", "x24",   "x25", "x26",
                                          "x27", "x28", "x29", "x30", "sp",  "pc",  "pstate"};
_Static_assert(G_N_ELEMENTS(arm64_names) == GUEST_GPRS_MAX && G_N_ELEMENTS(x86_names) <= GUEST_GPRS_MAX,
               "the largest number of names");

const char *guest_gpr_name(enum guest_processor processor, unsigned n)
{
	if (processor == GUEST_ARM64)
		return n < G_N_ELEMENTS(arm64_names) ? arm64_names[n] : NULL;
	return n < G_N_ELEMENTS(x86_names) ? x86_names[n] : NULL;
}

const char *guest_gpr_names(enum guest_processor processor)
{
	return processor == GUEST_ARM64 ? "x0 to x30, sp, pc and pstate" : "rax to r15, rip and rflags";
}

uint64_t guest_gprs_value(const struct guest_gprs *gprs, unsigned n)
{
	const uint64_t x86[] = {
#define X(name) gprs->name,
		GUEST_GPRS(X)
#undef X
	};
	const uint64_t arm64[] = {gprs->arm64.sp, gprs->arm64.pc, gprs->arm64.pstate};

	if (gprs->processor == GUEST_X86_64)
		return n < G_N_ELEMENTS(x86) ? x86[n] : 0;
	if (n < GUEST_GPRS_ARM64_X)
		return gprs->arm64.x[n];
	return n < GUEST_GPRS_MAX ? arm64[n - GUEST_GPRS_ARM64_X] : 0;
}

/* System V ABI for x86-64, 3.2.3; AAPCS64, 6.8.2. */
uint64_t guest_gprs_argument(const struct guest_gprs *gprs, unsigned n)
{
	const uint64_t x86[GUEST_GPR_ARGUMENTS] = {gprs->rdi, gprs->rsi, gprs->rdx, gprs->rcx, gprs->r8, gprs->r9};

	return gprs->processor == GUEST_ARM64 ? gprs->arm64.x[n] : x86[n];
}

uint64_t guest_gprs_result(const struct guest_gprs *gprs)
{
	return gprs->processor == GUEST_ARM64 ? gprs->arm64.x[0] : gprs->rax;
}

uint64_t guest_gprs_stack(const struct guest_gprs *gprs)
{
	return gprs->processor == GUEST_ARM64 ? gprs->arm64.sp : gprs->rsp;
}

/* From r10 to orig_ax of struct pt_regs (arch/x86/include/asm/ptrace.h), which has never changed. */
struct pt_regs_x86 {
	uint64_t r10, r9, r8, ax, cx, dx, si, di, orig_ax;
};
#define PT_REGS_X86_R10 56u

/* The first of struct pt_regs (struct user_pt_regs of arch/arm64/include/uapi/asm/ptrace.h): x0 to x8. */
#define PT_REGS_ARM64_X 9u
#define PT_REGS_ARM64_NUMBER 8u

static bool call_read_x86(struct page_walk *walk, uint64_t at, struct guest_call *call)
{
	struct pt_regs_x86 user;

	if (!page_walk_read(walk, (gva_t){at + PT_REGS_X86_R10}, &user, sizeof(user)))
		return false;
	*call = (struct guest_call){user.orig_ax, user.ax, {user.di, user.si, user.dx, user.r10, user.r8, user.r9}};
	return true;
}

static bool call_read_arm64(struct page_walk *walk, uint64_t at, struct guest_call *call)
{
	uint64_t x[PT_REGS_ARM64_X];

	if (!page_walk_read(walk, (gva_t){at}, x, sizeof(x)))
		return false;
	*call = (struct guest_call){.number = x[PT_REGS_ARM64_NUMBER], .result = x[0]};
	memcpy(call->arguments, x, sizeof(call->arguments));
	return true;
}

/* The argument that is a kernel address. */
bool guest_call_read(struct guest *guest, const struct guest_regs *regs, const struct guest_gprs *gprs,
                     struct guest_call *call)
{
	const uint64_t first = guest_gprs_argument(gprs, 0), at = first >> 63 ? first : guest_gprs_argument(gprs, 1);
	struct page_walk walk;

	page_walk_init_regs(&walk, guest, regs);
	return gprs->processor == GUEST_ARM64 ? call_read_arm64(&walk, at, call) : call_read_x86(&walk, at, call);
}
