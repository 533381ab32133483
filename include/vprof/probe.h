// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events of probes, as the rings of probe-rings hold them: PERF_RECORD_SAMPLE with the id of the probe, and
 * PERF_RECORD_COMM for the tasks' names and PERF_RECORD_LOST for what was dropped.
 *
 * The raw data is an array of 64-bit numbers, unaligned: the probe's arguments, then the registers asked for, in the
 * order in which probe-add named them. If the probe has fields besides, a number follows with bit i set if the i-th of
 * them could be read, and then each of them: 64 bits, or, if it is a text, VPROF_PROBE_TEXT_BYTES with zeros behind its
 * end. An event of a trace point has no raw data if its arguments are not known. The call chain has no frames unless it
 * was asked for. Times are CLOCK_MONOTONIC of the host.
 */
#ifndef VPROF_PROBE_H
#define VPROF_PROBE_H

#include <vprof/recording.h>

#define VPROF_PROBE_SAMPLE_TYPE (VPROF_SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)
#define VPROF_PROBE_VALUES_MAX 112u /* of one event */
#define VPROF_PROBES_MAX 512u       /* of a client */
#define VPROF_PROBE_TEXT_BYTES 64u

#endif
