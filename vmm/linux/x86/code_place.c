// SPDX-License-Identifier: BSD-2-Clause
#include "linux/x86/code_place.h"

#include <string.h>

#include "lib/code/x86/instruction.h"

#define CALL_BYTES 5u                             /* CALL rel32 */
#define MODULE_FUNCTION_BYTES (UINT64_C(8) << 10) /* most functions are shorter */

static const struct module_range *module_find(const struct unwind_config *config, uint64_t address)
{
	return config->modules ? module_table_find(config->modules, address) : NULL;
}

bool code_place_find(const struct unwind_config *config, uint64_t address, struct code_place *place)
{
	const uint32_t function = call_sites_function(config->sites, address);

	place->address = address;
	place->module = function == CALL_SITES_NO_FUNCTION ? module_find(config, address) : NULL;
	callee_init(&place->callee, function);
	return function != CALL_SITES_NO_FUNCTION || place->module;
}

/* ---- calls, by their code ---- */

/* Of `n` bytes, all of them. */
static bool is_indirect_call(const uint8_t *code, size_t n)
{
	const size_t at = instruction_opcode(code, n);

	return instruction_length(code, n) == n && at + 1 < n && code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2;
}

enum code_call code_call_of(const uint8_t code[CODE_CALL_BYTES_MAX], uint64_t return_address, uint64_t *target)
{
	int32_t distance;

	memcpy(&distance, code + CODE_CALL_BYTES_MAX - sizeof(distance), sizeof(distance));
	*target = return_address + (uint64_t)(int64_t)distance;
	if (code[CODE_CALL_BYTES_MAX - CALL_BYTES] == 0xe8)
		return CODE_CALL_DIRECT;
	for (size_t n = 2; n <= CODE_CALL_BYTES_MAX; n++)
		if (is_indirect_call(code + CODE_CALL_BYTES_MAX - n, n))
			return CODE_CALL_INDIRECT;
	return CODE_CALL_NONE;
}

/* ---- calls of modules ---- */

/* By the code of a module. */
static enum code_call module_call_read(struct page_walk *memory, uint64_t return_address, uint64_t *target)
{
	uint8_t code[CODE_CALL_BYTES_MAX];

	return page_walk_read_code(memory, (gva_t){return_address - sizeof(code)}, code, sizeof(code))
	               ? code_call_of(code, return_address, target)
	               : CODE_CALL_NONE;
}
/*
 * Where a function of a module begins is not known: a call of what is at or shortly before the callee is one of it, and
 * any other function may jump on, in its module or to where an address of the kernel is in use.
 */
static enum call_link link_in_module(const struct unwind_config *config, const struct code_place *callee,
                                     uint64_t target)
{
	if (!callee->module)
		return call_sites_link_indirect(config->sites, callee->callee.function) != CALL_LINK_NONE
		               ? CALL_LINK_THROUGH
		               : CALL_LINK_NONE;
	if (callee->address - target < MODULE_FUNCTION_BYTES)
		return CALL_LINK_DIRECT;
	return target - callee->module->start < callee->module->bytes ? CALL_LINK_TAIL : CALL_LINK_NONE;
}

static enum call_link link_from_module(const struct unwind_config *config, struct page_walk *memory,
                                       uint64_t return_address, struct code_place *callee)
{
	uint64_t target = 0;

	switch (module_call_read(memory, return_address, &target)) {
	case CODE_CALL_DIRECT:
		if (call_sites_function(config->sites, target) != CALL_SITES_NO_FUNCTION)
			return call_sites_link_of(config->sites, target, &callee->callee);
		if (!module_find(config, target))
			return CALL_LINK_NONE;
		return link_in_module(config, callee, target);
	case CODE_CALL_INDIRECT:
		return callee->module ? CALL_LINK_INDIRECT
		                      : call_sites_link_indirect(config->sites, callee->callee.function);
	default:
		return CALL_LINK_NONE;
	}
}

/* ---- all calls ---- */

enum call_link code_place_link(const struct unwind_config *config, struct page_walk *memory, uint64_t return_address,
                               struct code_place *callee)
{
	if (module_find(config, return_address - 1))
		return link_from_module(config, memory, return_address, callee);
	return call_sites_link(config->sites, return_address, &callee->callee);
}

bool code_place_calls(const struct unwind_config *config, struct page_walk *memory, uint64_t address,
                      const struct code_place *place)
{
	uint64_t target;

	if (!place->module)
		return call_sites_returns_into(config->sites, address, place->callee.function);
	return module_find(config, address - 1) == place->module &&
	       address - place->address + MODULE_FUNCTION_BYTES < 2 * MODULE_FUNCTION_BYTES &&
	       module_call_read(memory, address, &target) != CODE_CALL_NONE;
}
