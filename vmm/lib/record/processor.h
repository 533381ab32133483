// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_RECORD_PROCESSOR_H
#define VPROF_RECORD_PROCESSOR_H

/* The host's processor, as /proc/cpuinfo has it (arch/x86/kernel/cpu/proc.c). */

#include <stdbool.h>

/* "model name", which recordings carry; NULL where there is none. New string (g_free). */
char *processor_model(void);

/* Whether `flag` ("vmx") is among the flags; false where nothing can be read. */
bool processor_has(const char *flag);

#endif
