// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "attach/host_chain.h"

/* BL; BLR, and BLRAA and the like, which check a signature (Arm ARM, C6.2). */
bool host_chain_is_call(const uint8_t bytes[HOST_CHAIN_CALL_BYTES])
{
	uint32_t word;

	memcpy(&word, bytes + HOST_CHAIN_CALL_BYTES - sizeof(word), sizeof(word));
	return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800;
}
