// SPDX-License-Identifier: BSD-2-Clause
/* Exits as lines of a trace. Main thread only. */
#ifndef VPROF_SAMPLE_TRACE_EXITS_H
#define VPROF_SAMPLE_TRACE_EXITS_H

#include "sample/session.h"
#include "stream/trace.h"

struct trace_exits;

/* Watches every vCPU; NULL when one has too many watchers, or the guest has ended. */
struct trace_exits *trace_exits_new(struct guest *guest, struct session *session, struct trace *trace);
void trace_exits_free(struct trace_exits *exits);

#endif
