// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call chains of a guest, walked in its memory from outside.
 *
 * Whatever guest memory contains, a walk makes at most `depth` steps and reads less than 2 KiB in each. No lock and no
 * allocation: it runs on the vCPU's thread between an overflow and the ring.
 */
#ifndef VPROF_GUEST_UNWIND_H
#define VPROF_GUEST_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/frame.h"
#include "guest/guest.h"
#include "guest/module.h"
#include "guest/python.h"
#include "guest/snapshot.h"
#include "guest/user_code.h"
#include "guest/user_text.h"
#include "lib/record/arch.h"

#define UNWIND_DEPTH_MAX VPROF_CALL_DEPTH_MAX
#define UNWIND_DEPTH_DEFAULT 64u

struct symtab;

/* Unwind tables of a kernel, and who calls whom in its text, in the form of its system. */
struct unwind_tables;
struct call_sites;

#define UNWIND_ERROR unwind_error_quark()
GQuark unwind_error_quark(void);
enum unwind_error {
	UNWIND_ERROR_NONE,    /* the image has no unwind tables */
	UNWIND_ERROR_CORRUPT, /* they contradict each other */
	UNWIND_ERROR_VERSION, /* they have an unknown version */
};

/* What the kernel says of a vCPU's stacks: addresses behind their last bytes; 0: not known. */
struct unwind_stacks {
	uint64_t task;      /* of the current task */
	uint64_t interrupt; /* of the vCPU's interrupts; 0: not in use now */
	uint64_t entry;     /* of the vCPU's entries from user space, as long as the task's is not used yet */
	bool in_kernel;     /* no user space, or the kernel's addresses in registers: an entry is from there */
	/* In user mode, instead of these: its stack pointer when it last entered the kernel. */
	uint64_t user;
};

enum unwind_search_result {
	UNWIND_SEARCH_FOUND,
	UNWIND_SEARCH_NONE,      /* no word of the stack leads to a root */
	UNWIND_SEARCH_AMBIGUOUS, /* several do, by different chains */
	UNWIND_SEARCH_SWITCHING, /* in the code that changes from one task's stack to another's */
	UNWIND_SEARCH_NO_TABLE,  /* in code that the tables do not cover: a module, BPF, a return thunk */
	UNWIND_SEARCH_WORK,      /* it took more than UNWIND_SEARCH_STEPS_MAX */
	UNWIND_SEARCH_RESULTS,
};

struct unwind_config;

/*
 * How the kernels of a system are unwound, beyond frame pointers that lead from one function to the next: a capability
 * of a system (guest/os.h). No lock and no allocation, but where it loads.
 */
struct os_unwinding {
	const char *name;       /* of its tables, for messages: "ORC" */
	bool has_tables[ARCHS]; /* its kernels for that processor may have some */
	/* Copies what it needs; the image may be freed. Errors: UNWIND_ERROR. */
	struct unwind_tables *(*load)(const struct image *image, GError **error);
	void (*free)(struct unwind_tables *tables); /* NULL is fine */
	/* unwind_step in the kernel, by config->tables. */
	enum step (*step)(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
	                  enum unwind_end *end);
	/*
	 * By frame pointers: where the frame's leads to no frame, but to the registers that the kernel has saved when
	 * it was entered, the frame becomes what was interrupted, and *step says what unwind_step does. False: it does
	 * not lead there.
	 */
	bool (*entered)(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
	                enum step *step, enum unwind_end *end);
	/* For `search`. The image may be freed. NULL: it is not known where the functions are. */
	struct call_sites *(*sites_load)(const struct image *image, const struct symtab *symtab, GError **error);
	void (*sites_free)(struct call_sites *sites); /* NULL is fine */
	/*
	 * The stack pointer of a vCPU in the kernel, which becomes that of `regs` if it is found; where the tables do
	 * not need it, it stays 0. `config`: with tables and sites. `memory`: has the stacks, as `unwind` reads them.
	 */
	enum unwind_search_result (*search)(const struct unwind_config *config, const struct unwind_stacks *stacks,
	                                    struct page_walk *memory, struct guest_regs *regs);
	/* The same in user space, by the tables of config->code, near stacks->user. */
	enum unwind_search_result (*search_user)(const struct unwind_config *config, const struct unwind_stacks *stacks,
	                                         struct page_walk *memory, struct guest_regs *regs);
};

struct unwind_config {
	const struct os_unwinding
		*system; /* of the guest's system; NULL: the kernel is walked by frame pointers alone */
	const struct unwind_tables *tables; /* kernel frames by these; NULL: by frame pointers */
	/* With tables: for code that the kernel's do not cover, of the thread that unwinds; NULL */
	const struct module_table *modules;
	const struct call_sites *sites; /* with tables: to find stack pointers; NULL */
	bool user;                      /* go on into user space */
	const struct user_code *code;   /* of the process that runs; NULL: user space by frame pointers only */
	struct user_text *text;         /* to find its stack pointer; NULL: its code is read anew */
	unsigned depth;                 /* 1..UNWIND_DEPTH_MAX */
	uint32_t entry_record; /* arm64: where what the kernel saves when it is entered has a frame record; 0: not known
	                        */
	/* Takes each Python frame that goes into a chain, between the native ones; NULL: none does */
	void (*python_found)(const struct python_frame *frame, struct page_walk *memory, void *data);
	void *python_data;
};

#define UNWIND_CHAIN_MAX (2u * UNWIND_DEPTH_MAX) /* with a context word before each frame, at worst */

/*
 * Fills `chain` in perf's form, innermost first: PERF_CONTEXT_KERNEL and the kernel's frames, PERF_CONTEXT_USER and
 * user space's. A caller is given by its return address; an interrupted frame by its instruction, after a context word
 * of its own. Where `code` has no range for what called the kernel and nothing is mapped there, the program is gone and
 * the chain ends in the kernel. Returns the number of words; *end says why there are no more. `snapshot`: memory that
 * goes with `regs`, or NULL while the vCPU is still there.
 */
unsigned unwind(const struct unwind_config *config, struct guest *guest, const struct guest_regs *regs,
                const struct snapshot *snapshot, uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

/*
 * The same from a frame on, as listed_task_frame makes it, by the page tables of `memory`. The frame becomes the last
 * one.
 */
unsigned unwind_from(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                     uint64_t chain[UNWIND_CHAIN_MAX], enum unwind_end *end);

/* One step of that: the frame becomes its caller, or *end says why there is none. */
enum step unwind_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                      enum unwind_end *end);

#endif
