// SPDX-License-Identifier: BSD-2-Clause
/* Symbols of the guest kernel's loadable modules that only the guest has. */
#ifndef VPROF_CLI_RUN_MODULES_H
#define VPROF_CLI_RUN_MODULES_H

#include "lib/client/client.h"
#include "lib/profile/histogram.h"

/*
 * Asks the engine for the symbols at the addresses in modules. Of struct recording_symbol, with names in `texts`;
 * empty, and a warning, when they cannot be had.
 */
GArray *module_symbols_ask(struct client *client, const struct histogram *histogram, GStringChunk *texts);

#endif
