// SPDX-License-Identifier: BSD-2-Clause
/*
 * Observing a running guest: breakpoints in its code, its exits, its accesses to ports, memory-mapped devices and MSRs.
 * A second, optional table of calls of a guest (guest->debug).
 *
 * All functions of the table are for the main thread, except registers_read. Callbacks run on the vCPU's thread,
 * outside the guest, and must not block, allocate or log.
 */
#ifndef VPROF_GUEST_GUEST_DEBUG_H
#define VPROF_GUEST_GUEST_DEBUG_H

#include "guest/guest.h"

#define GUEST_ERROR guest_error_quark()
GQuark guest_error_quark(void);
enum guest_error {
	GUEST_ERROR_UNSUPPORTED, /* not possible on this host or for this guest; the message says what is missing */
	GUEST_ERROR_TAKEN,       /* all are in use; the message says by what */
	GUEST_ERROR_ENDED,       /* the guest has ended */
	GUEST_ERROR_SYSTEM,      /* the host refused */
};

/* Breakpoints of a processor: x86-64 has four (SDM vol. 3B, 17.2.1), arm64 up to 16 (ID_AA64DFR0_EL1.BRPs). */
#define GUEST_BREAKPOINT_ADDRESSES_MAX 16u
/* There may be several at one address. */
#define GUEST_BREAKPOINTS_MAX 1024u

/* What stops a vCPU: one of the processor's breakpoints, or another instruction in the place of that one. */
enum guest_breakpoint_kind { GUEST_BREAKPOINT_ANY, GUEST_BREAKPOINT_PROCESSOR, GUEST_BREAKPOINT_PATCH };

/*
 * Embedded by the user, and not changed from breakpoint_add to breakpoint_remove. All at one address have the kind of
 * the first.
 */
struct file_code;
struct guest_breakpoint {
	gva_t at; /* the first byte of an instruction; in any address space */
	/*
	 * Instead: in a page of a file, in every process that executes it, wherever; a patch. It is laid and lifted as
	 * the page comes and goes, and is no more (breakpoint_intact) once the page is to be written. NULL: at `at`.
	 */
	const struct file_code *in_file;
	const char *what;                /* for messages: "function:vfs_read" */
	enum guest_breakpoint_kind kind; /* ANY: a breakpoint of the processor, or a patch if they are all in use */
	bool patched;                    /* by breakpoint_add: what it has become */
	/* A vCPU is about to execute the instruction. Called exactly once each time, on that vCPU. */
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
	uint64_t value;   /* the value written, or the value that the guest reads; of several, the first */
};

#define GUEST_OBSERVERS_MAX 16u

/* Called for every exit of every vCPU after it was handled, with the registers from before. */
struct guest_observer {
	void (*exited)(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
	               const struct guest_regs *regs, const struct guest_gprs *gprs);
};

/* Called for every instruction that a vCPU executes. */
struct guest_stepper {
	/*
	 * The vCPU has executed the instruction at the ip of regs; the registers are those before it. May wait for a
	 * while.
	 */
	void (*stepped)(struct guest_stepper *stepper, unsigned vcpu, const struct guest_regs *regs);
	/* The vCPU has executed code that this host cannot step: user mode on some hosts. */
	void (*ran)(struct guest_stepper *stepper, unsigned vcpu);
};

struct guest_msr_range {
	uint32_t first, last;
	bool read, write;
};
#define GUEST_MSR_RANGES_MAX 8u

struct guest_debug_ops {
	/*
	 * In force on every vCPU when it returns, and on none after an error. GUEST_ERROR_TAKEN: too many addresses.
	 * GUEST_ERROR_UNSUPPORTED: nothing can be patched at that address now.
	 */
	bool (*breakpoint_add)(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error);
	/* How many more addresses breakpoints of the processor can have. */
	size_t (*breakpoints_free)(struct guest *guest);
	/* False when the guest has overwritten a patch, which then does not fire any more. */
	bool (*breakpoint_intact)(struct guest *guest, const struct guest_breakpoint *breakpoint);
	/* When this returns, no call of `hit` is running or will follow. */
	void (*breakpoint_remove)(struct guest *guest, struct guest_breakpoint *breakpoint);
	/* Code that was read at `from`, as the guest has it: puts back what patches have replaced. */
	void (*unpatch)(struct guest *guest, gva_t from, uint8_t *code, size_t n);
	/* The same of bytes that were read in this file, from `offset` on; `mapping`: its struct address_space. */
	void (*unpatch_file)(struct guest *guest, uint64_t mapping, uint64_t offset, uint8_t *code, size_t n);
	/* Why there can be no breakpoints in files on this host: a clause, static; NULL: there can be. */
	const char *(*why_not_in_files)(struct guest *guest);
	/* GUEST_ERROR_TAKEN: there are GUEST_OBSERVERS_MAX. */
	bool (*observer_add)(struct guest *guest, struct guest_observer *observer, GError **error);
	/* As breakpoint_remove. */
	void (*observer_remove)(struct guest *guest, struct guest_observer *observer);
	/* Makes accesses to these MSRs exit, instead of those of the last call; 0..GUEST_MSR_RANGES_MAX of them. */
	bool (*msrs_watch)(struct guest *guest, const struct guest_msr_range *ranges, size_t n, GError **error);
	/*
	 * Steps the guest from now on; NULL ends it. Interrupts are held back, except while the vCPU halts: code of
	 * their handlers is not reported then. On the vCPU's thread.
	 */
	bool (*step)(struct guest *guest, unsigned vcpu, struct guest_stepper *stepper, GError **error);
	/*
	 * The registers with which the vCPU left the guest. On its thread, in a function that run_on_vcpu runs. False
	 * when it has not been in the guest yet.
	 */
	bool (*registers_read)(struct guest *guest, unsigned vcpu, struct guest_regs *regs, struct guest_gprs *gprs);
};

#endif
