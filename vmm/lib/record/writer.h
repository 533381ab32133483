// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a recording (vprof/recording.h). The file is readable at any moment, by perf too: its header tells the size of
 * the records written so far. Feature sections come with recording_writer_finish; their absence says that it never did.
 */
#ifndef VPROF_RECORD_WRITER_H
#define VPROF_RECORD_WRITER_H

#include <glib.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/record/arch.h"

#define RECORDING_ERROR recording_error_quark()
GQuark recording_error_quark(void);
enum recording_error {
	RECORDING_ERROR_IO,        /* open, write, disk full: errno text and path in the message */
	RECORDING_ERROR_FORMAT,    /* not a perf.data file, or one this cannot read */
	RECORDING_ERROR_TRUNCATED, /* ends before its header says */
	RECORDING_ERROR_LIMIT,     /* has more of something than is read; the message says of what, and how many */
};

struct recording_event {
	struct perf_event_attr attr;
	const char *name;
	const uint64_t *ids;
	size_t n_ids;
};

/* A symbol that goes into the file (VPROF_FEATURE_SYMBOLS, VPROF_FEATURE_USER_SYMBOLS). */
struct recording_symbol {
	uint64_t address; /* of user space: offset in the module's file */
	uint64_t size;
	const char *name;
	const char *module; /* "" for the kernel; of user space: a path; of the host: see VPROF_FEATURE_HOST_SYMBOLS */
};

struct recording_writer;

/*
 * The file has its path once its header is written: one that is there becomes PATH.old then (lib/record/output.h). A
 * path that cannot seek (a pipe) is refused: the header is rewritten at the end.
 */
struct recording_writer *recording_writer_open(const char *path, const struct recording_event *events, size_t n_events,
                                               GError **error);

/*
 * One whole record, as it came out of a ring or from an encoder. Buffered. After a failure, which may be of a record
 * before, the file ends behind its last whole record, and every later call fails. A record with an impossible size
 * is refused (RECORDING_ERROR_FORMAT) and changes nothing.
 */
bool recording_writer_record(struct recording_writer *writer, const struct perf_event_header *record, GError **error);

/*
 * All rings have been drained once (PERF_RECORD_FINISHED_ROUND): perf may sort and deliver what came before the round
 * before this one. Writes out what is buffered.
 */
bool recording_writer_round(struct recording_writer *writer, GError **error);

struct recording_features {
	const char *hostname;       /* the guest's name */
	const char *release;        /* guest kernel release; NULL if unknown */
	enum arch arch;             /* the guest's */
	const char *version;        /* of vprof */
	const char *const *cmdline; /* of vprof; NULL-terminated */
	unsigned vcpus;
	uint64_t memory_bytes;
	const uint8_t *kernel_build_id; /* NULL if unknown */
	size_t kernel_build_id_bytes;
	const char *kernel_path;
	const char *description;                /* VPROF_FEATURE_DESCRIPTION, JSON text */
	const struct recording_symbol *symbols; /* sorted by address */
	size_t n_symbols;
	const struct recording_symbol *user_symbols; /* sorted by module, then by address */
	size_t n_user_symbols;
	const struct recording_symbol *host_symbols; /* sorted by address */
	size_t n_host_symbols;
};

/* Writes the feature sections and the final header, and closes. On failure the records are in the file all the same. */
bool recording_writer_finish(struct recording_writer *writer, const struct recording_features *features,
                             GError **error);
void recording_writer_free(struct recording_writer *writer); /* without finish: leaves a readable, cut-off recording */

#endif
