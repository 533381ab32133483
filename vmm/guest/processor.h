// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a guest has in a way of its processor. x86/ and arm64/ each have all of it, and both are in every build: what is
 * in the other files of this room, and above it, asks these tables. No lock and no allocation, but where a call says
 * that it loads or finds something.
 */
#ifndef VPROF_GUEST_PROCESSOR_H
#define VPROF_GUEST_PROCESSOR_H

#include "guest/gprs.h"
#include "guest/operand.h"
#include "guest/page_walk.h"
#include "guest/unwind.h"
#include "lib/code/code.h"

struct processor_memory {
	/* page_walk_leaf */
	bool (*leaf)(const struct page_walk *walk, gva_t from, struct page_leaf *leaf);
	/* The address space becomes that of the process with its tables at `root`, with the kernel's part. */
	void (*enter)(struct page_walk *walk, gpa_t root);
	/*
	 * With page table isolation, the tables of user mode lack the kernel: they become those that have it. `linked`:
	 * where the kernel's are linked; 0: not known. False: there are no others.
	 */
	bool (*kernels)(const struct guest *guest, uint64_t linked, struct guest_regs *regs);
	/* page_walk_init_kernel */
	bool (*kernel_open)(gva_t page_tables, struct guest *guest, const struct guest_regs *regs,
	                    struct page_walk *walk);
	/* The kernel's tables, as those of the walk lead to them, in two words, and back. False: they do not. */
	bool (*kernel_store)(struct page_walk *walk, gva_t page_tables, uint64_t words[2]);
	struct guest_tables (*kernel_load)(const uint64_t words[2]);
	/* The address of the top-level table of a process; where it has two, the same by either. */
	uint64_t (*process_root)(const struct guest_tables *tables);
	bool root_is_name; /* users may name a process by that address */
};

struct processor_frames {
	const struct cfi_arch *cfi;
	/* The frame that the vCPU is in, and as far as they are known, the registers of a frame of the kernel. */
	void (*from_registers)(const struct guest_regs *regs, struct frame *frame);
	struct guest_regs (*registers)(const struct frame *frame, const struct page_walk *memory);
	/* unwind_step, in the kernel; in user space, without call frame information */
	enum step (*kernel_step)(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
	                         enum unwind_end *end);
	enum step (*user_step)(const struct user_code *code, struct page_walk *memory, struct frame *frame,
	                       enum unwind_end *end);
	/*
	 * At the first instruction of a function: the ip and the stack pointer become those behind its return.
	 * False: they cannot be read, or a step from there on needs no help.
	 */
	bool (*leave)(struct guest *guest, struct guest_regs *regs);
};

struct processor_gprs {
	const char *const *names;
	unsigned n;
	const char *all; /* guest_gpr_names */
	uint64_t (*value)(const struct guest_gprs *gprs, unsigned n);
	uint64_t (*argument)(const struct guest_gprs *gprs, unsigned n);
	uint64_t (*result)(const struct guest_gprs *gprs);
	uint64_t (*stack)(const struct guest_gprs *gprs);
	/* What follows the size of an operand; one of another form is unknown, or false. NULL: all are unknown. */
	bool (*operand_parse)(const char *text, struct guest_operand *operand);
};

/* What a kind of probes needs, a bit each. */
enum processor_probes {
	PROBES_OF_PORTS = 1u << 0,        /* ports beside the memory */
	PROBES_OF_MSRS = 1u << 1,         /* exits for registers that have a number */
	PROBES_OF_CALL_RETURNS = 1u << 2, /* it is known where a kernel returns from a system call */
	PROBES_OF_TRACE_POINTS = 1u << 3, /* of the kernel */
	PROBES_OF_PROGRAMS = 1u << 4,     /* breakpoints in user space */
};

struct processor {
	enum arch arch;  /* of its images */
	unsigned probes; /* of enum processor_probes */
	const struct processor_memory *memory;
	const struct processor_frames *frames;
	const struct processor_gprs *gprs;
	const struct processor_code *code;
};
extern const struct processor processor_x86, processor_arm64;
extern const struct processor_memory memory_x86, memory_arm64;
extern const struct processor_frames frames_x86, frames_arm64;
extern const struct processor_gprs gprs_x86, gprs_arm64;
bool operand_parse_x86(const char *text, struct guest_operand *operand);

static inline const struct processor *processor_of(enum guest_processor processor)
{
	return processor == GUEST_ARM64 ? &processor_arm64 : &processor_x86;
}

/* That an image is for. */
static inline const struct processor *processor_of_image(const struct image *image)
{
	return image_arch(image) == ARCH_ARM64 ? &processor_arm64 : &processor_x86;
}

#endif
