// SPDX-License-Identifier: BSD-2-Clause
#ifndef SAMPLE_FIGURE_H
#define SAMPLE_FIGURE_H

/*
 * A figure of the statistics: one thread writes it, others read it at any time. With one writer, a load and a store are
 * enough to add; readers want each figure by itself, so every access is relaxed.
 */

#include <stdatomic.h>
#include <stdint.h>

static inline void figure_set(_Atomic uint64_t *figure, uint64_t value)
{
	atomic_store_explicit(figure, value, memory_order_relaxed);
}

static inline void figure_add(_Atomic uint64_t *figure, uint64_t more)
{
	figure_set(figure, atomic_load_explicit(figure, memory_order_relaxed) + more);
}

#endif
