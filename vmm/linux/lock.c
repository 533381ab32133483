// SPDX-License-Identifier: BSD-2-Clause
#include "linux/lock.h"

#include <string.h>

#include "linux/processor.h"

#define STACK_BYTES UINT64_C(16384) /* THREAD_SIZE, which stacks are aligned to */
#define STACKS_BYTES_MAX (2 * STACK_BYTES)
#define WORDS_MAX 96u
#define WAITERS_MAX 256u            /* that are read for one task, for all words of its stack together */
#define OWNER_FLAGS UINT64_C(7)     /* in the owner's word: MUTEX_FLAGS, RWSEM_OWNER_FLAGS_MASK */
#define OWNER_IS_READER UINT64_C(1) /* RWSEM_READER_OWNED: the last of them, which may have it no more */
#define KERNEL_HALF (UINT64_C(1) << 63)

#define FUTEX_COMMAND 0x7fu
#define FUTEX_WAITS                                                                                                  \
	(1u << 0 | 1u << 6 | 1u << 9 | 1u << 11 | 1u << 13) /* FUTEX_WAIT, LOCK_PI, WAIT_BITSET, ... (linux/futex.h) \
	                                                     */

/* ---- the layout ---- */

static bool type_find(const struct types *types, const char *lock, const char *waiter, struct lock_type *type)
{
	type->first = types_has(types, lock, "first_waiter", 8, &type->list);
	type->known = (type->first || types_has(types, lock, "wait_list", TYPES_PLACE, &type->list)) &&
	              types_has(types, lock, "owner", 8, &type->owner) &&
	              types_has(types, waiter, "list", TYPES_PLACE, &type->waiter_list) &&
	              types_has(types, waiter, "task", 8, &type->waiter_task);
	return type->known;
}

static enum vprof_lock kind_of(const char *function)
{
	static const struct {
		const char *prefix;
		enum vprof_lock kind;
	} functions[] = {
		{"mutex_lock", VPROF_LOCK_MUTEX},    {"__mutex_lock", VPROF_LOCK_MUTEX},
		{"ww_mutex_lock", VPROF_LOCK_MUTEX}, {"__ww_mutex", VPROF_LOCK_MUTEX},
		{"rwsem_down", VPROF_LOCK_RWSEM},    {"down_read", VPROF_LOCK_RWSEM},
		{"down_write", VPROF_LOCK_RWSEM},    {"__down_read", VPROF_LOCK_RWSEM},
		{"__down_write", VPROF_LOCK_RWSEM},  {"futex_wait", VPROF_LOCK_FUTEX},
		{"__futex_wait", VPROF_LOCK_FUTEX},  {"futex_lock_pi", VPROF_LOCK_FUTEX},
		{"do_futex", VPROF_LOCK_FUTEX},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(functions); i++)
		if (g_str_has_prefix(function, functions[i].prefix))
			return functions[i].kind;
	return VPROF_LOCK_UNKNOWN;
}

static void functions_find(struct lock_layout *layout, const struct symtab *symtab)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n && layout->n_functions < LOCK_FUNCTIONS_MAX; i++) {
		const enum vprof_lock kind =
			strchr("tT", symbols[i].type) ? kind_of(symbols[i].name) : VPROF_LOCK_UNKNOWN;

		if (kind != VPROF_LOCK_UNKNOWN && layout->types[kind].known)
			layout->functions[layout->n_functions++] =
				(struct lock_function){symbols[i].address, symbols[i].address + symbols[i].size, kind};
	}
}

