// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profile, or two to be compared, as one HTML file for a browser: flame graph, timeline and table of functions. The
 * program in the page is made of web/ when vprof is built (CMake option VPROF_WITH_HTML).
 */
#ifndef VPROF_CLI_EXPORT_PAGE_H
#define VPROF_CLI_EXPORT_PAGE_H

#include <glib.h>
#include <stdbool.h>

#include "lib/profile/comparison.h"
#include "reading/input.h"

#define PAGE_ERROR page_error_quark()
GQuark page_error_quark(void);
enum page_error { PAGE_ERROR_ABSENT };

/* What statistics say of two recordings. */
struct page_comparison {
	const struct comparison *comparison;
	size_t n_base, n_now; /* repetitions */
};

/* False with PAGE_ERROR_ABSENT, which says how to get it, when this vprof was built without the page. */
bool page_check(GError **error);

/*
 * Reads the recordings, of which the second may be NULL (no comparison), and replaces the file as a whole. compared:
 * NULL if they cannot be tested.
 */
bool page_write(struct input *base, struct input *now, const struct page_comparison *compared, const char *path,
                GError **error);

#endif
