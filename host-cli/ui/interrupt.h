// SPDX-License-Identifier: BSD-2-Clause
/* Ctrl-C in commands that look at a guest for a while: the first ends the looking, the second ends us. */
#ifndef VPROF_CLI_INTERRUPT_H
#define VPROF_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP only set what `interrupted` says; each of them once. */
void interrupt_watch(void);
bool interrupted(void);

#endif
