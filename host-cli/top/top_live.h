// SPDX-License-Identifier: BSD-2-Clause
/* `vprof top` itself: samples come in, intervals end, and keys change what is seen. */
#ifndef VPROF_CLI_TOP_TOP_LIVE_H
#define VPROF_CLI_TOP_TOP_LIVE_H

#include <glib.h>
#include <stdbool.h>

#include "top/top_profile.h"
#include "top/top_source.h"
#include "top/top_view.h"

struct top_live {
	struct top_source *source;
	struct top_profile *profile;
	struct top_choice choice;
	double interval_s;
	bool tree;
};

/* Waits for one interval, or until it is interrupted, and fills in `view`. By top_view_clear. */
bool top_live_snapshot(struct top_live *live, struct top_view *view, GError **error);

/* Until a key, a signal or the guest's end (TOP_SOURCE_ERROR_GUEST_ENDED) ends it; the terminal is left as it was. */
bool top_live_run(struct top_live *live, GError **error);

#endif
