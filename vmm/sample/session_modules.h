// SPDX-License-Identifier: BSD-2-Clause
/*
 * Symbols of the guest kernel's loadable modules, read from guest memory; after the guest's end, as they were then.
 * Main thread only.
 */
#ifndef VPROF_SAMPLE_SESSION_MODULES_H
#define VPROF_SAMPLE_SESSION_MODULES_H

#include "guest/module.h"
#include "sample/session.h"

struct session_modules;

/* Reads the list of modules. NULL when it cannot be read: SESSION_ERROR_UNSUPPORTED, SESSION_ERROR_STATE. */
struct session_modules *session_modules_read(struct session *session, GError **error);
void session_modules_free(struct session_modules *modules);

/* Texts live as long as the modules. */
struct module_place {
	const char *module;
	const char *symbol;
	uint64_t file_offset; /* of the symbol; same offsets as in the mapping's record */
	uint64_t address, bytes;
};
/* Finds what is at `address` in the guest. False: not in a module, or in one without symbols in the kernel. */
bool session_modules_find(struct session_modules *modules, uint64_t address, struct module_place *place);

/* The symbol that has this address, as long as the modules; NULL, too. */
const struct symbol *session_modules_symbol(struct session_modules *modules, uint64_t address);

/* For the functions of a module by name. They live as long as the modules; NULL behind the last module. */
const struct module *session_modules_get(const struct session_modules *modules, unsigned i);
/* NULL: the guest's kernel keeps none of this module, or it has no code. */
const struct symtab *session_modules_symtab(struct session_modules *modules, unsigned i);
/* Symbols of the modules that were asked for so far, beyond MODULE_SYMBOLS_BYTES_MAX. */
uint64_t session_modules_left_out(const struct session_modules *modules);

#endif
