// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion of command lines. The shells' scripts pass the words typed so far to `vprof completion words`, which
 * knows the tables of commands and options, and asks recordings, engines and guests.
 */
#ifndef VPROF_CLI_CMD_COMPLETION_H
#define VPROF_CLI_CMD_COMPLETION_H

#include <glib.h>
#include <stdbool.h>

/* What may stand in a place of the command line. */
struct completion {
	GString *lines; /* "WORD\tEXPLANATION\n" each, the words with what is typed before them */
	bool files;     /* names of files fit, too */
};

/* words[0..n-1]: what follows "vprof", up to the word at the cursor, which may be "". */
void completion_find(struct completion *completion, char *const *words, unsigned n);

/*
 * Adds those of `words` (see option_row) that begin with `typed`; `before` is printed ahead of each. Kinds: @columns,
 * @formats, @events, @recorded-events (of the recording), @phases, @engines, @guests, @probes, @methods, @commands,
 * @files. recording: --input or the like; NULL: the default.
 */
void completion_words(struct completion *completion, const char *words, const char *before, const char *typed,
                      const char *recording);
/* One candidate, if it begins with `typed`; explanation: or NULL. */
void completion_add(struct completion *completion, const char *before, const char *word, const char *typed,
                    const char *explanation);

#endif
