// SPDX-License-Identifier: BSD-2-Clause
/* What stands at an instruction pointer: the symbols a recording brought along, or those of an image. */
#ifndef VPROF_PROFILE_RESOLVER_H
#define VPROF_PROFILE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/profile/mappings.h"
#include "lib/profile/mode.h"
#include "lib/record/reader.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"

#define RESOLVER_REAL_MODE "[real mode]" /* of x86-64: the module of what ran before the kernel had set CR0.PE */

/* The strings are printable (lib/record/text.h) and live as long as the resolver. */
struct place {
	/* "[unknown]" when nothing is known; an exit's name, or the host's function or address, for PROFILE_HYPERVISOR;
	 * "libc.so.6+0x2a1b0" in a file */
	const char *symbol;
	/* "[kernel]", "[user]", "[vmm]", a kernel module's name, a user file's path; "[host]"; RESOLVER_REAL_MODE */
	const char *module;
	uint64_t offset; /* into the symbol */
	bool known;      /* the symbol is one */
};

struct resolver;

/*
 * All that the recording has brought along, or the kernel's symbols of `symtab` (NULL: none) and the others of the
 * recording (NULL: none). What they get is borrowed until resolver_free.
 */
struct resolver *resolver_new_recording(const struct recording *recording);
struct resolver *resolver_new_symtab(const struct symtab *symtab, const struct recording *recording);
void resolver_free(struct resolver *resolver);

/* Symbols of user space that are preferred to the recording's. Borrowed. */
void resolver_set_user(struct resolver *resolver, struct user_symbols *user);

/*
 * What stands at an address of the file that is mapped there (mapped_file.name), from a better source than the file:
 * `symbol`, `offset` bytes before it. Texts are copied.
 */
void resolver_learn(struct resolver *resolver, uint64_t ip, const char *file, const char *symbol, uint64_t offset);

/* `mapping`: of user space, if it is known; NULL. */
void resolver_find(struct resolver *resolver, enum profile_mode mode, uint64_t ip, const struct mapping *mapping,
                   struct place *place);

#endif
