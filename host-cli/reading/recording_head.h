// SPDX-License-Identifier: BSD-2-Clause
/* What the head of a report says of a recording: the guest, its kernel, how much was lost, how good the chains are. */
#ifndef VPROF_CLI_READING_RECORDING_HEAD_H
#define VPROF_CLI_READING_RECORDING_HEAD_H

#include <stdint.h>
#include <vprof/recording.h>

#include "reading/input.h"

/* Of the samples that were read. */
struct recording_counts {
	uint64_t samples;
	/* Samples by the reason why their call chain ends, in the kernel and in user space; a chain with both counts
	 * twice. */
	uint64_t kernel_chain_ends[VPROF_CHAIN_END_COUNT], user_chain_ends[VPROF_CHAIN_END_COUNT];
	uint64_t first_ns, last_ns; /* both 0 without samples */
};

void recording_counts_take(struct recording_counts *counts, const struct record_sample *sample);

/* "kernel", "release 6.1.0": both printable. A name may come several times. */
typedef void recording_head_line(const char *name, const char *text, void *data);
void recording_head(const struct input *input, const struct recording_counts *counts, recording_head_line *line,
                    void *data);

/* "999 Hz" or "every 100003". New string. */
char *recording_rate_text(const struct input *input, const struct recording_event *event);

/*
 * The period of an event of a PMU whose samples have what was really counted since the one before: those of `vprof run`
 * by a period. Else 0.
 */
uint64_t recording_counted_period(const struct input *input, const struct recording_event *event);

#endif
