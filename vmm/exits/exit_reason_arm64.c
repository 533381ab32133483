// SPDX-License-Identifier: BSD-2-Clause
/* arm64: the BPF program that tells exits apart is built for x86-64 only, so there is no reason that has a name. */
#include "exits/exit_reason.h"

#include <inttypes.h>
#include <stdio.h>

void exit_reason_name(unsigned isa, uint32_t reason, char name[GUEST_EXIT_NAME_BYTES])
{
	(void)isa;
	snprintf(name, GUEST_EXIT_NAME_BYTES, "0x%" PRIx32, reason);
}

bool exit_reason_is_halt(unsigned isa, uint32_t reason)
{
	(void)isa, (void)reason;
	return false;
}
