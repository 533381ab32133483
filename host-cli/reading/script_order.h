// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples, context switches and totals of tasks in the order of their times. A recording has them ring by ring, so
 * those of several vCPUs are out of order by up to a round of draining. Rounds are marked (PERF_RECORD_FINISHED_ROUND);
 * at most two of them are held back.
 */
#ifndef VPROF_CLI_READING_SCRIPT_ORDER_H
#define VPROF_CLI_READING_SCRIPT_ORDER_H

#include <stdbool.h>

#include "lib/record/record.h"

struct sample_order;

enum script_kind {
	SCRIPT_SAMPLE,
	SCRIPT_SWITCH, /* a context switch: `change` */
	SCRIPT_TOTAL,  /* what an event had counted of a task that has ended: `total` */
};

/* Of those that are no samples, `sample` has no more than time, CPU, pid and tid. A switch is of no event. */
struct script_item {
	enum script_kind kind;
	struct record_sample sample;
	unsigned event;
	struct record_switch change;
	struct record_read total;
};

/*
 * `each` gets the items in order and returns false to stop. Without `with_chains`, their call chains are NULL by then,
 * which costs less. Only samples of waits have their raw data.
 */
struct sample_order *sample_order_new(bool with_chains, bool (*each)(const struct script_item *item, void *data),
                                      void *data);
void sample_order_free(struct sample_order *order);

void sample_order_add(struct sample_order *order, const struct script_item *item);
/* False once `each` has stopped. */
bool sample_order_round(struct sample_order *order);
bool sample_order_finish(struct sample_order *order);

#endif
