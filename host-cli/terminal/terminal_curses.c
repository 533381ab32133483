// SPDX-License-Identifier: BSD-2-Clause
#include "terminal/terminal.h"

#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE_DELAY_MS 25 /* for the rest of a function key's sequence */

enum { PAIR_GUEST = 1, PAIR_VMM, PAIR_WAITING };

G_DEFINE_QUARK(vprof_terminal_error, terminal_error)

static SCREEN *screen;

bool terminal_available(void)
{
	return true;
}

static void colours_init(void)
{
	if (!has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_GUEST, COLOR_GREEN, -1);
	init_pair(PAIR_VMM, COLOR_BLUE, -1);
	init_pair(PAIR_WAITING, COLOR_YELLOW, -1);
}

bool terminal_open(const char *instead, GError **error)
{
	/* Not initscr, which ends the program where it does not know the terminal. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		g_set_error(error, TERMINAL_ERROR, TERMINAL_ERROR_ABSENT,
		            "the terminal \"%s\" ($TERM) is not known here; %s",
		            g_getenv("TERM") ? g_getenv("TERM") : "", instead);
		return false;
	}
	set_escdelay(ESCAPE_DELAY_MS);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	colours_init();
	return true;
}

void terminal_close(void)
{
	endwin();
	delscreen(screen);
	screen = NULL;
}

void terminal_size(unsigned *rows, unsigned *width)
{
	*rows = (unsigned)getmaxy(stdscr);
	*width = (unsigned)getmaxx(stdscr);
}

int terminal_key(void)
{
	static const struct {
		int code;
		enum terminal_key key;
	} keys[] = {
		{KEY_UP, TERMINAL_KEY_UP},         {KEY_DOWN, TERMINAL_KEY_DOWN},
		{KEY_LEFT, TERMINAL_KEY_LEFT},     {KEY_RIGHT, TERMINAL_KEY_RIGHT},
		{KEY_PPAGE, TERMINAL_KEY_PAGE_UP}, {KEY_NPAGE, TERMINAL_KEY_PAGE_DOWN},
		{KEY_HOME, TERMINAL_KEY_HOME},     {KEY_END, TERMINAL_KEY_END},
		{'\n', TERMINAL_KEY_ENTER},        {'\r', TERMINAL_KEY_ENTER},
		{KEY_ENTER, TERMINAL_KEY_ENTER},   {KEY_BACKSPACE, TERMINAL_KEY_BACKSPACE},
		{0x7f, TERMINAL_KEY_BACKSPACE},    {'\b', TERMINAL_KEY_BACKSPACE},
		{0x1b, TERMINAL_KEY_ESCAPE},       {KEY_F(1), TERMINAL_KEY_F1},
		{KEY_F(5), TERMINAL_KEY_F5},       {KEY_F(10), TERMINAL_KEY_F10},
		{KEY_RESIZE, TERMINAL_KEY_RESIZE}, {ERR, TERMINAL_KEY_NONE},
	};
	const int code = getch();

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (keys[i].code == code)
			return (int)keys[i].key;
	return code > 0 && code < 0x7f ? code : TERMINAL_KEY_OTHER;
}

bool terminal_wait(int timeout_ms)
{
	struct pollfd entry = {.fd = STDIN_FILENO, .events = POLLIN};

	poll(&entry, 1, timeout_ms);
	return (entry.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

/* ---- drawing ---- */

static attr_t style_attributes(enum terminal_style style)
{
	switch (style) {
	case TERMINAL_TITLE:
	case TERMINAL_STRONG:
		return A_BOLD;
	case TERMINAL_HEAD:
		return A_REVERSE;
	case TERMINAL_DIM:
		return A_DIM;
	default:
		return A_NORMAL;
	}
}

static void bar_colour(int row, const char *text)
{
	static const struct {
		char letter;
		short pair;
	} colours[] = {{'#', PAIR_GUEST}, {'+', PAIR_VMM}, {'~', PAIR_WAITING}};
	const char *bar = strchr(text, '['), *end = strchr(text, ']');

	for (size_t i = 0; bar && end && has_colors() && i < G_N_ELEMENTS(colours); i++)
		for (const char *at = bar; at < end; at++)
			if (*at == colours[i].letter)
				mvchgat(row, (int)(at - text), 1, A_BOLD, colours[i].pair, NULL);
}

/* As much of it as there are columns; a style with a background has all of them. */
static void line_draw(int row, const struct terminal_line *line, bool selected)
{
	attr_t attributes = selected ? A_REVERSE : style_attributes(line->style);
	int width = getmaxx(stdscr);
	g_autofree char *part =
		g_utf8_strlen(line->text, -1) > width ? g_utf8_substring(line->text, 0, width) : g_strdup(line->text);

	move(row, 0);
	clrtoeol();
	attron(attributes);
	addstr(part);
	if ((attributes & A_REVERSE) != 0)
		for (int x = (int)g_utf8_strlen(part, -1); x < width; x++)
			addch(' ');
	attroff(attributes);
	if (line->style == TERMINAL_BAR)
		bar_colour(row, part);
}

unsigned terminal_body_rows(const GArray *head)
{
	int rows = getmaxy(stdscr) - (int)head->len - 2; /* the table's head and the foot */

	return rows > 0 ? (unsigned)rows : 0;
}

void terminal_draw(const struct terminal_page *page)
{
	const struct terminal_line foot = {.text = (char *)page->foot, .style = TERMINAL_HEAD};
	const int rows = getmaxy(stdscr);
	int row = 0;

	erase();
	for (guint i = 0; i < page->head->len && row < rows; i++)
		line_draw(row++, &g_array_index(page->head, struct terminal_line, i), false);
	if (page->body->len != 0 && row < rows)
		line_draw(row++, &g_array_index(page->body, struct terminal_line, 0), false);
	for (guint i = page->first + 1; i < page->body->len && row < rows - 1; i++)
		line_draw(row++, &g_array_index(page->body, struct terminal_line, i), (int)i - 1 == page->selected);
	line_draw(rows - 1, &foot, false);
	if (page->whole)
		redrawwin(stdscr);
	refresh();
}
