// SPDX-License-Identifier: BSD-2-Clause
/* What the files of the recorder share. */
#ifndef VPROF_CLI_RECORD_RECORDER_PRIV_H
#define VPROF_CLI_RECORD_RECORDER_PRIV_H

#include "lib/client/client.h"
#include "lib/profile/histogram.h"
#include "lib/record/writer.h"
#include "lib/symbol/host_symbols.h"
#include "record/recorder.h"
#include "record/recorder_tables.h"

struct recorder;

/* What is recorded: a session of the engine's, or counters. */
struct recorder_source {
	/* Returns the answer to session-start, or what looks like it, and maps the rings. */
	json_t *(*begin)(struct recorder *recorder, GError **error);
	/* Once the file is open; NULL: begin has started it. */
	bool (*start)(struct recorder *recorder, GError **error);
	/* Sets the statistics, and the time. */
	bool (*stop)(struct recorder *recorder, GError **error);
};

extern const struct recorder_source recorder_of_session, recorder_of_counters;

struct recorder {
	struct recorder_config config;
	const struct recorder_source *source;
	char *path;                 /* of the file */
	GError *failure;            /* it could not be written; NULL: it could */
	struct guest_kernel kernel; /* that the guest runs */
	struct host_symbols *host;  /* NULL: without the host's side */
	json_t *statistics;         /* of a session that was ended or paused */
	json_t *session;            /* the answer to session-start; the events' names live in it */
	json_t *time_from;          /* answers of vcpu_clocks_query at the session's start; NULL: the engine has none */
	json_t *time_to;            /* at its end; NULL: not yet */
	json_t *rate;               /* {"frequency-hz": N} or {"period": N}, of the session */
	json_t *phases;
	json_t *marks;
	bool marks_left_out; /* there were too many */
	bool told_mappings;  /* by the agent instead of the engine */
	struct recording_event *events;
	size_t n_events;
	GPtrArray *rings;               /* of struct ring_reader, one for each vCPU */
	GArray *eventfds;               /* of them */
	struct recorder_tables *tables; /* NULL: user space is unwound by frame pointers only */
	struct recording_writer *writer;
	struct names *names;
	struct histogram *frames; /* of all call chains: every address that wants a symbol */
	GArray *guest_symbols;    /* of struct recording_symbol: of modules, asked of the engine; NULL */
	GStringChunk *texts;      /* their names */
	GPtrArray *frames_before; /* struct histogram, of the guest's kernels before the present one */
	GArray *kernel_symbols;   /* of struct recording_symbol: what these kernels had there */
	uint32_t reads;           /* number of the last one of recorder_read_next */
	GArray *made_code;        /* struct vprof_agent_read, the next at the end; NULL: not the end yet */
	uint64_t samples;
	struct record_losses losses;
	uint64_t throttles;
};

/* Adds the rings that `method` returns; steals `arguments`. */
bool recorder_get_rings(struct recorder *recorder, const char *method, json_t *arguments, GError **error);

/* Where the vCPUs' time went in the session, as query-vcpu-time answers. New reference; NULL: the engine does not say.
 */
json_t *recorder_time(const struct recorder *recorder);

/* Writes the mapping of the kernel that runs from time_ns on. */
bool recorder_write_kernel(struct recorder *recorder, uint64_t time_ns, GError **error);

/* Adds the symbols of the present kernel where it was sampled. Samples of its boot were counted for the one before. */
void recorder_kernel_hits(const struct recorder *recorder, GArray *symbols);

/* Where user space has its symbols. */
struct user_symbol_sources recorder_sources(const struct recorder *recorder);

/* Prints the number of samples and the size of the file, and warns of lost ones and of throttling. */
void recorder_say_written(const struct recorder *recorder);

#endif
