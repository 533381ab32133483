// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/rdpmc.h"

#include <stdbool.h>
#include <string.h>

static const uint8_t rdpmc[] = {0x0f, 0x33};
static const uint8_t replacement[] = {0xe6, RDPMC_PORT}; /* out %al, $RDPMC_PORT */

/*
 * What follows RDPMC where compilers have written Linux's native_read_pmc() (arch/x86/include/asm/msr.h): RDX, perhaps
 * in another register, is shifted by 32, behind the no-op of a tracepoint that is off, if the kernel has that. More
 * than the two bytes, because these stand in operands, too: 164 times in Debian's 6.1 kernel, once as the instruction.
 */
static bool is_rdpmc(const uint8_t *behind, const uint8_t *end)
{
	static const uint8_t nop2[] = {0x66, 0x90}, nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	if (end - behind >= 2 && memcmp(behind, nop2, sizeof(nop2)) == 0)
		behind += sizeof(nop2);
	else if (end - behind >= 5 && memcmp(behind, nop5, sizeof(nop5)) == 0)
		behind += sizeof(nop5);
	/* mov %rdx, %reg */
	if (end - behind >= 3 && (behind[0] & 0xfe) == 0x48 && behind[1] == 0x89 && (behind[2] & 0xf8) == 0xd0)
		behind += 3;
	/* shl $32, %reg */
	return end - behind >= 4 && (behind[0] & 0xfe) == 0x48 && behind[1] == 0xc1 && (behind[2] & 0xf8) == 0xe0 &&
	       behind[3] == 32;
}

size_t rdpmc_replace(uint8_t *code, size_t bytes)
{
	const uint8_t *end = code + bytes;
	size_t n = 0;

	for (uint8_t *at = code; (at = memmem(at, (size_t)(end - at), rdpmc, sizeof(rdpmc))) != NULL;) {
		uint8_t *behind = at + sizeof(rdpmc);

		if (is_rdpmc(behind, end)) {
			memcpy(at, replacement, sizeof(replacement));
			n++;
		}
		at = behind;
	}
	return n;
}
