// SPDX-License-Identifier: BSD-2-Clause
#include "ui/finding.h"

#include <glib.h>
#include <stdio.h>

#include "ui/text.h"

void finding_print(enum finding verdict, const char *what, const char *text, const char *fix)
{
	static const char *const words[] = {[FINDING_GOOD] = "ok", [FINDING_NOTE] = "note", [FINDING_BAD] = "MISSING"};
	g_autofree char *printable = text_printable(text);

	printf("%-8s %-10s %s\n", words[verdict], what, printable);
	if (fix != NULL)
		printf("%-8s %-10s fix: %s\n", "", "", fix);
}
