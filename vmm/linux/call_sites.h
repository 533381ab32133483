// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who calls whom in a kernel's text: whether a word on a stack can be the return address of a call that has led to a
 * given function. Made once of a kernel's image and its symbols; for a running kernel, of the image that its memory
 * holds (linux/kernel_memory.h), because Linux patches its calls at boot.
 *
 * A function is a range of text that a symbol begins; its part in another section (".cold") belongs to it.
 */
#ifndef VPROF_LINUX_CALL_SITES_H
#define VPROF_LINUX_CALL_SITES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"

#define CALL_SITES_ERROR call_sites_error_quark()
GQuark call_sites_error_quark(void);
enum call_sites_error {
	CALL_SITES_ERROR_NONE, /* no kernel text, or none of its functions has a name */
};

struct call_sites;

#define CALL_SITES_TEXT_BYTES_MAX (UINT64_C(64) << 20) /* a distribution's kernel has 14 to 24 MiB */
#define CALL_SITES_NO_FUNCTION UINT32_MAX

/* How a call leads to a function, from the surest way on. */
enum call_link {
	CALL_LINK_DIRECT,
	CALL_LINK_TAIL,          /* it calls one that jumps there, maybe by way of others */
	CALL_LINK_INDIRECT,      /* by a register or memory, and the address of the function is in use */
	CALL_LINK_INDIRECT_TAIL, /* the same for a function that jumps there */
	CALL_LINK_THROUGH,       /* it calls one that jumps to an address in a register or memory */
	CALL_LINK_NONE,
};

/* The image may be freed afterwards. Takes about 0.3 s and 8 MiB for a distribution's kernel. */
struct call_sites *call_sites_load(const struct image *image, const struct symtab *symtab, GError **error);
void call_sites_free(struct call_sites *sites);

/* The function that covers `address`; CALL_SITES_NO_FUNCTION outside the text. No lock, no allocation, as below. */
uint32_t call_sites_function(const struct call_sites *sites, uint64_t address);

/*
 * A function that is called, and those that jump to it, directly or by way of others: they are looked for once, when it
 * is first asked for. At most CALL_SITES_JUMPS_MAX jumps are followed, to CALL_SITES_JUMPERS_MAX functions.
 */
#define CALL_SITES_JUMPS_MAX 4096u
#define CALL_SITES_JUMPERS_MAX 1024u
#define CALL_SITES_SEEN_BITS 8192u
struct callee {
	uint32_t function; /* CALL_SITES_NO_FUNCTION: one of a module, which can have any address */
	bool has_jumpers;  /* what follows is filled in */
	unsigned n_jumpers;
	uint32_t jumpers[CALL_SITES_JUMPERS_MAX]; /* the nearest first */
	uint64_t seen[CALL_SITES_SEEN_BITS / 64]; /* a bit for each of them, by its number's last bits */
};
void callee_init(struct callee *callee, uint32_t function);

/* How the call before `return_address` leads to it. */
enum call_link call_sites_link(const struct call_sites *sites, uint64_t return_address, struct callee *callee);

/* The same for a call from elsewhere of what begins at `target`, and by a register or memory. */
enum call_link call_sites_link_of(const struct call_sites *sites, uint64_t target, struct callee *callee);
enum call_link call_sites_link_indirect(const struct call_sites *sites, uint32_t function);

/* Whether a call in `function` returns to `address`. */
bool call_sites_returns_into(const struct call_sites *sites, uint64_t address, uint32_t function);

/* Whether the function changes from one task's stack to another's. */
bool call_sites_switches(const struct call_sites *sites, uint32_t function);

/* Whether the function is a return thunk: others jump there to return. */
bool call_sites_returns(const struct call_sites *sites, uint32_t function);

/* Whether `address` is in the text that the kernel frees after its start, but for the first frame of its idle task. */
bool call_sites_is_init(const struct call_sites *sites, uint64_t address);

#endif
