// SPDX-License-Identifier: BSD-2-Clause
/* `vprof doctor` of a guest that runs already. */
#ifndef VPROF_CLI_ATTACH_DOCTOR_H
#define VPROF_CLI_ATTACH_DOCTOR_H

#include <stdbool.h>

/* The guest is `domain` or that of attach_engine_options, which attach_engine_check has seen. The exit status. */
int attach_doctor(const char *domain, bool json);

#endif
