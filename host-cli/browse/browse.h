// SPDX-License-Identifier: BSD-2-Clause
/* `vprof report --tui`: a report on the whole screen of a terminal, as perf's. */
#ifndef VPROF_CLI_BROWSE_BROWSE_H
#define VPROF_CLI_BROWSE_BROWSE_H

#include <glib.h>
#include <stdbool.h>

#include "annotate/annotation.h"
#include "report/report.h"

/*
 * Until the user leaves. report: with call trees. annotation: as annotation_new takes it, for the functions that are
 * looked into; its symbol and module are set here. TERMINAL_ERROR: there is no terminal.
 */
bool browse_run(struct input *input, const struct report *report, const struct annotation_options *annotation,
                GError **error);

#endif
