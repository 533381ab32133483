// SPDX-License-Identifier: BSD-2-Clause
/* A build without ncurses. */
#include "terminal/terminal.h"

G_DEFINE_QUARK(vprof_terminal_error, terminal_error)

bool terminal_available(void)
{
	return false;
}

bool terminal_open(const char *instead, GError **error)
{
	g_set_error(error, TERMINAL_ERROR, TERMINAL_ERROR_ABSENT, "this vprof was built without ncurses; %s", instead);
	return false;
}

void terminal_close(void)
{
}

void terminal_size(unsigned *rows, unsigned *width)
{
	*rows = *width = 0;
}

int terminal_key(void)
{
	return TERMINAL_KEY_INTERRUPT;
}

bool terminal_wait(int timeout_ms)
{
	(void)timeout_ms;
	return false;
}

void terminal_draw(const struct terminal_page *page)
{
	(void)page;
}

unsigned terminal_body_rows(const GArray *head)
{
	(void)head;
	return 0;
}
