// SPDX-License-Identifier: BSD-2-Clause
/* Numbers and durations on the command line. */
#ifndef VPROF_CLI_UI_UNITS_H
#define VPROF_CLI_UI_UNITS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define UNITS_ERROR units_error_quark()
GQuark units_error_quark(void);
enum units_error { UNITS_ERROR_FORMAT, UNITS_ERROR_RANGE };

/* "10", "10s", "2m", "1h": 1..max seconds, and a year at most. `what` names it in the error ("--duration"). */
bool units_parse_duration(const char *what, const char *text, uint64_t max, uint64_t *seconds, GError **error);

/* A decimal number min..max. */
bool units_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *number,
                        GError **error);

/* "512 MiB", "17 KiB", "12 bytes": the largest unit that leaves 1 or more, one decimal unless it is 0. New string. */
char *units_format_bytes(uint64_t bytes);

#endif
