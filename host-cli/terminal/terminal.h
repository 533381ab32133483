// SPDX-License-Identifier: BSD-2-Clause
/* The whole screen of a terminal: lines and keys. Without ncurses there is none (terminal_stub.c). */
#ifndef VPROF_CLI_TERMINAL_TERMINAL_H
#define VPROF_CLI_TERMINAL_TERMINAL_H

#include <glib.h>
#include <stdbool.h>

#define TERMINAL_ERROR terminal_error_quark()
GQuark terminal_error_quark(void);
enum terminal_error { TERMINAL_ERROR_ABSENT };

/* Besides these, a key is its character in ASCII. */
enum terminal_key {
	TERMINAL_KEY_NONE,             /* no key has been pressed */
	TERMINAL_KEY_INTERRUPT = 0x03, /* Ctrl-C */
	TERMINAL_KEY_REDRAW = 0x0c,    /* Ctrl-L */
	TERMINAL_KEY_OTHER = 0x100,
	TERMINAL_KEY_UP,
	TERMINAL_KEY_DOWN,
	TERMINAL_KEY_LEFT,
	TERMINAL_KEY_RIGHT,
	TERMINAL_KEY_PAGE_UP,
	TERMINAL_KEY_PAGE_DOWN,
	TERMINAL_KEY_HOME,
	TERMINAL_KEY_END,
	TERMINAL_KEY_ENTER,
	TERMINAL_KEY_BACKSPACE,
	TERMINAL_KEY_ESCAPE,
	TERMINAL_KEY_F1,
	TERMINAL_KEY_F5,
	TERMINAL_KEY_F10,
	TERMINAL_KEY_RESIZE, /* the terminal has another size */
};

enum terminal_style {
	TERMINAL_PLAIN,
	TERMINAL_TITLE,
	TERMINAL_BAR,    /* letters between the first "[" and "]" stand for where time went */
	TERMINAL_HEAD,   /* of a table */
	TERMINAL_STRONG, /* a row with a large share */
	TERMINAL_DIM,
};

struct terminal_line {
	char *text; /* valid UTF-8 without control characters */
	enum terminal_style style;
};

/* An array of struct terminal_line that frees its elements. */
GArray *terminal_lines_new(void);
/* Adds a line, made fit for a terminal; steals `text`, which may come from a guest. */
void terminal_line_add(GArray *lines, enum terminal_style style, char *text);
/* What the keys do: a head, and a line for each text; NULL-terminated. */
void terminal_lines_keys(GArray *lines, const char *const *texts);

/* Whether this build has one. */
bool terminal_available(void);

/* Takes standard input and output, which are a terminal. One at a time. instead: what to use without, for the error. */
bool terminal_open(const char *instead, GError **error);
/* Leaves the terminal as it was. */
void terminal_close(void);

void terminal_size(unsigned *rows, unsigned *width);
int terminal_key(void);
/* Waits for a key, timeout_ms at most. False: the terminal is gone. */
bool terminal_wait(int timeout_ms);

/*
 * head: lines (struct terminal_line) from the top on. body: its first line is the table's head, which stays; the others
 * begin with number `first`, as many as there is room for; number `selected` stands out (-1: none). foot: the last
 * line. `whole`: all of the terminal is drawn anew.
 */
struct terminal_page {
	const GArray *head, *body;
	unsigned first;
	int selected;
	const char *foot;
	bool whole;
};
void terminal_draw(const struct terminal_page *page);
/* Rows of the body that such a page shows besides its head. */
unsigned terminal_body_rows(const GArray *head);

#endif