bool lock_layout_load(const struct image *image, const struct symtab *symtab, const struct types *types,
                      uint32_t stack_padding, struct lock_layout *layout, GError **error)
{
	const bool has_futexes = linux_processor_of_image(image)->futex_read;
	struct lock_layout loaded = {.stack_padding = stack_padding, .types[VPROF_LOCK_FUTEX].known = has_futexes};
	const struct types_member stack = {"task_struct", "stack", 8, &loaded.task_stack};

	if (!has_futexes) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE, "the locks of waiting tasks are found on x86-64 only");
		return false;
	}
	if (!types_find(types, &stack, 1, error))
		return false;
	type_find(types, "mutex", "mutex_waiter", &loaded.types[VPROF_LOCK_MUTEX]);
	type_find(types, "rw_semaphore", "rwsem_waiter", &loaded.types[VPROF_LOCK_RWSEM]);
	functions_find(&loaded, symtab);
	if (loaded.n_functions == 0) {
		g_set_error(error, TASK_ERROR, TASK_ERROR_NONE,
		            "the kernel has no symbols of functions that wait for locks");
		return false;
	}
	*layout = loaded;
	return true;
}

bool lock_layout_has(const struct lock_layout *layout, enum vprof_lock kind)
{
	for (unsigned i = 0; i < layout->n_functions; i++)
		if (layout->functions[i].kind == kind)
			return true;
	return false;
}

/* ---- a wait ---- */

static bool kernel_read(struct page_walk *walk, uint64_t from, void *to, size_t bytes)
{
	return page_walk_read_kernel(walk, (gva_t){from}, to, bytes);
}

/* The innermost function of a lock that has called something. A return address is behind the call. */
static enum vprof_lock kind_on_stack(const struct lock_layout *layout, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (unsigned f = 0; f < layout->n_functions; f++)
			if (words[i] > layout->functions[f].begin && words[i] <= layout->functions[f].end)
				return layout->functions[f].kind;
	return VPROF_LOCK_UNKNOWN;
}

/* Whether a struct list_head is there that others name as their neighbour. */
static bool is_linked(struct page_walk *walk, uint64_t at, uint64_t *next)
{
	uint64_t links[2], back, forth;

	if (!kernel_read(walk, at, links, sizeof(links)) ||
	    !kernel_read(walk, links[0] + sizeof(back), &back, sizeof(back)) ||
	    !kernel_read(walk, links[1], &forth, sizeof(forth)) || back != at || forth != at)
		return false;
	*next = links[0];
	return true;
}

/* Whether a link of a list is that of another task which waits: on its stack, where a lock is not. */
static bool is_waiter(const struct lock_layout *layout, const struct lock_type *type, struct page_walk *walk,
                      uint64_t link)
{
	uint64_t task, stack;

	return kernel_read(walk, link - type->waiter_list + type->waiter_task, &task, sizeof(task)) &&
	       kernel_read(walk, task + layout->task_stack, &stack, sizeof(stack)) && stack != 0 &&
	       link - stack < STACKS_BYTES_MAX;
}

/* The lock with the list that has this link. */
static bool lock_of_link(const struct lock_layout *layout, const struct lock_type *type, struct page_walk *walk,
                         uint64_t link, unsigned *waiters, uint64_t *lock)
{
	const uint64_t first = link;

	for (; *waiters > 0; (*waiters)--) {
		if (!is_linked(walk, link, &link) || link == first)
			return false;
		if (is_waiter(layout, type, walk, link))
			continue;
		*lock = link - type->list;
		return is_linked(walk, link, &link);
	}
	return false;
}

/* All that wait with this link, by the addresses of their structures; 0: they are not a ring, or too many. */
static size_t ring_read(const struct lock_layout *layout, const struct lock_type *type, struct page_walk *walk,
                        uint64_t first, unsigned *waiters, uint64_t ring[WAITERS_MAX])
{
	uint64_t link = first;
	size_t n = 0;

	for (; *waiters > 0; (*waiters)--) {
		ring[n++] = link - type->waiter_list;
		if (!is_waiter(layout, type, walk, link) || !is_linked(walk, link, &link))
			return 0;
		if (link == first)
			return n;
	}
	return 0;
}

static bool is_in_ring(const uint64_t *ring, size_t n, uint64_t waiter)
{
	for (size_t i = 0; i < n; i++)
		if (ring[i] == waiter)
			return true;
	return false;
}

