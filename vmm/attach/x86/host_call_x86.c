// SPDX-License-Identifier: BSD-2-Clause
#include "attach/host_chain.h"

/* Of `ff /2` with this second byte: how long it is, by SDM Vol. 2A, table 2-2. */
static unsigned indirect_call_bytes(uint8_t modrm)
{
	unsigned mod = modrm >> 6, rm = modrm & 7;

	if (mod == 3)
		return 2;
	return 2u + (rm == 4 ? 1 : 0) + (mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0);
}

bool host_chain_is_call(const uint8_t bytes[HOST_CHAIN_CALL_BYTES])
{
	if (bytes[HOST_CHAIN_CALL_BYTES - 5] == 0xe8)
		return true;
	for (unsigned n = 2; n <= HOST_CHAIN_CALL_BYTES; n++) {
		const uint8_t *at = bytes + HOST_CHAIN_CALL_BYTES - n;

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2 && indirect_call_bytes(at[1]) == n)
			return true;
	}
	return false;
}
