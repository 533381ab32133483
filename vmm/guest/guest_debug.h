// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looking on while a guest runs: breakpoints in its code, its exits, its accesses to ports, memory-mapped devices and
 * MSRs. A second, optional set of calls of a guest (guest->debug).
 *
 * All functions of the table are the main thread's, but registers_read. Everything that is called back is called on the
 * vCPU's thread, outside the guest, and may neither block, allocate nor log.
 */
#ifndef VPROF_GUEST_GUEST_DEBUG_H
#define VPROF_GUEST_GUEST_DEBUG_H

#include "guest/guest.h"

#define GUEST_ERROR guest_error_quark()
GQuark guest_error_quark(void);
enum guest_error {
	GUEST_ERROR_UNSUPPORTED, /* this host or this guest cannot do it; the message says what is missing */
	GUEST_ERROR_TAKEN,       /* all there are of it are in use; the message says by what */
	GUEST_ERROR_ENDED,       /* the guest has ended */
	GUEST_ERROR_SYSTEM,      /* the host refused */
};

/* The general registers, by the names that a probe's user gives them. */
/* clang-format off */
#define GUEST_GPRS(X)                                       \
	X(rax) X(rbx) X(rcx) X(rdx) X(rsi) X(rdi) X(rsp) X(rbp) \
	X(r8) X(r9) X(r10) X(r11) X(r12) X(r13) X(r14) X(r15) X(rip) X(rflags)
/* clang-format on */

struct guest_gprs {
#define X(name) uint64_t name;
	GUEST_GPRS(X)
#undef X
};

/* x86 has four (SDM vol. 3B, 17.2.1). */
#define GUEST_BREAKPOINT_ADDRESSES_MAX 4u
/* Those who wait at them: several may wait at one address. */
#define GUEST_BREAKPOINTS_MAX 64u

/* What stops a vCPU: one of the processor's breakpoints, or an INT3 in place of the instruction's first byte. */
enum guest_breakpoint_kind { GUEST_BREAKPOINT_ANY, GUEST_BREAKPOINT_PROCESSOR, GUEST_BREAKPOINT_PATCH };

/*
 * Embedded by its user, who leaves it unchanged from breakpoint_add to breakpoint_remove. Those at one
 * address are of the kind of the first.
 */
struct guest_breakpoint {
	gva_t at;                        /* the first byte of an instruction, in whatever address space */
	const char *what;                /* for messages: "function:vfs_read" */
	enum guest_breakpoint_kind kind; /* ANY: the processor's, and a patch if they are taken */
	bool patched;                    /* by breakpoint_add: what it has become */
	/* A vCPU is about to execute the instruction. Each time exactly once, on whichever vCPU. */
	void (*hit)(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
	            const struct guest_gprs *gprs);
};

/* What a vCPU left the guest for. */
struct guest_access {
	uint32_t reason;  /* KVM_EXIT_*, linux/kvm.h; KVM_EXIT_INTR when a signal interrupted it */
	bool write;       /* of a port, an address or an MSR */
	uint8_t bytes;    /* 1, 2, 4 or 8; 0 when the exit is no access */
	uint32_t count;   /* REP INS and OUTS: how many there are of them; else 1 */
	uint64_t address; /* port, guest physical address or MSR number */
	uint64_t value;   /* written, or as the guest gets to read it; of several the first */
};

#define GUEST_OBSERVERS_MAX 16u

/* Sees every exit of every vCPU after it has been handled; the registers are those before. */
struct guest_observer {
	void (*exited)(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
	               const struct guest_regs *regs, const struct guest_gprs *gprs);
};

/* Told of every instruction that a vCPU executes. */
struct guest_stepper {
	/* It has executed the instruction at regs->rip; the registers are those before. May wait, for a while. */
	void (*stepped)(struct guest_stepper *stepper, unsigned vcpu, const struct guest_regs *regs);
	/* It has executed what this host cannot step: CPL 3 on some. */
	void (*ran)(struct guest_stepper *stepper, unsigned vcpu);
};

struct guest_msr_range {
	uint32_t first, last;
	bool read, write;
};
#define GUEST_MSR_RANGES_MAX 8u

struct guest_debug_ops {
	/*
	 * On every vCPU from the return on; on none before that without an error. GUEST_ERROR_TAKEN: it would be one
	 * address too many. GUEST_ERROR_UNSUPPORTED: there is nothing to patch at that address now.
	 */
	bool (*breakpoint_add)(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error);
	/* False when the guest has written over a patch, which fires no more. */
	bool (*breakpoint_intact)(struct guest *guest, const struct guest_breakpoint *breakpoint);
	/* No call of `hit` is under way, nor will there be one, once this has returned. */
	void (*breakpoint_remove)(struct guest *guest, struct guest_breakpoint *breakpoint);
	/* GUEST_ERROR_TAKEN: there are GUEST_OBSERVERS_MAX. */
	bool (*observer_add)(struct guest *guest, struct guest_observer *observer, GError **error);
	/* As breakpoint_remove. */
	void (*observer_remove)(struct guest *guest, struct guest_observer *observer);
	/* Lets accesses to these MSRs exit, in place of those of the last call; 0..GUEST_MSR_RANGES_MAX of them. */
	bool (*msrs_watch)(struct guest *guest, const struct guest_msr_range *ranges, size_t n, GError **error);
	/*
	 * Executes one instruction after the other from now on; with NULL no longer. No interrupt comes in between,
	 * but while the vCPU halts: what its handlers execute then is not told of. On the vCPU's thread.
	 */
	bool (*step)(struct guest *guest, unsigned vcpu, struct guest_stepper *stepper, GError **error);
	/*
	 * Where the vCPU has left the guest. On its thread, between two exits: from a function that run_on_vcpu runs.
	 * False while it has not been in the guest yet.
	 */
	bool (*registers_read)(struct guest *guest, unsigned vcpu, struct guest_regs *regs, struct guest_gprs *gprs);
};

#endif
