// SPDX-License-Identifier: BSD-2-Clause
/* Ctrl-C in commands that observe a guest for a while: the first ends the observation, the second ends vprof. */
#ifndef VPROF_CLI_UI_INTERRUPT_H
#define VPROF_CLI_UI_INTERRUPT_H

#include <stdbool.h>

/* From now on, the first SIGINT, SIGTERM or SIGHUP only sets what `interrupted` returns. */
void interrupt_watch(void);
bool interrupted(void);

#endif
