// SPDX-License-Identifier: BSD-2-Clause
/*
 * Command-line options as data: a table of rows says where in a struct of values each option's value goes. --help,
 * shell completion and parsing read the same table. Options that several commands share are a table and a struct of
 * their own, which OPTION_ROWS puts into those of a command.
 */
#ifndef VPROF_CLI_UI_OPTION_H
#define VPROF_CLI_UI_OPTION_H

#include <glib.h>
#include <stddef.h>

enum option_type {
	OPTION_FLAG,   /* gboolean */
	OPTION_TEXT,   /* char * */
	OPTION_FILE,   /* char *: a path */
	OPTION_TEXTS,  /* char **: may be given again */
	OPTION_FILES,  /* char **: paths */
	OPTION_INT,    /* int */
	OPTION_DOUBLE, /* double */
};

struct option_row {
	const char *name; /* NULL: another table (`rows`), or the end */
	char letter;      /* 0: none */
	enum option_type type;
	size_t offset; /* of the value in the command's values; with `rows`, what is added to their offsets */
	const char *help;
	const char *argument; /* the word for it in --help; NULL for a flag */
	const struct option_row *rows;
};

/* A row that stands for all rows of another table, with its values in the member `member` of `values`. */
#define OPTION_ROWS(table, values, member)                          \
	{                                                           \
		.rows = (table), .offset = offsetof(values, member) \
	}

/* All options of a table (NULL: none) and of those in it, in order, with their offsets in its values. Array of struct
 * option_row. */
GArray *option_rows_flatten(const struct option_row *rows);

/* Adds the options to `context`, to be parsed into `values`. */
void option_rows_add(const struct option_row *rows, void *values, GOptionContext *context);

/* Frees the strings in `values`. */
void option_rows_clear(const struct option_row *rows, void *values);

#endif
