// SPDX-License-Identifier: BSD-2-Clause
/*
 * Trace points: places in a kernel's code that its authors have named, and what is known there of the arguments. Such a
 * place is a nop, which the kernel turns into a jump while the trace point is in use. The jump leads to a block of code
 * apart from the function's, which loads the arguments. That block is interpreted with the registers that a vCPU has at
 * the nop, as if the trace point was in use; nothing of it is executed.
 */
#ifndef VPROF_GUEST_TRACEPOINT_H
#define VPROF_GUEST_TRACEPOINT_H

#include "guest/btf.h"
#include "guest/guest_debug.h"
#include "lib/symbol/symtab.h"

#define TRACEPOINT_ARGUMENTS_MAX 12u

/* An instruction of a block. */
struct tracepoint_step {
	uint64_t address;
	uint64_t target; /* where a place of the same trace point leads when it is in use; else 0 */
	bool calls;      /* of the trace point's functions: the arguments are loaded */
	bool jumps;      /* does so by a jump, so that the stack has a return address already */
	uint8_t length, code[15];
};

struct tracepoint_site {
	uint64_t nop, behind; /* the nop, and what follows it */
	uint64_t block;       /* where the nop leads when the trace point is in use */
	bool joins;           /* other code leads behind the nop, or may */
	/* By address; empty: the arguments are not loaded in the block alone, and are not known. */
	struct tracepoint_step *steps;
	unsigned n_steps;
};

struct tracepoint {
	char *name;            /* "sched:sched_switch" */
	const char *event;     /* its part behind the colon */
	uint64_t address;      /* of the kernel's own record of it */
	uint64_t funcs;        /* of the list of functions to call: NULL while the trace point is not in use */
	uint64_t functions[2]; /* that are called; 0: none */
	bool needs_kernel;     /* the kernel does more than to change the nops: they are not reached before */
	GArray *sites;         /* of struct tracepoint_site */
};

struct tracepoint_argument {
	char *name;
	struct btf_value value;
};

/* Of struct tracepoint_argument, empty; the caller unrefs it. */
GArray *tracepoint_arguments_new(void);

enum tracepoint_outcome {
	TRACEPOINT_HIT,     /* with arguments */
	TRACEPOINT_PASSED,  /* the kernel would not call: its own condition is not met, or another site tells it */
	TRACEPOINT_UNKNOWN, /* without arguments: the code or the memory could not be read */
};

struct tracepoints;

/* The trace points of a system's kernels: a capability of a system (guest/os.h). */
struct os_tracepoints {
	/* Everything that is used of the image is copied. */
	struct tracepoints *(*load)(const struct image *image, const struct symtab *symtab, GError **error);
	void (*free)(struct tracepoints *self); /* NULL is fine */
	/* All of them, by name; of struct tracepoint. */
	const GPtrArray *(*all)(const struct tracepoints *self);
	/* "sched:sched_switch"; NULL. */
	const struct tracepoint *(*find)(const struct tracepoints *self, const char *name);
	/*
	 * The arguments by the kernel's BTF; NULL: those that can be in registers, by number. Of struct
	 * tracepoint_argument, at most TRACEPOINT_ARGUMENTS_MAX; the caller unrefs it.
	 */
	GArray *(*arguments)(const struct tracepoint *tracepoint, const struct btf *btf);
	/* Whether they are known at all of its places. */
	bool (*has_arguments)(const struct tracepoint *tracepoint);
	/*
	 * What a vCPU does that is at `ip`: the nop, or behind it or at the block's begin, where a probe has to be
	 * there. No lock and no allocation.
	 */
	enum tracepoint_outcome (*run)(const struct tracepoint *tracepoint, const struct tracepoint_site *site,
	                               struct guest *guest, const struct guest_regs *regs,
	                               const struct guest_gprs *gprs, size_t n, uint64_t *arguments);
};

#endif
