// SPDX-License-Identifier: BSD-2-Clause
/* What things are called by time: one has the name that it was given last, in time and not in the order of the file. */
#ifndef VPROF_PROFILE_TIMED_NAMES_H
#define VPROF_PROFILE_TIMED_NAMES_H

#include <stdint.h>

struct timed_names;

struct timed_names *timed_names_new(void);
void timed_names_free(struct timed_names *names);

/* All of them before the first timed_names_find. */
void timed_names_add(struct timed_names *names, uint64_t key, uint64_t time_ns, const char *text);
/* The name of `key` at that time, the same pointer for the same text; NULL before the first. Lives as long as `names`.
 */
const char *timed_names_find(struct timed_names *names, uint64_t key, uint64_t time_ns);
/* Another text that is kept likewise. */
const char *timed_names_keep(struct timed_names *names, const char *text);

#endif
