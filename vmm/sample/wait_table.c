// SPDX-License-Identifier: BSD-2-Clause
#include "sample/wait_table.h"

#include <glib.h>
#include <stdatomic.h>

#define SLOT_BITS 15u /* as many as tasks that Linux allows by default (PID_MAX_DEFAULT) */
#define SLOTS (1u << SLOT_BITS)
#define SLOTS_TRIED 16u /* that a task may be in: as many, behind the first */
#define SLOT_TAKEN UINT64_C(1)

enum { WAKE_NONE, WAKE_TAKEN, WAKE_KNOWN };

/* [a] atomic */
struct slot {
	_Atomic uint64_t task;  /* [a] the address of its task_struct; 0: free; SLOT_TAKEN: to be written */
	struct wait wait;       /* of the one that has set `task` */
	_Atomic uint32_t woken; /* [a] WAKE_NONE, WAKE_TAKEN: to be written, WAKE_KNOWN */
	struct wake wake;       /* of the one that has set `woken` */
};

struct wait_table {
	struct slot slots[SLOTS];
};

struct wait_table *wait_table_new(void)
{
	return g_new0(struct wait_table, 1);
}

void wait_table_free(struct wait_table *table)
{
	g_free(table);
}

static struct slot *slot_try(struct wait_table *table, uint64_t task, unsigned i)
{
	return &table->slots[((unsigned)(task * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS)) + i) % SLOTS];
}

static struct slot *slot_find(struct wait_table *table, uint64_t task)
{
	for (unsigned i = 0; i < SLOTS_TRIED; i++) {
		struct slot *slot = slot_try(table, task, i);

		/* Pairs with the release in wait_begin. */
		if (atomic_load_explicit(&slot->task, memory_order_acquire) == task)
			return slot;
	}
	return NULL;
}

static struct slot *slot_take(struct wait_table *table, uint64_t task)
{
	for (unsigned i = 0; i < SLOTS_TRIED; i++) {
		struct slot *slot = slot_try(table, task, i);
		uint64_t none = 0;

		/* Acquire: what the last one has read there was read before. Pairs with the release in wait_end. */
		if (atomic_compare_exchange_strong_explicit(&slot->task, &none, SLOT_TAKEN, memory_order_acquire,
		                                            memory_order_relaxed))
			return slot;
	}
	return NULL;
}

bool wait_begin(struct wait_table *table, uint64_t task, const struct wait *wait)
{
	struct slot *slot = slot_find(table, task);
	uint32_t known = WAKE_KNOWN;

	if (!slot)
		slot = slot_take(table, task);
	if (!slot)
		return false;
	slot->wait = *wait;
	/* One that is still being written is of a wait that has ended, and will be taken for this one's. */
	atomic_compare_exchange_strong_explicit(&slot->woken, &known, WAKE_NONE, memory_order_relaxed,
	                                        memory_order_relaxed);
	atomic_store_explicit(&slot->task, task, memory_order_release);
	return true;
}

bool wait_is_open(struct wait_table *table, uint64_t task)
{
	const struct slot *slot = slot_find(table, task);

	return slot && atomic_load_explicit(&slot->woken, memory_order_relaxed) == WAKE_NONE;
}

void wait_woken(struct wait_table *table, uint64_t task, const struct wake *wake)
{
	struct slot *slot = slot_find(table, task);
	uint32_t none = WAKE_NONE;

	if (!slot || !atomic_compare_exchange_strong_explicit(&slot->woken, &none, WAKE_TAKEN, memory_order_acquire,
	                                                      memory_order_relaxed))
		return;
	slot->wake = *wake;
	/* Pairs with the acquire in wait_end. */
	atomic_store_explicit(&slot->woken, WAKE_KNOWN, memory_order_release);
}

bool wait_end(struct wait_table *table, const struct task *task, struct wait *wait, struct wake *wake)
{
	struct slot *slot = slot_find(table, task->address);

	if (!slot)
		return false;
	*wait = slot->wait;
	*wake = atomic_load_explicit(&slot->woken, memory_order_acquire) == WAKE_KNOWN
	                ? slot->wake
	                : (struct wake){.kind = VPROF_WAKER_UNKNOWN};
	atomic_store_explicit(&slot->task, 0, memory_order_release);
	return wait->start_time == task->start_time;
}
