// SPDX-License-Identifier: BSD-2-Clause
/* The terminal of `vprof top`: lines and keys. Without ncurses there is none (top_screen_stub.c). */
#ifndef VPROF_CLI_TOP_TOP_SCREEN_H
#define VPROF_CLI_TOP_TOP_SCREEN_H

#include <glib.h>
#include <stdbool.h>

#define TOP_SCREEN_ERROR top_screen_error_quark()
GQuark top_screen_error_quark(void);
enum top_screen_error { TOP_SCREEN_ERROR_TERMINAL };

enum top_key {
	TOP_KEY_NONE, /* no key has been pressed */
	TOP_KEY_OTHER,
	TOP_KEY_QUIT,
	TOP_KEY_HELP,
	TOP_KEY_NOW,
	TOP_KEY_INTERVAL,
	TOP_KEY_PAUSE,
	TOP_KEY_ALL,
	TOP_KEY_RESET,
	TOP_KEY_GROUP_NEXT,
	TOP_KEY_GROUP_PREVIOUS,
	TOP_KEY_TREE,
	TOP_KEY_FOLD,
	TOP_KEY_BARS,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_REDRAW,
	TOP_KEY_RESIZE, /* the terminal has another size */
};

/* Whether this build has one. */
bool top_screen_available(void);

/* Takes standard input and output, which are a terminal. One at a time. */
bool top_screen_open(GError **error);
/* Leaves the terminal as it was. */
void top_screen_close(void);

void top_screen_size(unsigned *rows, unsigned *width);
enum top_key top_screen_key(void);
/* Waits for a key, timeout_ms at most. False: the terminal is gone. */
bool top_screen_wait(int timeout_ms);

/*
 * head: lines (struct top_line) from the top on. body: its first line is the table's head, which stays; the others
 * begin with number `first`, as many as there is room for; number `selected` stands out (-1: none). foot: the last
 * line. `whole`: all of the terminal is drawn anew.
 */
struct top_screen_page {
	const GArray *head, *body;
	unsigned first;
	int selected;
	const char *foot;
	bool whole;
};
void top_screen_draw(const struct top_screen_page *page);
/* Rows of the body that such a page shows besides its head. */
unsigned top_screen_body_rows(const GArray *head);

#endif
