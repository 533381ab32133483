// SPDX-License-Identifier: BSD-2-Clause
/*
 * Long output goes through a pager, as git's does: $VPROF_PAGER, else $PAGER, else less, which gets LESS=FRX unless
 * LESS is set. Only where standard output is a terminal; an empty variable, or "cat", is no pager.
 */
#ifndef VPROF_CLI_UI_PAGER_H
#define VPROF_CLI_UI_PAGER_H

#include <stdbool.h>

/* Everything printed on standard output from now on goes to the pager. */
void pager_begin(void);
/* After standard output has been closed: waits until the user leaves the pager. */
void pager_end(void);

#endif
