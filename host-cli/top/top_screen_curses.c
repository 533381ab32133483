// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_screen.h"

#include <curses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "top/top_lines.h"

#define ESCAPE_DELAY_MS 25 /* for the rest of a function key's sequence */
#define CONTROL_L 0x0c
#define CONTROL_C 0x03

enum { PAIR_GUEST = 1, PAIR_VMM, PAIR_WAITING };

G_DEFINE_QUARK(vprof_top_screen_error, top_screen_error)

static SCREEN *screen;

bool top_screen_available(void)
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

bool top_screen_open(GError **error)
{
	/* Not initscr, which ends the program where it does not know the terminal. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		g_set_error(error, TOP_SCREEN_ERROR, TOP_SCREEN_ERROR_TERMINAL,
		            "the terminal \"%s\" ($TERM) is not known here; --once prints a snapshot",
		            g_getenv("TERM") ? g_getenv("TERM") : "");
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

void top_screen_close(void)
{
	endwin();
	delscreen(screen);
	screen = NULL;
}

void top_screen_size(unsigned *rows, unsigned *width)
{
	*rows = (unsigned)getmaxy(stdscr);
	*width = (unsigned)getmaxx(stdscr);
}

enum top_key top_screen_key(void)
{
	static const struct {
		int code;
		enum top_key key;
	} keys[] = {
		{'q', TOP_KEY_QUIT},          {KEY_F(10), TOP_KEY_QUIT},
		{CONTROL_C, TOP_KEY_QUIT},    {'h', TOP_KEY_HELP},
		{'?', TOP_KEY_HELP},          {KEY_F(1), TOP_KEY_HELP},
		{' ', TOP_KEY_NOW},           {'s', TOP_KEY_INTERVAL},
		{'d', TOP_KEY_INTERVAL},      {'p', TOP_KEY_PAUSE},
		{'Z', TOP_KEY_PAUSE},         {'a', TOP_KEY_ALL},
		{'z', TOP_KEY_RESET},         {'>', TOP_KEY_GROUP_NEXT},
		{'\t', TOP_KEY_GROUP_NEXT},   {'<', TOP_KEY_GROUP_PREVIOUS},
		{'t', TOP_KEY_TREE},          {KEY_F(5), TOP_KEY_TREE},
		{'\n', TOP_KEY_FOLD},         {'\r', TOP_KEY_FOLD},
		{KEY_ENTER, TOP_KEY_FOLD},    {'1', TOP_KEY_BARS},
		{KEY_UP, TOP_KEY_UP},         {'k', TOP_KEY_UP},
		{KEY_DOWN, TOP_KEY_DOWN},     {'j', TOP_KEY_DOWN},
		{KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
		{CONTROL_L, TOP_KEY_REDRAW},  {KEY_RESIZE, TOP_KEY_RESIZE},
		{ERR, TOP_KEY_NONE},
	};
	int code = getch();

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return TOP_KEY_OTHER;
}

bool top_screen_wait(int timeout_ms)
{
	struct pollfd entry = {.fd = STDIN_FILENO, .events = POLLIN};

	poll(&entry, 1, timeout_ms);
	return (entry.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

/* ---- drawing ---- */

static attr_t style_attributes(enum top_style style)
{
	switch (style) {
	case TOP_TITLE:
	case TOP_STRONG:
		return A_BOLD;
	case TOP_HEAD:
		return A_REVERSE;
	case TOP_DIM:
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
static void line_draw(int row, const struct top_line *line, bool selected)
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
	if (line->style == TOP_BAR)
		bar_colour(row, part);
}

unsigned top_screen_body_rows(const GArray *head)
{
	int rows = getmaxy(stdscr) - (int)head->len - 2; /* the table's head and the foot */

	return rows > 0 ? (unsigned)rows : 0;
}

void top_screen_draw(const struct top_screen_page *page)
{
	const struct top_line foot = {.text = (char *)page->foot, .style = TOP_HEAD};
	const int rows = getmaxy(stdscr);
	int row = 0;

	erase();
	for (guint i = 0; i < page->head->len && row < rows; i++)
		line_draw(row++, &g_array_index(page->head, struct top_line, i), false);
	if (page->body->len != 0 && row < rows)
		line_draw(row++, &g_array_index(page->body, struct top_line, 0), false);
	for (guint i = page->first + 1; i < page->body->len && row < rows - 1; i++)
		line_draw(row++, &g_array_index(page->body, struct top_line, i), (int)i - 1 == page->selected);
	line_draw(rows - 1, &foot, false);
	if (page->whole)
		redrawwin(stdscr);
	refresh();
}
