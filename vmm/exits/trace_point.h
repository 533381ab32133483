// SPDX-License-Identifier: BSD-2-Clause
/* A trace point as tracefs describes it (Documentation/trace/events.rst). */
#ifndef VPROF_EXITS_TRACE_POINT_H
#define VPROF_EXITS_TRACE_POINT_H

#include <stdbool.h>
#include <stdint.h>

/* The text of its file "format"; NULL with errno when it cannot be read. New string. `name`: "kvm/kvm_exit". */
char *trace_point_format(const char *name);

/* Its number for perf_event_open; false when the text has none. */
bool trace_point_id(const char *format, uint64_t *id);

/* Whether the record has a field of this name at this place. */
bool trace_point_has(const char *format, const char *field, unsigned offset, unsigned bytes);

#endif
