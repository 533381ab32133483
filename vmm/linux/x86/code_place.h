// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a frame of a call chain is in a kernel's code, and how calls lead from one place to another. Of the kernel
 * itself, tables say that (call_sites.h). The calls of a module are read in its code, and what its functions are is not
 * known.
 */
#ifndef VPROF_LINUX_X86_CODE_PLACE_H
#define VPROF_LINUX_X86_CODE_PLACE_H

#include "guest/unwind.h"
#include "linux/call_sites.h"

struct code_place {
	uint64_t address;                  /* of an instruction, or in the call before a return address */
	const struct module_range *module; /* NULL: in the kernel itself */
	struct callee callee;              /* the function, which is CALL_SITES_NO_FUNCTION in a module */
};

/* False in code of which neither the kernel nor a module is known to have it. `config`: with sites. */
bool code_place_find(const struct unwind_config *config, uint64_t address, struct code_place *place);

/*
 * How the call before `return_address` leads to `callee`. Code of modules is read in `memory`, not in its snapshot. No
 * lock and no allocation, as below.
 */
enum call_link code_place_link(const struct unwind_config *config, struct page_walk *memory, uint64_t return_address,
                               struct code_place *callee);

/* Whether a call returns to `address` that is made where `place` is: in its function, or near it in its module. */
bool code_place_calls(const struct unwind_config *config, struct page_walk *memory, uint64_t address,
                      const struct code_place *place);

#define CODE_CALL_BYTES_MAX 7u /* by a pointer in a table: opcode, ModRM, SIB, disp32 */
enum code_call { CODE_CALL_NONE, CODE_CALL_DIRECT, CODE_CALL_INDIRECT };

/* What is called by the instruction before an address, of the bytes there; *target: of a direct call. */
enum code_call code_call_of(const uint8_t code[CODE_CALL_BYTES_MAX], uint64_t return_address, uint64_t *target);

#endif
