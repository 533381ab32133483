// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace points of a Linux kernel for x86-64, by the tables of its image (linux/tracepoint.h, linux/jump_label.h):
 * where they are, and how the code at each place loads the arguments.
 *
 * Such a place is a nop, which the kernel turns into a jump while the trace point is in use. The jump leads to a block
 * of code apart from the function's, which loads the arguments and calls __traceiter_EVENT. That block is interpreted
 * with the registers that a vCPU has at the nop, as if the trace point was in use; nothing of it is executed.
 */
#ifndef VPROF_LINUX_TRACEPOINT_H
#define VPROF_LINUX_TRACEPOINT_H

#include "guest/btf.h"
#include "guest/guest_debug.h"
#include "lib/symbol/symtab.h"

#define TRACEPOINT_ERROR tracepoint_error_quark()
GQuark tracepoint_error_quark(void);
enum tracepoint_error {
	TRACEPOINT_ERROR_NONE, /* the kernel has none, or does not say where */
};

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
	uint64_t address;      /* of struct tracepoint */
	uint64_t funcs;        /* of the list of functions to call: NULL while the trace point is not in use */
	uint64_t functions[2]; /* that are called: __SCT__tp_func_EVENT and __traceiter_EVENT; 0: none */
	bool needs_kernel;     /* the kernel does more than to change the nops: they are not reached before */
	GArray *sites;         /* of struct tracepoint_site */
};

struct tracepoint_argument {
	char *name;
	struct btf_value value;
};

/* Of struct tracepoint_argument, empty; the caller unrefs it. */
GArray *tracepoint_arguments_new(void);

struct tracepoints;
/* Everything that is used of the image is copied. About 50 ms and 6 MiB for the kernel of a distribution. */
struct tracepoints *tracepoints_load(const struct image *image, const struct symtab *symtab, GError **error);
void tracepoints_free(struct tracepoints *self); /* NULL is fine */

/* All of them, by name; of struct tracepoint. */
const GPtrArray *tracepoints_all(const struct tracepoints *self);
/* "sched:sched_switch"; NULL. */
const struct tracepoint *tracepoints_find(const struct tracepoints *self, const char *name);
/*
 * The arguments by the kernel's BTF; NULL: those that can be in registers, by number. Of struct
 * tracepoint_argument, at most TRACEPOINT_ARGUMENTS_MAX; the caller unrefs it.
 */
GArray *tracepoint_arguments(const struct tracepoint *tracepoint, const struct btf *btf);
/* Whether they are known at all of its places. */
bool tracepoint_has_arguments(const struct tracepoint *tracepoint);

enum tracepoint_outcome {
	TRACEPOINT_HIT,     /* with arguments */
	TRACEPOINT_PASSED,  /* the kernel would not call: its own condition is not met, or another site tells it */
	TRACEPOINT_UNKNOWN, /* without arguments: the code or the memory could not be read */
};

/*
 * What a vCPU does that is at `ip`: the nop, or behind it or at the block's begin, where a probe has to be there. No
 * lock and no allocation.
 */
enum tracepoint_outcome tracepoint_site_run(const struct tracepoint *tracepoint, const struct tracepoint_site *site,
                                            struct guest *guest, const struct guest_regs *regs,
                                            const struct guest_gprs *gprs, size_t n, uint64_t *arguments);

#endif
