// SPDX-License-Identifier: BSD-2-Clause
/*
 * Returns of a function: a breakpoint at its entry, and one wherever it returns. A call is known by its stack pointer,
 * which is the same at both, on whichever vCPU they are: as long as the call lasts, no other has it in that address
 * space. A call that never returns, because its task ended or by longjmp(3), leaves its entry behind, until a later
 * call has the same stack pointer or takes the place of the oldest.
 */
#include "lib/record/clock.h"
#include "probe/probe_priv.h"

#define CALLS 1024u                      /* a power of two */
#define CALL_PLACES 8u                   /* where a call may be, from its hash on */
#define MIX UINT64_C(0x9e3779b97f4a7c15) /* 2^64 by the golden ratio */
#define BUSY UINT64_C(1)                 /* no key */

/* [a] claimed by compare-and-swap; only the claimant, and later the one that has this key, uses the rest. */
struct call {
	_Atomic uint64_t key; /* [a] 0: free */
	_Atomic uint64_t entered_ns;
};

struct return_site {
	struct guest_breakpoint breakpoint; /* first: the argument of `hit` */
	struct probe *probe;
};

/* [I] but for the calls and `forgotten`, which is atomic. */
struct probe_returns {
	size_t n;
	struct return_site sites[FUNCTION_RETURNS_MAX];
	struct call calls[CALLS];
	_Atomic uint64_t forgotten;
};

struct probe_returns *probe_returns_new(struct probe *probe, const struct function_returns *returns)
{
	struct probe_returns *self = g_new0(struct probe_returns, 1);

	self->n = returns->n;
	for (size_t i = 0; i < self->n; i++)
		self->sites[i] = (struct return_site){
			.breakpoint = {.at = {returns->at[i]}, .what = probe->spec.name, .hit = probe_event_returned},
			.probe = probe,
		};
	return self;
}

struct guest_breakpoint *probe_returns_breakpoint(struct probe_returns *self, size_t i)
{
	return i < self->n ? &self->sites[i].breakpoint : NULL;
}

void probe_returns_keep(struct probe_returns *self, size_t n)
{
	self->n = n;
}

struct probe *probe_returns_probe(const struct guest_breakpoint *breakpoint)
{
	return ((const struct return_site *)breakpoint)->probe;
}

void probe_returns_reset(struct probe_returns *self)
{
	for (size_t i = 0; i < CALLS; i++)
		atomic_store_explicit(&self->calls[i].key, 0, memory_order_relaxed);
	atomic_store_explicit(&self->forgotten, 0, memory_order_relaxed);
}

uint64_t probe_returns_forgotten(const struct probe_returns *self)
{
	return atomic_load_explicit(&self->forgotten, memory_order_relaxed);
}

/* Neither 0 nor BUSY. Two processes may have the same stack pointer. */
static uint64_t key_of(uint64_t space, uint64_t stack)
{
	return (stack + space * MIX) | 2;
}

static struct call *place_of(struct probe_returns *self, uint64_t key, unsigned i)
{
	const uint64_t hash = (key >> 3) * MIX >> 32;

	return &self->calls[(hash + i) & (CALLS - 1)];
}

/* Release: pairs with the acquire in probe_returns_leave, which then has the time of this entry. */
static bool claim(struct call *call, uint64_t before, uint64_t key)
{
	if (!atomic_compare_exchange_strong_explicit(&call->key, &before, BUSY, memory_order_relaxed,
	                                             memory_order_relaxed))
		return false;
	atomic_store_explicit(&call->entered_ns, clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
	atomic_store_explicit(&call->key, key, memory_order_release);
	return true;
}

void probe_returns_enter(struct probe_returns *self, uint64_t space, uint64_t stack)
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

bool probe_returns_leave(struct probe_returns *self, uint64_t space, uint64_t stack, uint64_t *ns)
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
