// SPDX-License-Identifier: BSD-2-Clause
/* A build without ncurses. */
#include "top/top_screen.h"

G_DEFINE_QUARK(vprof_top_screen_error, top_screen_error)

bool top_screen_available(void)
{
	return false;
}

bool top_screen_open(GError **error)
{
	g_set_error_literal(error, TOP_SCREEN_ERROR, TOP_SCREEN_ERROR_TERMINAL,
	                    "this vprof was built without ncurses; --once prints a snapshot");
	return false;
}

void top_screen_close(void)
{
}

void top_screen_size(unsigned *rows, unsigned *width)
{
	*rows = *width = 0;
}

enum top_key top_screen_key(void)
{
	return TOP_KEY_QUIT;
}

bool top_screen_wait(int timeout_ms)
{
	(void)timeout_ms;
	return false;
}

void top_screen_draw(const struct top_screen_page *page)
{
	(void)page;
}

unsigned top_screen_body_rows(const GArray *head)
{
	(void)head;
	return 0;
}
