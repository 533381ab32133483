// SPDX-License-Identifier: BSD-2-Clause
/* A recording sample by sample, with names, for the formats that keep each one. */
#ifndef VPROF_CLI_EXPORT_SAMPLES_H
#define VPROF_CLI_EXPORT_SAMPLES_H

#include "export/export.h"

struct export_frame {
	struct place place;
	uint64_t ip; /* of a caller: the last byte of its call instruction */
	enum profile_mode mode;
};

/* frames: the innermost first, n at least 1. False ends the walk. */
typedef bool export_visitor(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                            size_t n, void *data);

/* In the order of the recording: by time for each vCPU, and not across vCPUs. */
void export_samples_each(const struct export_profile *profile, export_visitor *visit, void *data);

#endif
