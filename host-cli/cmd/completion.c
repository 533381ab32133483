// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/completion.h"

#include <string.h>

#include "cmd/command.h"
#include "ctl_methods.h"
#include "ui/option_letter.h"

/* What is known of a command line left of the cursor. */
struct line {
	const struct command *command;
	GArray *rows;                     /* struct option_row: its options */
	const struct option_row *pending; /* an option that waits for its value; NULL: none */
	GPtrArray *arguments;             /* const char *: those that are no options */
	const char *recording;            /* --input; NULL: not given */
	bool options_end;                 /* after "--" */
};

static const struct option_row *row_by_name(const GArray *rows, const char *name, size_t n)
{
	const struct option_row *found = NULL;

	for (guint i = 0; i < rows->len; i++) {
		const struct option_row *row = &g_array_index(rows, struct option_row, i);

		if (strncmp(row->name, name, n) != 0)
			continue;
		if (row->name[n] == '\0')
			return row;
		found = row;
	}
	return found;
}

static const struct option_row *row_by_letter(const GArray *rows, char letter)
{
	for (guint i = 0; i < rows->len; i++) {
		const struct option_row *row = &g_array_index(rows, struct option_row, i);
		char letters[OPTION_LETTERS_MAX];

		option_letters(row->name, letters);
		if (strchr(letters, letter))
			return row;
	}
	return NULL;
}

static void option_take(struct line *line, const struct option_row *row, const char *value)
{
	if (!row || row->type == OPTION_FLAG)
		return;
	if (!value)
		line->pending = row;
	else if (strcmp(row->name, "input") == 0)
		line->recording = value;
}

/* "-gF" waits for a value, "-F99" has one. */
static void letters_take(struct line *line, const char *word)
{
	for (const char *letter = word + 1; *letter != '\0'; letter++) {
		const struct option_row *row = row_by_letter(line->rows, *letter);

		if (!row || row->type == OPTION_FLAG)
			continue;
		option_take(line, row, letter[1] != '\0' ? letter + 1 : NULL);
		return;
	}
}

static void word_take(struct line *line, const char *word)
{
	const struct option_row *pending = g_steal_pointer(&line->pending);

	if (pending) {
		option_take(line, pending, word);
	} else if (line->options_end || word[0] != '-' || word[1] == '\0') {
		g_ptr_array_add(line->arguments, (char *)word);
	} else if (strcmp(word, "--") == 0) {
		line->options_end = true;
	} else if (word[1] == '-') {
		const char *equals = strchr(word, '=');
		size_t n = equals ? (size_t)(equals - word - 2) : strlen(word + 2);

		option_take(line, row_by_name(line->rows, word + 2, n), equals ? equals + 1 : NULL);
	} else {
		letters_take(line, word);
	}
}

static void values_add(struct completion *completion, const struct line *line, const struct option_row *row,
                       const char *before, const char *typed)
{
	const bool lists = row->type == OPTION_LIST || g_strcmp0(row->words, "@columns") == 0;
	const char *comma = lists ? strrchr(typed, ',') : NULL;
	const char *last = comma ? comma + 1 : typed;
	g_autofree char *kept = g_strdup_printf("%s%.*s", before, (int)(last - typed), typed);

	if (row->type == OPTION_FILE || row->type == OPTION_FILES)
		completion->files = true;
	else if (row->words)
		completion_words(completion, row->words, kept, last, line->recording);
}

static void options_add(struct completion *completion, const struct line *line, const char *typed)
{
	for (guint i = 0; i < line->rows->len; i++) {
		const struct option_row *row = &g_array_index(line->rows, struct option_row, i);
		g_autofree char *word = g_strdup_printf("--%s", row->name);

		completion_add(completion, "", word, typed, row->help);
	}
	completion_add(completion, "", "--help", typed, "print this help");
}

/* "KEY=" of the method among the arguments, or NULL. */
static const char *method_keys(const struct line *line)
{
	for (guint i = 0; i < line->arguments->len; i++)
		for (size_t j = 0; ctl_methods[j].name; j++)
			if (strcmp(ctl_methods[j].name, g_ptr_array_index(line->arguments, i)) == 0)
				return ctl_methods[j].keys;
	return NULL;
}

static void argument_add(struct completion *completion, const struct line *line, const char *typed)
{
	const char *const *words = line->command->argument_words;
	const char *keys = line->command == &command_ctl ? method_keys(line) : NULL;
	guint at = line->arguments->len;

	if (at >= line->command->max_arguments)
		return;
	while (at > 0 && (at >= COMMAND_ARGUMENTS || !words[at]))
		at--;
	if (keys || words[at])
		completion_words(completion, keys ? keys : words[at], "", typed, line->recording);
}

static void rest_add(struct completion *completion, const struct line *line, const char *typed)
{
	const char *equals = strchr(typed, '=');

	if (line->pending) {
		values_add(completion, line, line->pending, "", typed);
	} else if (!line->options_end && g_str_has_prefix(typed, "--") && equals) {
		const struct option_row *row = row_by_name(line->rows, typed + 2, (size_t)(equals - typed - 2));
		g_autofree char *before = g_strndup(typed, (gsize)(equals + 1 - typed));

		if (row)
			values_add(completion, line, row, before, equals + 1);
	} else if (!line->options_end && typed[0] == '-') {
		options_add(completion, line, typed);
	} else {
		argument_add(completion, line, typed);
	}
}

void completion_find(struct completion *completion, char *const *words, unsigned n)
{
	struct line line = {.command = n > 1 ? command_find(words[0]) : NULL};

	if (n == 1) {
		completion_words(completion, "@commands --help --version", "", words[0], NULL);
		return;
	}
	if (!line.command)
		return;
	/* Most of what it takes. */
	if (line.command == &command_record)
		line.command = &command_run;
	line.rows = option_rows_flatten(line.command->options);
	line.arguments = g_ptr_array_new();
	for (unsigned i = 1; i + 1 < n; i++)
		word_take(&line, words[i]);
	rest_add(completion, &line, words[n - 1]);
	g_array_unref(line.rows);
	g_ptr_array_unref(line.arguments);
}
