// SPDX-License-Identifier: BSD-2-Clause
/* The samples of `vprof top`, of the last interval and of all since the start, by whatever the screen groups by. */
#ifndef VPROF_CLI_TOP_TOP_PROFILE_H
#define VPROF_CLI_TOP_TOP_PROFILE_H

#include <glib.h>
#include <stdbool.h>

#include "lib/client/client.h"
#include "lib/record/writer.h"
#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"
#include "report/report.h"

struct top_profile;

/* Both are borrowed. symtab NULL: no names of kernel functions; user NULL: no symbols of programs. */
struct top_profile *top_profile_new(const struct symtab *symtab, struct user_symbols *user);
void top_profile_free(struct top_profile *profile);

/*
 * Adds the samples of `event` among whole records, in any order across vCPUs, and learns tasks and mappings. What is
 * malformed is left out.
 */
void top_profile_add(struct top_profile *profile, const GByteArray *records, const struct recording_event *event);

/*
 * Asks the engine for the symbols at new addresses in the guest kernel's modules, for tables from now on. Addresses
 * without an answer, as in the session of another client, have no names.
 */
void top_profile_ask_modules(struct top_profile *profile, struct client *client);

/* Whether so many names of tasks and mappings are kept that it is time for top_profile_begin. */
bool top_profile_is_full(const struct top_profile *profile);

/* What was the interval until now becomes the last one, which is shown; the next one begins. */
void top_profile_next(struct top_profile *profile);
/* All figures begin anew. */
void top_profile_reset(struct top_profile *profile);
/* The same for what is known of tasks and mappings, for another session. has_tasks: it tells tasks apart. */
void top_profile_begin(struct top_profile *profile, bool has_tasks);

/*
 * The table of the last interval, or of all. Its rows and calls are by g_free; their strings live until the next call
 * of top_profile_begin.
 */
void top_profile_table(struct top_profile *profile, bool all, const struct column_list *list,
                       struct report_table *table);

#endif
