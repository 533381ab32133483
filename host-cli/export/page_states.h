// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each thread did over time, in a recording with waits (--wall, --off-cpu): it ran, or waited in a state. A sample
 * is of the time up to it that its period has.
 */
#ifndef VPROF_CLI_EXPORT_PAGE_STATES_H
#define VPROF_CLI_EXPORT_PAGE_STATES_H

#include <glib.h>
#include <stdint.h>

#include "reading/input.h"

#define PAGE_STATE_SLICES_MAX 512u
#define PAGE_STATE_CELLS_MAX 400000u /* more only if one slice has as many */
#define PAGE_THREADS_SEEN_MAX 16384u /* of further ones nothing is known */
#define PAGE_THREADS_SHOWN_MAX 100u  /* those that ran, or wanted to, for longest */

struct page_thread {
	const char *comm; /* of its last sample; lives in the input's names */
	uint32_t pid, tid;
	uint64_t active_ns; /* it ran, waited for a vCPU, or in a sleep that nothing interrupts */
	uint64_t all_ns;
};

struct page_state_cell {
	uint32_t thread; /* in page_states.threads */
	uint32_t state;  /* profile_state_of; VPROF_TASK_RUNNING: it ran */
	uint64_t slice;  /* since 0 ns, of slice_ns each */
	uint64_t ns;
};

struct page_states_reading;

/* NULL: the recording has no event of waits, or none of time. */
struct page_states_reading *page_states_begin(const struct input *input);
/* from_ns: what is before is left out, whatever the period says. */
void page_states_take(struct page_states_reading *reading, const struct record_sample *sample, unsigned event,
                      uint64_t from_ns);

struct page_states {
	GArray *threads; /* of struct page_thread, the most active first */
	GArray *cells;   /* of struct page_state_cell, by slice, thread, state */
	uint64_t slice_ns;
	uint32_t left_out; /* threads beyond PAGE_THREADS_SHOWN_MAX, as far as they were seen */
};

/* Frees what page_states_begin has made; NULL gives NULL. */
struct page_states *page_states_end(struct page_states_reading *reading);
void page_states_free(struct page_states *states);

#endif
