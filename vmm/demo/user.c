// SPDX-License-Identifier: BSD-2-Clause
/* The demonstration guest's program: in user mode, one instance on every vCPU. */
#include "demo/demo.h"
#include "demo/spend.h"

/* Out of 20: 50, 30, 15 and 5 % of the time. */
static const uint8_t slices[WORKLOADS] = {
	[RENDER_PAGE] = 10,
	[TCP_CHECKSUM] = 6,
	[PARSE_REQUEST] = 3,
	[COPY_PAGE] = 1,
};

uint64_t render_page(uint64_t ticks);
uint64_t parse_request(uint64_t ticks);

__attribute__((noinline)) uint64_t render_page(uint64_t ticks)
{
	return spend(ticks);
}

__attribute__((noinline)) uint64_t parse_request(uint64_t ticks)
{
	return spend(ticks);
}

/* Knuth's MMIX generator; the high bits are the good ones. */
static unsigned random_below(uint64_t *state, unsigned limit)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(*state >> 33) % limit;
}

static void round_fill(uint8_t order[ROUND_SLICES])
{
	unsigned n = 0;

	for (unsigned workload = 0; workload < WORKLOADS; workload++)
		for (unsigned i = 0; i < slices[workload]; i++)
			order[n++] = (uint8_t)workload;
}

/* Fisher and Yates. No place in a round belongs to a function, so no sampling rate can beat with the rounds. */
static void round_shuffle(uint8_t order[ROUND_SLICES], uint64_t *state)
{
	for (unsigned i = ROUND_SLICES - 1; i > 0; i--) {
		const unsigned j = random_below(state, i + 1);
		const uint8_t other = order[j];

		order[j] = order[i];
		order[i] = other;
	}
}

static __attribute__((noinline)) uint64_t round_run(const uint8_t order[ROUND_SLICES], uint64_t slice_ticks)
{
	uint64_t looks = 0;

	for (unsigned i = 0; i < ROUND_SLICES;) {
		if (workload_in_kernel(order[i])) {
			i += (unsigned)user_call(SYSTEM_CALL_WORK, (uint64_t)&order[i]);
			continue;
		}
		if (order[i++] == RENDER_PAGE)
			looks += render_page(slice_ticks);
		else
			looks += parse_request(slice_ticks);
	}
	return looks;
}

void user_main(uint64_t slice_ticks, uint64_t run_ticks, uint64_t seed)
{
	/* The entry behind the last stops the kernel, which reads up to the first slice that is not its own. */
	uint8_t order[ROUND_SLICES + 1];
	order[ROUND_SLICES] = RENDER_PAGE;
	uint64_t looks = 0;
	round_fill(order);
	for (const uint64_t start = clock_read(); clock_read() - start < run_ticks;) {
		round_shuffle(order, &seed);
		looks += round_run(order, slice_ticks);
	}
	user_call(SYSTEM_CALL_DONE, looks);
	__builtin_unreachable();
}
