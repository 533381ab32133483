// SPDX-License-Identifier: BSD-2-Clause
/* What the page knows of one event of a recording: samples by call chain, vCPU, task and phases, and by time. */
#ifndef VPROF_CLI_EXPORT_PAGE_PROFILE_H
#define VPROF_CLI_EXPORT_PAGE_PROFILE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#include "export/page_states.h"
#include "lib/profile/call_tree.h"
#include "lib/profile/timeline.h"
#include "reading/input.h"
#include "reading/phases.h"
#include "reading/recording_head.h"

#define PAGE_PHASES_MAX 256u /* the phases of further names are not told apart */

#define PAGE_ROW_SLICES_MAX 256u
#define PAGE_ROWS_MAX 400000u /* more only if one slice has as many */

/* Samples that agree in all of these. */
struct page_row {
	uint32_t node; /* in the call tree */
	uint32_t cpu;
	uint32_t task;      /* in page_recording.tasks */
	uint32_t phase_set; /* in page_recording.phase_sets */
	uint32_t state;     /* profile_state_of */
	const char *waker;  /* of a wait, as names_waker has it; "": not told */
	uint64_t slice;     /* of time since 0 ns, of page_profile.row_slice_ns each */
	uint64_t samples;
	uint64_t period;
};

struct page_profile {
	const struct recording_event *event;
	const struct recording_event *waits; /* that are in it, too, as PROFILE_WAITING; NULL: none */
	struct call_node *nodes;
	size_t n_nodes;
	struct page_row *rows; /* by node, vCPU, task, phases, state, slice */
	size_t n_rows;
	uint64_t row_slice_ns;
	struct timeline_cell *cells;
	size_t n_cells;
	uint64_t slice_ns;
	uint64_t samples, period;
};

struct page_task {
	const char *comm, *cgroup; /* live in the input's names */
	uint32_t pid;
};

/* Of which phases, as bits: one name each. */
struct page_phase_set {
	uint64_t bits[PAGE_PHASES_MAX / 64];
};

struct page_recording {
	struct input *input; /* borrowed */
	GArray *tasks;       /* of struct page_task, in the order in which they were seen */
	GPtrArray *phases;   /* of struct phase_named */
	GArray *phase_sets;  /* of struct page_phase_set; the first is empty */
	struct page_profile *profiles;
	size_t n_profiles;
	struct recording_counts counts;
	struct page_states *states; /* NULL: no waits */
};

struct page_recording *page_recording_read(struct input *input);
void page_recording_free(struct page_recording *recording);

#endif
