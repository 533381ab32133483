// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads recordings: ours, cut-off ones, and those that perf made. The file is mapped and treated as hostile; only one
 * that shrinks while it is read ends the process (SIGBUS), as with all that is mapped.
 */
#ifndef VPROF_RECORD_READER_H
#define VPROF_RECORD_READER_H

#include <glib.h>
#include <stdbool.h>

#include "lib/record/record.h"
#include "lib/record/writer.h"

/* perf record -e takes as many as there are descriptors; each costs its readers a profile. */
#define RECORDING_EVENTS_MAX 1024u

struct recording;

struct recording *recording_open(const char *path, GError **error);
void recording_free(struct recording *recording);

size_t recording_n_events(const struct recording *recording);
/* Name and attr of event i; ids borrowed. */
const struct recording_event *recording_event(const struct recording *recording, size_t i);
/* Whether its periods are nanoseconds: a clock's. */
bool recording_event_counts_time(const struct recording_event *event);
/* The event a sample belongs to, by its id; 0 when there is only one; -1 for an unknown id. */
int recording_event_of(const struct recording *recording, const struct record_sample *sample);

/* True when the file ends before its header says, or was never finished. */
bool recording_cut_off(const struct recording *recording);
/* A sentence about it, or NULL. */
const char *recording_warning(const struct recording *recording);

/* VPROF_FEATURE_DESCRIPTION as text, HOSTNAME, OSRELEASE, CMDLINE...; NULL when absent. */
const char *recording_description(const struct recording *recording);
const char *recording_hostname(const struct recording *recording);
const char *recording_release(const struct recording *recording);
/* What its samples are of; ARCH_UNKNOWN if it does not say, or names one that this does not know. */
enum arch recording_arch(const struct recording *recording);
const char *const *recording_cmdline(const struct recording *recording);
/* Build-id of the kernel, lower-case hex, or NULL. */
const char *recording_kernel_build_id(const struct recording *recording);

/* The symbol that covers `address`, or NULL. */
const struct recording_symbol *recording_symbol_find(const struct recording *recording, uint64_t address);
/* The same of the host's code. */
const struct recording_symbol *recording_host_symbol_find(const struct recording *recording, uint64_t address);
/* The one that covers byte `offset` of a mapped file, or NULL. */
const struct recording_symbol *recording_user_symbol_find(const struct recording *recording, const char *file,
                                                          uint64_t offset);
size_t recording_n_symbols(const struct recording *recording);

/*
 * Calls `each` for every record in file order; a malformed record ends the walk with RECORDING_ERROR_FORMAT after those
 * before it were delivered. `each` returns false to stop (not an error).
 */
bool recording_each(struct recording *recording,
                    bool (*each)(const struct perf_event_header *record, size_t bytes, void *data), void *data,
                    GError **error);

/* Decodes a PERF_RECORD_SAMPLE with its event's sample_type; *event_index as recording_event_of. */
bool recording_sample(const struct recording *recording, const struct perf_event_header *record, size_t bytes,
                      struct record_sample *sample, int *event_index);

#endif
