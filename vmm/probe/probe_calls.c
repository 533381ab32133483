// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of a function that have not returned. A call is known by its stack pointer, which is the same at the entry and
 * at the return, on whichever vCPU they are: as long as the call lasts, no other has it in that address space. A call
 * that never returns, because its task ended or by longjmp(3), leaves its entry behind, until a later call has the same
 * stack pointer or takes the place of the oldest.
 */
#include "lib/record/clock.h"
#include "probe/placement_priv.h"

#define CALLS 1024u                      /* a power of two */
#define CALL_PLACES 8u                   /* where a call may be, from its hash on */
#define MIX UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */
#define BUSY UINT64_C(1)                 /* no key */

/* [a] claimed by compare-and-swap; only the claimant, and later the one that has this key, uses the rest. */
struct call {
	_Atomic uint64_t key; /* [a] 0: free */
	_Atomic uint64_t entered_ns;
};

struct probe_calls {
	struct call calls[CALLS];
	_Atomic uint64_t forgotten; /* [a] */
};

struct probe_calls *probe_calls_new(void)
{
	return g_new0(struct probe_calls, 1);
}

void probe_calls_free(struct probe_calls *self)
{
	g_free(self);
}

void probe_calls_reset(struct probe_calls *self)
{
	for (size_t i = 0; i < CALLS; i++)
		atomic_store_explicit(&self->calls[i].key, 0, memory_order_relaxed);
	atomic_store_explicit(&self->forgotten, 0, memory_order_relaxed);
}

uint64_t probe_calls_forgotten(const struct probe_calls *self)
{
	return atomic_load_explicit(&self->forgotten, memory_order_relaxed);
}

/* Neither 0 nor BUSY. Two processes may have the same stack pointer. */
static uint64_t key_of(uint64_t space, uint64_t stack)
{
	return (stack + space * MIX) | 2;
}

static struct call *place_of(struct probe_calls *self, uint64_t key, unsigned i)
{
	const uint64_t hash = (key >> 3) * MIX >> 32;

	return &self->calls[(hash + i) & (CALLS - 1)];
}

/* Release: pairs with the acquire in probe_calls_leave, which then has the time of this entry. */
static bool claim(struct call *call, uint64_t before, uint64_t key)
{
	if (!atomic_compare_exchange_strong_explicit(&call->key, &before, BUSY, memory_order_relaxed,
	                                             memory_order_relaxed))
		return false;
	atomic_store_explicit(&call->entered_ns, clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
	atomic_store_explicit(&call->key, key, memory_order_release);
	return true;
}

void probe_calls_enter(struct probe_calls *self, uint64_t space, uint64_t stack)
{
	const uint64_t key = key_of(space, stack);
	struct call *oldest = NULL;

	for (unsigned i = 0; i < CALL_PLACES; i++) {
		struct call *call = place_of(self, key, i);

		if (atomic_load_explicit(&call->key, memory_order_relaxed) == key && claim(call, key, key))
			return;
	}
	for (unsigned i = 0; i < CALL_PLACES; i++) {
		struct call *call = place_of(self, key, i);

		if (claim(call, 0, key))
			return;
		if (!oldest || atomic_load_explicit(&call->entered_ns, memory_order_relaxed) <
		                       atomic_load_explicit(&oldest->entered_ns, memory_order_relaxed))
			oldest = call;
	}
	atomic_fetch_add_explicit(&self->forgotten, 1, memory_order_relaxed);
	const uint64_t before = atomic_load_explicit(&oldest->key, memory_order_relaxed);

	/* If another vCPU takes that place at this moment, it is this call that is forgotten. */
	if (before != BUSY)
		claim(oldest, before, key);
}

bool probe_calls_leave(struct probe_calls *self, uint64_t space, uint64_t stack, uint64_t *ns)
{
	const uint64_t key = key_of(space, stack);

	for (unsigned i = 0; i < CALL_PLACES; i++) {
		struct call *call = place_of(self, key, i);

		if (atomic_load_explicit(&call->key, memory_order_acquire) != key)
			continue;
		*ns = clock_ns(CLOCK_MONOTONIC) - atomic_load_explicit(&call->entered_ns, memory_order_relaxed);
		uint64_t before = key;

		return atomic_compare_exchange_strong_explicit(&call->key, &before, 0, memory_order_relaxed,
		                                               memory_order_relaxed);
	}
	return false;
}
