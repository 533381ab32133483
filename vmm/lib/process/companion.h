// SPDX-License-Identifier: BSD-2-Clause
/* A process that an engine has forked off to stay beside it: its keeper, its asker. */
#ifndef VPROF_PROCESS_COMPANION_H
#define VPROF_PROCESS_COMPANION_H

/*
 * In the new process: it is called `name`. Nothing of the engine's stays open but two descriptors, which may be the
 * same one, and no terminal's or service manager's signal ends it before the engine.
 */
void companion_let_go(const char *name, int one, int other);

#endif
