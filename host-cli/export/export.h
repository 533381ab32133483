// SPDX-License-Identifier: BSD-2-Clause
/* Profiles in the formats of other tools. Each export_NAME.c defines one struct exporter; export.c lists them. */
#ifndef VPROF_CLI_EXPORT_EXPORT_H
#define VPROF_CLI_EXPORT_EXPORT_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/profile/chain.h"
#include "lib/profile/stacks.h"
#include "reading/input.h"

/* One event of a recording, by stacks. */
struct export_profile {
	struct input *input; /* borrowed; event_number is that of the event in it */
	unsigned event_number;
	const char *waits; /* the event of waits that is in it, too, its frames as PROFILE_WAITING; NULL: none */
	const char *path;  /* of the recording */
	const char *event; /* "task-clock" */
	const char *unit;  /* "nanoseconds", or "count" */
	struct task_stacks *tasks; /* none for an exporter by sample */
	size_t n_tasks;
	uint64_t samples;
	uint64_t period;            /* summed */
	uint64_t first_ns, last_ns; /* of the samples; both 0 without any */
	uint64_t start_unix_ns;     /* the first one's by the wall clock; 0: unknown */
	const GPtrArray *labels; /* of all samples: names and values in turn, for export_otlp; borrowed; NULL: none */
};

struct exporter {
	const char *name;    /* in --to */
	const char *summary; /* the tools that open it */
	bool binary;         /* nothing for a terminal */
	bool by_address;     /* its stacks are of addresses instead of functions */
	bool by_cgroup;      /* its tasks are of one cgroup each */
	bool by_sample;      /* it walks the recording itself (export_samples_*) instead of taking stacks */
	/* A write error stays in the stream; false and *error: another error. */
	bool (*write)(const struct export_profile *profile, FILE *to, GError **error);
};

extern const struct exporter *const exporters[]; /* NULL-terminated */
extern const struct exporter export_buildid_cache, export_csv, export_firefox, export_folded, export_kallsyms,
	export_otlp, export_perf_script, export_perfetto, export_pprof, export_speedscope, export_svg;

/*
 * Where export_buildid_cache writes: a file in perf's cache `folder`, NULL for ~/.debug, which is prepared for it. New
 * string. Errors: G_FILE_ERROR, also if perf has a list of its own there, or the recording has no build-id.
 */
char *export_buildid_cache_path(const struct input *input, const char *folder, GError **error);

/* NULL: no exporter has that name. */
const struct exporter *exporter_find(const char *name);

/* "folded, pprof, ... or svg": all names. New string. */
char *exporter_names(void);

/*
 * Reads the samples of event number `event`, and groups them by call chain if the exporter takes stacks. waits: the
 * number of a second event that goes into the same stacks (input_waits_number); -1: none.
 */
void export_profile_read(struct export_profile *profile, const struct exporter *exporter, struct input *input,
                         unsigned event, int waits);
void export_profile_clear(struct export_profile *profile);

/* The build-id of a frame's module. Recordings have that of the kernel; NULL for others. */
const char *export_build_id(const struct export_profile *profile, const char *module);

/* Every phase of the guest, as far as there are samples, name by name. */
void export_phases_each(const struct export_profile *profile,
                        void (*each)(const char *name, uint64_t begin_ns, uint64_t end_ns, void *data), void *data);

/* Sample by sample, with names, for the formats that keep each one. */
struct export_frame {
	struct place place;
	uint64_t ip; /* of a caller: the last byte of its call instruction */
	enum profile_mode mode;
};

/* The frames of a sample, the innermost first; returns how many, at least 1. */
size_t export_frames(const struct input *input, const struct record_sample *sample,
                     struct export_frame frames[CHAIN_FRAMES_MAX]);

/* frames: the innermost first, n at least 1. False ends the walk. */
typedef bool export_visitor(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                            size_t n, void *data);

/* In the order of the recording: by time for each vCPU, and not across vCPUs. */
void export_samples_each(const struct export_profile *profile, export_visitor *visit, void *data);
/* In the order of time. */
void export_samples_in_time(const struct export_profile *profile, export_visitor *visit, void *data);

/*
 * Writes event number `event`, and the waits of export_profile_read, to `path`, "-" for standard output, through a
 * temporary file beside it, so that no partial file is left. Prints the recording's warnings.
 */
bool export_input(const struct exporter *exporter, struct input *input, unsigned event, int waits, const char *path,
                  GError **error);

#endif
