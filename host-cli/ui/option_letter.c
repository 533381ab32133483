// SPDX-License-Identifier: BSD-2-Clause
#include "ui/option_letter.h"

#include <glib.h>
#include <string.h>

static const struct option_letter {
	char letter;
	const char *names; /* of long options, with blanks around each */
	const char *lost;  /* options that the letter cannot stand for; they are named where it is tried. NULL: none */
} table[] = {
	{'C', " vcpu ", NULL},
	{'E', " engine ", NULL},
	{'F', " frequency ", " fields "},
	{'G', " cgroup ", NULL},
	{'H', " header ", " hist "},
	{'I', " interval ", NULL},
	{'a', " all ", " alpha api append "},
	{'b', " baseline ", " breakpoints once "},
	{'c', " count ", " compact count-by comm "},
	{'d', " interval ", " duration "},
	{'e', " event probe ", " events "},
	{'f', " force ", " filter "},
	{'g', " call-chains call-tree stack ", NULL},
	{'i', " input ", NULL},
	{'j', " json ", NULL},
	{'k', " kernel ", NULL},
	{'l', " list ", " label "},
	{'m', " memory ", " metric module "},
	{'n', " limit ", " name "},
	{'o', " output ", NULL},
	{'p', " pid ", " phase probe "},
	{'r', " repeat ", " max-regression registers "},
	{'s', " sort ", " shares stack "},
	{'t', " to ", " throughput time "},
	{'u', " update-baseline ", NULL},
	{'v', " verbose ", NULL},
	{'w', " html ", NULL},
	{'x', " exec ", NULL},
};

static bool has_word(const char *words, const char *name)
{
	g_autofree char *word = g_strdup_printf(" %s ", name);

	return words && strstr(words, word);
}

static const struct option_letter *find(char letter)
{
	for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
		if (table[i].letter == letter)
			return &table[i];
	return NULL;
}

void option_letters(const char *name, char letters[OPTION_LETTERS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(table) && n + 1 < OPTION_LETTERS_MAX; i++)
		if (has_word(table[i].names, name))
			letters[n++] = table[i].letter;
	letters[n] = '\0';
}

bool option_letter_lost(char letter, const char *name)
{
	const struct option_letter *found = find(letter);

	return found && has_word(found->lost, name);
}

char *option_letter_meaning(char letter)
{
	const struct option_letter *found = find(letter);

	return found ? g_strndup(found->names + 1, strcspn(found->names + 1, " ")) : NULL;
}
