// SPDX-License-Identifier: BSD-2-Clause
/*
 * Command-line options as data: a table of rows says where in a struct of values each option's value goes. --help,
 * shell completion and parsing read the same table. Options that several commands share are a table and a struct of
 * their own, which OPTION_ROWS puts into those of a command. Short letters come from one table for all commands
 * (option_letter.h).
 */
#ifndef VPROF_CLI_UI_OPTION_H
#define VPROF_CLI_UI_OPTION_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_FLAG,  /* gboolean */
	OPTION_TEXT,  /* char * */
	OPTION_FILE,  /* char *: a path */
	OPTION_TEXTS, /* char **: may be given again */
	OPTION_FILES, /* char **: paths */
	OPTION_LIST, /* char **: may be given again, or with commas; not those in "cpu/event=1,umask=2/"; `max` names */
	OPTION_NUMBER,   /* uint64_t: `min` to `max` */
	OPTION_TIME,     /* uint64_t: seconds, from "10", "10s", "2m" or "1h"; 1 to `max` */
	OPTION_DOUBLE,   /* double */
	OPTION_PERCENT,  /* double: 5 and 5% are 5 */
	OPTION_FRACTION, /* double: 0.05 and 5% are 0.05 */
};

#define OPTION_NUMBER_NONE UINT64_MAX /* a default that no OPTION_NUMBER is */

struct option_row {
	const char *name; /* NULL: another table (`rows`), or the end */
	enum option_type type;
	size_t offset; /* of the value in the command's values; with `rows`, what is added to their offsets */
	const char *help;
	const char *argument; /* the word for it in --help; NULL for a flag */
	/* What the value may be, for completion: words with blanks between, or "@KIND" of completion.h; or NULL. */
	const char *words;
	const struct option_row *rows;
	uint64_t min, max; /* of numbers, times and lists; `max` 0: no limit but that of the type */
};

/* A row that stands for all rows of another table, with its values in the member `member` of `values`. */
#define OPTION_ROWS(table, values, member)                          \
	{                                                           \
		.rows = (table), .offset = offsetof(values, member) \
	}

/* All options of a table (NULL: none) and of those in it, in order, with their offsets in its values. Array of struct
 * option_row. */
GArray *option_rows_flatten(const struct option_row *rows);

/*
 * Parses argv[1..argc-1] as getopt_long does, with bundled letters and unambiguous prefixes of long names, into
 * `values` (NULL: they are not looked at). Reorders argv: argv[*first..argc-1] are the arguments that are not options.
 * *wants_help: --help was given, and the rest was not parsed. Errors: G_OPTION_ERROR, UNITS_ERROR.
 */
bool option_rows_parse(const struct option_row *rows, void *values, int argc, char **argv, int *first, bool *wants_help,
                       GError **error);

/* The list of options as --help prints it, in lines of at most TEXT_COLUMNS. New string. */
char *option_rows_help(const struct option_row *rows);

/* Frees the strings in `values`. */
void option_rows_clear(const struct option_row *rows, void *values);

#endif
