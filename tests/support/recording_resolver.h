// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_SUPPORT_RECORDING_RESOLVER_H
#define VPROF_TEST_SUPPORT_RECORDING_RESOLVER_H

/* The recording of recording_file.h with its own symbols, as a fixture. */

#include "lib/profile/resolver.h"
#include "recording_file.h"

static struct recording *recording;
static struct resolver *resolver;

static inline void resolver_setup(void)
{
	file_make();
	recording_write();
	recording = open_good();
	resolver = resolver_new_recording(recording);
}

static inline void resolver_teardown(void)
{
	resolver_free(resolver);
	recording_free(recording);
	file_drop();
}

#endif
