// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof top` shows: one interval of a guest, ready to be drawn, printed or written as JSON. */
#ifndef VPROF_CLI_TOP_TOP_VIEW_H
#define VPROF_CLI_TOP_TOP_VIEW_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "reading/vcpu_clocks.h"
#include "report/report.h"
#include "top/top_profile.h"
#include "top/top_source.h"

#define TOP_JSON_VERSION 1

/* What it shows next time. */
struct top_choice {
	struct column_list columns;
	bool all; /* since the start instead of the last interval */
};

struct top_view {
	const struct top_source *source; /* borrowed */
	struct top_choice choice;
	double seconds;                               /* the interval */
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];    /* within it */
	size_t n_vcpus;                               /* 0: this guest has no clocks; why_no_clocks says why */
	struct vcpu_clocks readings[VCPU_CLOCKS_MAX]; /* at its end */
	json_t *clocks;                               /* at its end, as query-vcpu-time answers */
	const char *why_no_clocks;                    /* in `clocks`; NULL */
	GArray *kvm_exits;         /* struct kvm_exit_row, within it; empty without KVM's trace points */
	GArray *exits;             /* struct exit_row, within it */
	json_t *statistics;        /* "total" of query-stats, since the session's start; NULL */
	struct report_table table; /* of the interval, or of all */
	int64_t read_us;           /* g_get_monotonic_time() at its end */
};

/* The interval begins. */
bool top_view_init(struct top_view *view, struct top_source *source, GError **error);
/* The interval ends, and the next one begins. */
bool top_view_next(struct top_view *view, struct top_source *source, struct top_profile *profile,
                   const struct top_choice *choice, GError **error);
/* The same interval again, by another choice. */
void top_view_choose(struct top_view *view, struct top_profile *profile, const struct top_choice *choice);
void top_view_clear(struct top_view *view);

/* Drops the strings of the profile, before the profile frees them. */
void top_view_forget(struct top_view *view);

/* Its schema: vprof-top(1). New reference. */
json_t *top_view_json(const struct top_view *view, size_t rows_max);

#endif
