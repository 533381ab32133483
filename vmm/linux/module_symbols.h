// SPDX-License-Identifier: BSD-2-Clause
/* The symbols of a loadable module that the guest's kernel keeps: struct mod_kallsyms, in guest memory. */
#ifndef VPROF_LINUX_MODULE_SYMBOLS_H
#define VPROF_LINUX_MODULE_SYMBOLS_H

#include "lib/symbol/symtab.h"
#include "linux/module.h"

#define MODULE_SYMBOLS_MAX (1u << 16) /* a big graphics driver has 30,000 */
#define MODULE_SYMBOL_NAME_BYTES 512u /* KSYM_NAME_LEN; longer ones are cut */

/*
 * Symbols of the module's code, by address in the guest, as many as fit into bytes_max. NULL when the kernel keeps
 * none, or they cannot be read. Allocates: not for the sampling path.
 */
struct symtab *module_symbols_read(const struct module_layout *layout, struct page_walk *walk,
                                   const struct module *module, uint64_t bytes_max);

#endif
