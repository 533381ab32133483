// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the records of a recording say about its samples: which file is mapped at an address of a process or of the
 * kernel's modules, the name of a thread, and the path of a cgroup. A record counts from its time on, wherever it
 * stands in the file.
 */
#ifndef VPROF_PROFILE_NAMES_H
#define VPROF_PROFILE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/profile/mappings.h"
#include "lib/profile/mode.h"
#include "lib/record/record.h"

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/*
 * Takes what a record says; other records are ignored. sample_type: of the event with the sample_id fields that the
 * record ends with; a record without a time counts from 0 on. What is found afterwards takes it into account, whatever
 * its time; what was found before stays valid.
 */
void names_take(struct names *names, const struct perf_event_header *record, size_t bytes, uint64_t sample_type);
/* The same for a thread that no record names. */
void names_take_comm(struct names *names, uint32_t tid, uint64_t time_ns, struct untrusted_text comm);

/* Results are printable and live as long as `names`; two equal texts are the same pointer. */

/* The name of a thread at that time. As in perf, a thread without a name is ":TID", and 0 is "swapper". */
const char *names_comm(struct names *names, uint32_t tid, uint64_t time_ns);

/* What ended the wait of a sample: the name of a task, "[interrupt]", "[unknown]"; "[none]": no wait, or nothing did.
 */
const char *names_waker(struct names *names, const struct record_sample *sample);

/* The path of the sample's cgroup at its time; "[unknown]" if no record says it. */
const char *names_cgroup(struct names *names, const struct record_sample *sample);

/* As mappings_find. */
const struct mapping *names_mapping(struct names *names, enum profile_mode mode, uint32_t pid, uint64_t ip,
                                    uint64_t time_ns);

#endif
