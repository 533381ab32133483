// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_guests_live.h"

#include <string.h>

#include "engine/guest_list.h"
#include "terminal/terminal.h"
#include "top/top_finder.h"
#include "top/top_keys.h"
#include "top/top_lines.h"
#include "ui/interrupt.h"
#include "ui/text.h"

#define TICK_MS 100 /* how long a signal may wait */

bool top_guests_snapshot(struct top_guests *guests, const struct attach_engine_options *options, double interval_s,
                         GError **error)
{
	json_t *list = guest_list(options, NULL, error), *guest;
	int64_t end_us;
	size_t i;

	if (!list)
		return false;
	json_array_foreach(list, i, guest)
		if (!interrupted())
			guest_probe(options, guest);
	top_guests_take(guests, list);
	top_guests_read(guests);
	end_us = guests->read_us + (int64_t)(interval_s * G_USEC_PER_SEC);
	while (!interrupted() && g_get_monotonic_time() < end_us)
		g_usleep((gulong)MIN(end_us - g_get_monotonic_time() + 1000, TICK_MS * 1000));
	top_guests_read(guests);
	return true;
}

/* ---- the screen ---- */

struct top_guests_live {
	struct top_finder *finder;
	struct top_guests guests;
	int64_t interval_us;
	char *selected; /* name of the guest on which the bar is; NULL: the first */
	unsigned first; /* row that is shown first */
	char *message;  /* NULL */
	bool help, quit, whole, chosen;
};

struct top_guests_live *top_guests_live_new(const struct attach_engine_options *options, double interval_s)
{
	struct top_guests_live *live = g_new0(struct top_guests_live, 1);

	live->finder = top_finder_new(options, interval_s);
	live->interval_us = (int64_t)(interval_s * G_USEC_PER_SEC);
	top_guests_init(&live->guests);
	return live;
}

void top_guests_live_free(struct top_guests_live *live)
{
	if (!live)
		return;
	top_finder_free(live->finder);
	top_guests_clear(&live->guests);
	g_free(live->selected);
	g_free(live->message);
	g_free(live);
}

void top_guests_live_say(struct top_guests_live *live, char *message)
{
	g_free(live->message);
	live->message = message;
}

static const json_t *guest_at(const struct top_guests_live *live, guint i)
{
	return g_array_index(live->guests.rows, struct top_guest, i).guest;
}

/* The row of the selected guest, wherever it is now; that of the first if it has gone. */
static unsigned selected_row(const struct top_guests_live *live)
{
	for (guint i = 0; live->selected && i < live->guests.rows->len; i++)
		if (g_strcmp0(member_text(guest_at(live, i), "name"), live->selected) == 0)
			return i;
	return 0;
}

static void select_row(struct top_guests_live *live, int row)
{
	const int n = (int)live->guests.rows->len;

	g_free(live->selected);
	live->selected = n > 0 ? g_strdup(member_text(guest_at(live, (guint)CLAMP(row, 0, n - 1)), "name")) : NULL;
}

static void help_lines(GArray *lines)
{
	static const char *const texts[] = {
		"Enter            look into the selected guest; q comes back",
		"q, F10, Ctrl-C   quit",
		"h, ?, F1         this help; any key leaves it",
		"arrows, PgUp, PgDn, Home, End, j, k   select",
		"Ctrl-L           draw anew",
		NULL,
	};

	terminal_lines_keys(lines, texts);
}

static void live_draw(struct top_guests_live *live)
{
	g_autoptr(GArray) head = terminal_lines_new(), body = terminal_lines_new();
	const unsigned row = selected_row(live);
	unsigned room;

	if (live->help) {
		help_lines(body);
	} else {
		top_guests_title(head, &live->guests);
		top_guests_table(body, &live->guests, 0);
	}
	room = terminal_body_rows(head);
	if (row < live->first)
		live->first = row;
	else if (row >= live->first + room)
		live->first = row + 1 - MIN(room, row + 1);
	terminal_draw(&(struct terminal_page){
		.head = head,
		.body = body,
		.first = live->help ? 0 : live->first,
		.selected = live->help ? -1 : (int)row,
		.foot = live->message ? live->message : "q quit  h help  Enter look into a guest",
		.whole = live->whole,
	});
	live->whole = false;
}

static void live_act(struct top_guests_live *live, enum top_key key)
{
	const int row = (int)selected_row(live), page = 10;

	switch (key) {
	case TOP_KEY_QUIT:
		live->quit = true;
		break;
	case TOP_KEY_HELP:
		live->help = true;
		break;
	case TOP_KEY_FOLD:
		live->chosen = live->guests.rows->len > 0;
		break;
	case TOP_KEY_UP:
		select_row(live, row - 1);
		break;
	case TOP_KEY_DOWN:
		select_row(live, row + 1);
		break;
	case TOP_KEY_PAGE_UP:
		select_row(live, row - page);
		break;
	case TOP_KEY_PAGE_DOWN:
		select_row(live, row + page);
		break;
	case TOP_KEY_HOME:
		select_row(live, 0);
		break;
	case TOP_KEY_END:
		select_row(live, INT_MAX);
		break;
	case TOP_KEY_REDRAW:
	case TOP_KEY_RESIZE:
		live->whole = true;
		break;
	default:
		break;
	}
}

static void live_take_keys(struct top_guests_live *live)
{
	enum top_key key;

	while (!live->quit && !live->chosen && (key = top_key_next()) != TOP_KEY_NONE) {
		g_clear_pointer(&live->message, g_free);
		/* Any key leaves the help, and does nothing else. */
		if (live->help && key != TOP_KEY_QUIT && key != TOP_KEY_RESIZE)
			live->help = false;
		else
			live_act(live, key);
		live_draw(live);
	}
}

/* The newest list, and the loads if the interval is over or a guest is new. */
static void live_refresh(struct top_guests_live *live)
{
	json_t *list = top_finder_take(live->finder);
	const bool due = g_get_monotonic_time() - live->guests.read_us >= live->interval_us;

	if (list)
		top_guests_take(&live->guests, list);
	if (due)
		top_guests_read(&live->guests);
	if (list || due)
		live_draw(live);
}

static void live_run(struct top_guests_live *live)
{
	live->quit = live->chosen = live->help = false;
	live_draw(live);
	while (!live->quit && !live->chosen && !interrupted() && terminal_wait(TICK_MS)) {
		live_take_keys(live);
		live_refresh(live);
	}
}

bool top_guests_live_choose(struct top_guests_live *live, json_t **chosen, GError **error)
{
	*chosen = NULL;
	if (!terminal_open("--once prints a snapshot", error))
		return false;
	live_run(live);
	terminal_close();
	if (live->chosen)
		*chosen = json_deep_copy(guest_at(live, selected_row(live)));
	return true;
}