/* The lock, by its address among these words of a stack: it points to one of the waiters with this link. */
static bool lock_among(const struct lock_layout *layout, const struct lock_type *type, struct page_walk *walk,
                       uint64_t link, const uint64_t *words, size_t n, unsigned *waiters, uint64_t *lock)
{
	uint64_t ring[WAITERS_MAX], first;
	const size_t n_ring = ring_read(layout, type, walk, link, waiters, ring);

	for (size_t i = 0; i < n && n_ring > 0; i++) {
		if (words[i] < KERNEL_HALF || words[i] % sizeof(first) != 0 || is_in_ring(ring, n_ring, words[i]) ||
		    !kernel_read(walk, words[i] + type->list, &first, sizeof(first)) ||
		    !is_in_ring(ring, n_ring, first))
			continue;
		*lock = words[i];
		return true;
	}
	return false;
}

static void owner_find(const struct lock_type *type, struct page_walk *walk, struct os_lock *wait)
{
	uint64_t owner;

	if (!kernel_read(walk, wait->lock + type->owner, &owner, sizeof(owner)) ||
	    (wait->kind == VPROF_LOCK_RWSEM && (owner & OWNER_IS_READER)) || (owner & ~OWNER_FLAGS) < KERNEL_HALF)
		return;
	wait->owner = owner & ~OWNER_FLAGS;
}

/* By the task's own struct mutex_waiter, or rwsem_waiter, which is among these words of its stack. */
static bool waiter_find(const struct lock_layout *layout, struct page_walk *walk, uint64_t task, uint64_t stack_pointer,
                        const uint64_t *words, size_t n, struct os_lock *wait)
{
	const struct lock_type *type = &layout->types[wait->kind];
	unsigned waiters = WAITERS_MAX;

	for (size_t i = 0; i < n; i++) {
		const uint64_t waiter = stack_pointer + i * sizeof(*words) - type->waiter_task,
			       link = waiter + type->waiter_list;

		if (words[i] != task ||
		    !(type->first ? lock_among(layout, type, walk, link, words, n, &waiters, &wait->lock)
		                  : lock_of_link(layout, type, walk, link, &waiters, &wait->lock)))
			continue;
		owner_find(type, walk, wait);
		return true;
	}
	return false;
}

static bool futex_find(const struct lock_layout *layout, struct page_walk *walk, uint64_t stack_pointer,
                       struct os_lock *wait)
{
	const uint64_t regs_end = (stack_pointer | (STACK_BYTES - 1)) + 1 - layout->stack_padding;
	struct os_call call;

	if (!linux_processor_of(walk->tables.processor)->futex_read(walk, regs_end, &call) ||
	    (call.arguments[1] & FUTEX_COMMAND) >= 32 || !(FUTEX_WAITS >> (call.arguments[1] & FUTEX_COMMAND) & 1))
		return false;
	wait->lock = call.arguments[0];
	return true;
}

bool lock_wait_find(const struct lock_layout *layout, struct page_walk *walk, uint64_t task, uint64_t stack_pointer,
                    struct os_lock *wait)
{
	uint64_t words[WORDS_MAX];
	const size_t bytes = MIN(sizeof(words), STACK_BYTES - stack_pointer % STACK_BYTES), n = bytes / sizeof(*words);

	if (stack_pointer % sizeof(*words) != 0 || !kernel_read(walk, stack_pointer, words, n * sizeof(*words)))
		return false;
	struct os_lock found = {.kind = kind_on_stack(layout, words, n)};

	if (found.kind == VPROF_LOCK_UNKNOWN ||
	    !(found.kind == VPROF_LOCK_FUTEX ? futex_find(layout, walk, stack_pointer, &found)
	                                     : waiter_find(layout, walk, task, stack_pointer, words, n, &found)))
		return false;
	*wait = found;
	return true;
}
