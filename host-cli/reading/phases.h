// SPDX-License-Identifier: BSD-2-Clause
/*
 * The phases of a recording: what lies between the markers of one name, and what follows a number on port 0x80 up to
 * the next one. A phase may come several times.
 */
#ifndef VPROF_CLI_READING_PHASES_H
#define VPROF_CLI_READING_PHASES_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PHASES_ERROR phases_error_quark()
GQuark phases_error_quark(void);
enum phases_error { PHASES_ERROR_NONE };

/* From begin_ns on, up to end_ns; UINT64_MAX: to the recording's end. */
struct phase_span {
	uint64_t begin_ns, end_ns;
};

/*
 * The spans of all phases with names that match a pattern of * and ?: an array of struct phase_span, sorted, which do
 * not touch. NULL with PHASES_ERROR_NONE, which lists the recording's phases, if no name matches. description:
 * VPROF_FEATURE_DESCRIPTION.
 */
GArray *phases_find(const json_t *description, const char *pattern, GError **error);
bool phases_hold(const GArray *spans, uint64_t time_ns);

/* A name and its spans, as phases_find finds them. */
struct phase_named {
	char *name;
	GArray *spans; /* of struct phase_span */
};
/* Every name, in the order of time: an array of struct phase_named, owned. */
GPtrArray *phases_all(const json_t *description);

/* "boot, repeat-1, repeat-2": the first few names, in the order of time. NULL: there are no phases. New string. */
char *phases_list(const json_t *description);

#endif
