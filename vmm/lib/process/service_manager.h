// SPDX-License-Identifier: BSD-2-Clause
/* What a service says to its manager, as sd_notify(3) and sd_watchdog_enabled(3) have it. */
#ifndef VPROF_PROCESS_SERVICE_MANAGER_H
#define VPROF_PROCESS_SERVICE_MANAGER_H

#include <stdint.h>

/* Tells the manager, if there is one: "READY=1". */
void service_manager_tell(const char *state);

/* How often the manager wants to hear "WATCHDOG=1", in microseconds; 0: never. */
int64_t service_manager_watchdog_us(void);

#endif
