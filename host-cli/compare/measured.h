// SPDX-License-Identifier: BSD-2-Clause
/*
 * Repetitions of one piece of work, for `diff` and `gate`: from recordings, or from a file of measurements
 * (vprof-measurements(5)), which is small enough for git or a pipeline's cache.
 */
#ifndef VPROF_CLI_COMPARE_MEASURED_H
#define VPROF_CLI_COMPARE_MEASURED_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/profile/measurements.h"

#define MEASURED_ERROR measured_error_quark()
GQuark measured_error_quark(void);
enum measured_error {
	MEASURED_ERROR_FORMAT,       /* neither a recording nor measurements, or damaged */
	MEASURED_ERROR_EMPTY,        /* no samples, no recordings in a folder */
	MEASURED_ERROR_INCOMPARABLE, /* made under other conditions */
};

struct filter_options;

struct measured {
	char *path;
	char *typical; /* the recording to show: it, or that of a folder which took the median time; NULL: measurements
	                */
	mode_t mode;   /* permissions of the file, of several those that all have */
	const struct filter_options *filter; /* of the recordings' samples; borrowed */
	struct measurements *measurements;
	json_t *conditions; /* what must be equal for a comparison to mean something: {"event", "rate", "phase", ...} */
};

/*
 * path: a recording, with the repetitions marked in it, or else as one repetition; a folder, with the repetitions of
 * all its *.data files; or a file of measurements. phase: a pattern (phases.h), and each occurrence of a phase with a
 * matching name is a repetition instead; NULL: none. event: by which recordings are compared; NULL: their first.
 * filter: checked; of recordings, only these samples count. A file of measurements must have been made with the same of
 * each.
 */
struct measured *measured_load(const char *path, const char *phase, const char *event,
                               const struct filter_options *filter, GError **error);
/* A folder of recordings or measurements, which the caller closes. NULL: G_FILE_ERROR. */
GDir *measured_folder_open(const char *path, GError **error);
/* The pattern of the phases that a recording's repetitions are, "repeat-*"; NULL: it has none, and is one itself. */
const char *measured_repetitions(const json_t *description);
void measured_free(struct measured *measured);

/* Whether vprof itself measures a metric of that name; metrics of workloads cannot have it. */
bool measured_is_own(const char *name);

/* Whether both were made under the same conditions; MEASURED_ERROR_INCOMPARABLE says what differs. */
bool measured_comparable(const struct measured *base, const struct measured *now, GError **error);

/* Writes a file of measurements. An existing file is replaced as a whole, and kept on failure. */
bool measured_save(const struct measured *measured, const char *path, GError **error);

#endif
