// SPDX-License-Identifier: BSD-2-Clause
/* What the files share that make the recordings of the golden tests. */
#ifndef VPROF_TEST_GOLDEN_MAKE_RECORDINGS_H
#define VPROF_TEST_GOLDEN_MAKE_RECORDINGS_H

#include <glib.h>

#include "lib/record/record.h"
#include "lib/record/writer.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define START_NS UINT64_C(5000000000)
#define SYMBOLS 4u

extern const uint64_t clock_ids[2];
extern const struct recording_symbol symbols[SYMBOLS];

/* Ends the program with the error unless `done`. */
void must(bool done, GError *error);
struct recording_event event_make(const char *name, uint32_t type, uint64_t config, const uint64_t *ids);
void sample_write(struct recording_writer *writer, const struct record_sample *sample);
struct recording_features features_make(const struct recording_symbol *table, size_t n);
struct recording_writer *writer_open(const char *path, const struct recording_event *events, size_t n);
void writer_finish(struct recording_writer *writer, const struct recording_features *features);
void comm_write(struct recording_writer *writer, uint32_t tid, uint64_t time_ns, const char *comm);

/* The kernel's mapping, with its code at `text`. */
void kernel_mapping_write(struct recording_writer *writer, uint64_t text);

void tasks_make(const char *path);
void cgroups_make(const char *path);
void switches_make(const char *path);
void names_make(const char *path);
void waits_make(const char *path);
void locks_make(const char *path);
void arm64_make(const char *path, const char *kernel);
/* Its samples have periods of their own: some overflows came late. */
void late_make(const char *path);

#endif
