// SPDX-License-Identifier: BSD-2-Clause
/*
 * The host's call chain of a sample outside the guest, as perf has walked it. In the kernel that is right. In QEMU perf
 * follows frame pointers, which most distributions build it without: what it then finds are other words of the stack.
 */
#ifndef VPROF_ATTACH_HOST_CHAIN_H
#define VPROF_ATTACH_HOST_CHAIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "counter/route.h"
#include "lib/record/record.h"

struct host_chain;

/* `memory`: of the process, as guest_memory_file has it, which stays open; -1: it may not be read. One thread. */
struct host_chain *host_chain_new(int memory);
void host_chain_free(struct host_chain *chain);

/*
 * Sets host_ip and host_chain of a sample that is neither in the guest nor in one that it runs. Callers in the process
 * end before the first one that is no return address: with code behind a call there. What they point to lives until the
 * next call.
 */
void host_chain_take(struct host_chain *chain, const struct record_sample *record, struct counter_sample *sample);

#define HOST_CHAIN_CALL_BYTES 7u
/* Whether these bytes end in a call instruction (SDM Vol. 2A, CALL: e8, ff /2). */
bool host_chain_is_call(const uint8_t bytes[HOST_CHAIN_CALL_BYTES]);

#endif
