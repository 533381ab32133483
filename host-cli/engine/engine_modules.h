// SPDX-License-Identifier: BSD-2-Clause
/* Symbols of the guest kernel's loadable modules that only the guest has. */
#ifndef VPROF_CLI_ENGINE_ENGINE_MODULES_H
#define VPROF_CLI_ENGINE_ENGINE_MODULES_H

#include "lib/client/client.h"
#include "lib/profile/histogram.h"

/*
 * The addresses (uint64_t) that are in modules. Those in `asked` are left out, and the others are added to it; NULL:
 * all are returned.
 */
GArray *module_addresses(const struct histogram *histogram, GHashTable *asked);

/* symbol->address is the symbol's offset in the module's code; its strings are valid during the call only. */
typedef void module_symbol_visitor(uint64_t address, const struct recording_symbol *symbol, void *data);

/* Asks the engine for the symbols at addresses in modules; addresses without a symbol are not visited. */
bool module_symbols_ask(struct client *client, const GArray *addresses, module_symbol_visitor *visit, void *data,
                        GError **error);

#endif
