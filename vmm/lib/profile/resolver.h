// SPDX-License-Identifier: BSD-2-Clause
/* What stands at an instruction pointer: the symbols a recording brought along, or those of an image. */
#ifndef VPROF_PROFILE_RESOLVER_H
#define VPROF_PROFILE_RESOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/profile/mode.h"
#include "lib/record/reader.h"
#include "lib/symbol/symtab.h"

/* The strings live as long as the resolver. */
struct place {
	const char *symbol; /* "[unknown]" when nothing is known; an exit's name for PROFILE_HYPERVISOR */
	const char *module; /* "[kernel]", "[user]", "[vmm]", or a kernel module's or user file's name */
	uint64_t offset;    /* into the symbol */
	bool known;         /* the symbol is one */
};

struct resolver;

/* Both borrow their argument until resolver_free. */
struct resolver *resolver_new_recording(const struct recording *recording);
struct resolver *resolver_new_symtab(const struct symtab *symtab);
void resolver_free(struct resolver *resolver);

void resolver_find(struct resolver *resolver, enum profile_mode mode, uint64_t ip, struct place *place);

#endif
