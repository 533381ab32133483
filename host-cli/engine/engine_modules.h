// SPDX-License-Identifier: BSD-2-Clause
/* Symbols of the guest kernel's loadable modules that only the guest has. */
#ifndef VPROF_CLI_ENGINE_ENGINE_MODULES_H
#define VPROF_CLI_ENGINE_ENGINE_MODULES_H

#include "lib/client/client.h"
#include "lib/profile/histogram.h"

/* Addresses (uint64_t) in modules. `asked`: those that it has are left out, and the others put in; NULL: none is. */
GArray *module_addresses(const struct histogram *histogram, GHashTable *asked);

/* symbol->address is the symbol's offset in the module's code; its texts are the visitor's to copy. */
typedef void module_symbol_visitor(uint64_t address, const struct recording_symbol *symbol, void *data);

/* Asks the engine for the symbols at addresses in modules; those that have none are not visited. */
bool module_symbols_ask(struct client *client, const GArray *addresses, module_symbol_visitor *visit, void *data,
                        GError **error);

#endif
