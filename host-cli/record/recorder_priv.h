// SPDX-License-Identifier: BSD-2-Clause
/* What recorder.c, the session and its rings, and recorder_file.c, the file, share. */
#ifndef VPROF_CLI_RECORD_RECORDER_PRIV_H
#define VPROF_CLI_RECORD_RECORDER_PRIV_H

#include "lib/client/client.h"
#include "lib/profile/histogram.h"
#include "lib/record/writer.h"
#include "record/recorder.h"
#include "record/recorder_tables.h"

/* A kernel that the guest ran before, and the addresses that were sampled meanwhile. */
struct kernel_before {
	const struct symtab *symtab; /* NULL: unknown */
	struct histogram *frames;
};

struct recorder {
	struct client *client; /* the engine's */
	json_t *arguments;     /* of session-start */
	json_t *statistics;    /* of the last session, after recorder_pause */
	json_t *session;       /* the answer to session-start; the events' names live in it */
	json_t *time_from;     /* answers of vcpu_clocks_query at the session's start; NULL: the engine has none */
	json_t *time_to;       /* at its end; NULL: not yet */
	json_t *rate;          /* {"frequency-hz": N} or {"period": N}, of the session */
	json_t *phases;
	json_t *marks;
	bool marks_left_out; /* there were too many */
	bool told_mappings;  /* by the agent instead of the engine */
	struct recording_event *events;
	size_t n_events;
	GPtrArray *rings; /* of struct ring_reader, one for each vCPU */
	int *eventfds;
	size_t n_rings;
	struct recorder_tables *tables; /* NULL: user space is unwound by frame pointers only */
	struct recording_writer *writer;
	struct names *names;
	struct histogram *frames; /* of all call chains: every address that wants a symbol */
	GArray *guest_symbols;    /* of struct recording_symbol: of modules, asked of the engine; NULL */
	GStringChunk *texts;      /* their names */
	GArray *kernels;          /* struct kernel_before, of the guest's kernels before the present one */
	uint32_t reads;           /* number of the last one of recorder_read_next */
	GArray *made_code;        /* struct vprof_agent_read, the next at the end; NULL: not the end yet */
	uint64_t samples;
	uint64_t lost;
	uint64_t throttles;
};

/* Writes the mapping of the kernel that runs from time_ns on. */
bool recorder_write_kernel(struct recorder *recorder, const struct image *image, const struct symtab *symtab,
                           uint64_t time_ns, GError **error);

#endif
