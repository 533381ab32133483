// SPDX-License-Identifier: BSD-2-Clause
/* Guests of other processes: list, examine, count, and record several side by side. */
#ifndef VPROF_CLI_ATTACH_ATTACH_H
#define VPROF_CLI_ATTACH_ATTACH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/attach_engine.h"

/* `vprof attach --list`. Returns the exit status. */
int attach_list(const struct attach_engine_options *options, bool json);

/* `vprof doctor` of the guest `domain`, or of that in `options`; after attach_engine_check. Returns the exit status. */
int attach_doctor(const struct attach_engine_options *options, const char *domain, bool json);

/* What `vprof stat` prints. */
struct stat_output {
	bool json, mmio, ioport;
	int vcpu;            /* exits of this one; -1: of all */
	uint64_t interval_s; /* 0: once */
};

/* `vprof stat` of such a guest. Returns the exit status. */
int attach_stat(const struct attach_engine_options *options, const char *domain, uint64_t duration_s,
                const struct stat_output *output);
/*
 * What `vprof stat` prints, also of a guest that it has booted. `from` and `answers`: of vcpu_clocks_query, at the
 * begin (NULL: the guest's) and the end of the time; `events`: as of counters_for_all, or NULL; `end`: as in
 * guest-ended, or NULL.
 */
void stat_print(const struct stat_output *output, const json_t *from, const json_t *answers, json_t *events,
                json_t *end, FILE *to);

/* Records one guest (guest_list.h) to its end, into `output`; returns the exit status. In a process of its own. */
typedef int (*attach_one)(const json_t *guest, const char *output, void *data);

/*
 * Records all of `guests`, an array, at once, into NAME.data in `folder` (NULL: the current one), and prints their
 * profiles one after the other if `report`. Returns the worst exit status. No thread may run yet.
 */
int attach_several(const json_t *guests, const char *folder, bool report, attach_one one, void *data);

#endif
