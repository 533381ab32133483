// SPDX-License-Identifier: BSD-2-Clause
/*
 * Samples in the order of their times. A recording has them ring by ring, so those of several vCPUs are out of order by
 * as much as a round of draining; the rounds are marked (PERF_RECORD_FINISHED_ROUND), and hold back no more than two.
 */
#ifndef VPROF_CLI_SCRIPT_ORDER_H
#define VPROF_CLI_SCRIPT_ORDER_H

#include <stdbool.h>

#include "lib/record/record.h"

struct sample_order;

/* `each` gets the samples in order; its call chain pointer is NULL by then. It returns false to stop. */
struct sample_order *sample_order_new(bool (*each)(const struct record_sample *sample, unsigned event, void *data),
                                      void *data);
void sample_order_free(struct sample_order *order);

void sample_order_add(struct sample_order *order, const struct record_sample *sample, unsigned event);
/* False once `each` has stopped. */
bool sample_order_round(struct sample_order *order);
bool sample_order_finish(struct sample_order *order);

#endif
