// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of code that was compiled at run time, from the perf maps and jitdumps that the guest has in memory
 * (lib/symbol/perf_map.h): Node's --perf-basic-prof, Java's perf-map-agent, Python's -X perf write the former, Node's
 * --perf-prof, Java's libperf-jvmti and LLVM the latter.
 */
#ifndef VPROF_CLI_RECORD_JIT_SYMBOLS_H
#define VPROF_CLI_RECORD_JIT_SYMBOLS_H

#include <glib.h>

#include "lib/client/client.h"
#include "lib/profile/histogram.h"
#include "lib/record/reader.h"

#define JIT_PROCESSES_MAX 64u
#define JIT_SECONDS_MAX 5u /* that the engine is asked for their files */

/* The processes that were hit in such code, JIT_PROCESSES_MAX at most: uint32_t. By g_array_unref. */
GArray *jit_symbols_processes(const struct histogram *frames);
/*
 * Calls `add` for the function at each address that was hit in such code, with the map's path as its module; `symbol`
 * is valid during the call. A process without either has none.
 */
void jit_symbols_ask(struct client *client, const struct histogram *frames,
                     void (*add)(uint64_t address, const struct recording_symbol *symbol, void *data), void *data);

#endif
