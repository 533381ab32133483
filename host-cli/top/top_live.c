// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_live.h"

#include "terminal/terminal.h"
#include "top/top_keys.h"
#include "top/top_lines.h"
#include "ui/interrupt.h"

#define TICK_MS 100 /* how long a signal may wait; rings are drained that often */
#define BARS_MAX 8u /* vCPUs with a bar each, unless the user asks for more */

static const double intervals_s[] = {1, 2, 5, 10};
/* The first is what was asked for. */
static const char *const groupings[] = {NULL, "comm,pid", "comm,mode,sym", "module,mode", "cpu,mode"};

/* What the screen shows of a guest. */
struct screen {
	struct top_live *live;
	struct top_view view;
	struct column_list first_columns;
	unsigned grouping;
	int64_t refresh_us; /* when the interval ends */
	bool paused, help, each_vcpu, whole, quit;
	int selected; /* row of the table or the tree */
	unsigned first;
	GHashTable *folded;  /* paths of the call tree */
	GPtrArray *paths;    /* of its rows */
	const char *message; /* at the foot until the next key; NULL */
};

/* Takes what has come since the last time. `view`: of the live's profile; NULL. */
static bool live_drain(struct top_live *live, struct top_view *view, GError **error)
{
	g_autoptr(GByteArray) records = g_byte_array_new();
	bool fresh;

	if (!top_source_drain(live->source, records, &fresh, error))
		return false;
	if (fresh || top_profile_is_full(live->profile)) {
		if (view)
			top_view_forget(view);
		top_profile_begin(live->profile,
		                  json_is_true(json_object_get(top_source_session(live->source), "tasks")));
	}
	if (top_source_event(live->source))
		top_profile_add(live->profile, records, top_source_event(live->source));
	return true;
}

static int64_t interval_us(const struct top_live *live)
{
	return (int64_t)(live->interval_s * G_USEC_PER_SEC);
}

bool top_live_snapshot(struct top_live *live, struct top_view *view, GError **error)
{
	int64_t end_us;

	if (!top_view_init(view, live->source, error))
		return false;
	end_us = view->read_us + interval_us(live);
	while (!interrupted() && g_get_monotonic_time() < end_us) {
		int64_t left_ms = (end_us - g_get_monotonic_time()) / 1000 + 1;

		g_usleep((gulong)MIN(left_ms, TICK_MS) * 1000);
		if (!live_drain(live, NULL, error))
			return false;
	}
	return top_view_next(view, live->source, live->profile, &live->choice, error);
}

/* ---- the screen ---- */

static char *foot_text(const struct screen *screen)
{
	if (screen->message)
		return g_strdup(screen->message);
	return g_strdup_printf("q quit  h help  t %s  > group  a %s  p %s  s %g s",
	                       screen->live->tree ? "functions" : "call tree",
	                       screen->live->choice.all ? "interval" : "since start",
	                       screen->paused ? "go on" : "pause", screen->live->interval_s);
}

static GArray *body_lines(struct screen *screen)
{
	GArray *lines = terminal_lines_new();

	g_ptr_array_set_size(screen->paths, 0);
	if (screen->help)
		top_lines_help(lines);
	else if (screen->live->tree)
		top_lines_calls(lines, &screen->view, screen->folded, screen->paths);
	else
		top_lines_table(lines, &screen->view, 0);
	return lines;
}

/* Keeps the selected row within the table and in sight. */
static void screen_scroll(struct screen *screen, int n_rows, int room)
{
	screen->selected = CLAMP(screen->selected, 0, MAX(n_rows - 1, 0));
	if (screen->selected < (int)screen->first)
		screen->first = (unsigned)screen->selected;
	else if (screen->selected >= (int)screen->first + room)
		screen->first = (unsigned)MAX(screen->selected - room + 1, 0);
}

static void screen_draw(struct screen *screen)
{
	g_autoptr(GArray) head = terminal_lines_new(), body = body_lines(screen);
	g_autofree char *foot = foot_text(screen);
	unsigned rows, width;

	terminal_size(&rows, &width);
	if (!screen->help)
		top_lines_head(head, &screen->view, screen->paused, screen->each_vcpu, width);
	screen_scroll(screen, (int)body->len - 1, (int)terminal_body_rows(head));
	terminal_draw(&(struct terminal_page){
		.head = head,
		.body = body,
		.first = screen->help ? 0 : screen->first,
		.selected = screen->help ? -1 : screen->selected,
		.foot = foot,
		.whole = screen->whole,
	});
	screen->whole = false;
}

static bool screen_refresh(struct screen *screen, GError **error)
{
	screen->refresh_us = g_get_monotonic_time() + interval_us(screen->live);
	if (screen->paused)
		return true;
	return top_view_next(&screen->view, screen->live->source, screen->live->profile, &screen->live->choice, error);
}

/* ---- keys ---- */

static void screen_group(struct screen *screen, int step)
{
	const unsigned n = G_N_ELEMENTS(groupings);

	screen->grouping = (unsigned)((int)(screen->grouping + n) + step) % n;
	if (!groupings[screen->grouping])
		screen->live->choice.columns = screen->first_columns;
	else
		column_list_parse(groupings[screen->grouping], &screen->live->choice.columns, NULL);
	screen->selected = 0;
}

static void screen_next_interval(struct screen *screen)
{
	size_t i = 0;

	while (i < G_N_ELEMENTS(intervals_s) && intervals_s[i] <= screen->live->interval_s)
		i++;
	screen->live->interval_s = intervals_s[i % G_N_ELEMENTS(intervals_s)];
}

/* The tree needs call chains, which cost: they are recorded from now on. */
static bool screen_tree(struct screen *screen, GError **error)
{
	const json_t *session = top_source_session(screen->live->source);
	bool has_chains = g_strcmp0(json_string_value(json_object_get(session, "call-graph")), "none") != 0;
	g_autoptr(GError) why = NULL;

	screen->live->tree = !screen->live->tree;
	screen->selected = 0;
	if (!screen->live->tree || !session || has_chains)
		return true;
	if (top_source_add_chains(screen->live->source, &why)) {
		screen->message = "call chains are recorded from now on";
		return true;
	}
	if (why) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	screen->message = "that session has no call chains, and another client controls it";
	return true;
}

static void screen_fold(struct screen *screen)
{
	const char *path;

	if (!screen->live->tree || screen->selected >= (int)screen->paths->len)
		return;
	path = g_ptr_array_index(screen->paths, (guint)screen->selected);
	if (!g_hash_table_remove(screen->folded, path))
		g_hash_table_add(screen->folded, g_strdup(path));
}

static void screen_reset(struct screen *screen)
{
	top_view_forget(&screen->view);
	top_profile_reset(screen->live->profile);
}

static void screen_move(struct screen *screen, enum top_key key)
{
	const int page = 10;

	switch (key) {
	case TOP_KEY_UP:
		screen->selected--;
		break;
	case TOP_KEY_DOWN:
		screen->selected++;
		break;
	case TOP_KEY_PAGE_UP:
		screen->selected -= page;
		break;
	case TOP_KEY_PAGE_DOWN:
		screen->selected += page;
		break;
	case TOP_KEY_HOME:
		screen->selected = 0;
		break;
	case TOP_KEY_END:
		screen->selected = INT_MAX;
		break;
	default:
		break;
	}
}

/* Those that change what is shown of the interval that was last. */
static void screen_choose(struct screen *screen, enum top_key key)
{
	if (key == TOP_KEY_ALL)
		screen->live->choice.all = !screen->live->choice.all;
	else if (key == TOP_KEY_RESET)
		screen_reset(screen);
	else
		screen_group(screen, key == TOP_KEY_GROUP_NEXT ? 1 : -1);
	top_view_choose(&screen->view, screen->live->profile, &screen->live->choice);
}

static bool screen_act(struct screen *screen, enum top_key key, GError **error)
{
	switch (key) {
	case TOP_KEY_QUIT:
		screen->quit = true;
		return true;
	case TOP_KEY_HELP:
		screen->help = true;
		return true;
	case TOP_KEY_NOW:
		return screen_refresh(screen, error);
	case TOP_KEY_INTERVAL:
		screen_next_interval(screen);
		return true;
	case TOP_KEY_PAUSE:
		screen->paused = !screen->paused;
		return true;
	case TOP_KEY_ALL:
	case TOP_KEY_RESET:
	case TOP_KEY_GROUP_NEXT:
	case TOP_KEY_GROUP_PREVIOUS:
		screen_choose(screen, key);
		return true;
	case TOP_KEY_TREE:
		return screen_tree(screen, error);
	case TOP_KEY_FOLD:
		screen_fold(screen);
		return true;
	case TOP_KEY_BARS:
		screen->each_vcpu = !screen->each_vcpu;
		return true;
	case TOP_KEY_REDRAW:
	case TOP_KEY_RESIZE:
		screen->whole = true;
		return true;
	default:
		screen_move(screen, key);
		return true;
	}
}

static bool screen_take_keys(struct screen *screen, GError **error)
{
	enum top_key key;

	while (!screen->quit && (key = top_key_next()) != TOP_KEY_NONE) {
		screen->message = NULL;
		/* Any key leaves the help, and does nothing else. */
		if (screen->help && key != TOP_KEY_QUIT && key != TOP_KEY_RESIZE)
			screen->help = false;
		else if (!screen_act(screen, key, error))
			return false;
		screen_draw(screen);
	}
	return true;
}

/* ---- the loop ---- */

/* False: the terminal is gone. */
static bool wait_for_key(const struct screen *screen)
{
	const int64_t left_ms = (screen->refresh_us - g_get_monotonic_time()) / 1000 + 1;

	return terminal_wait((int)CLAMP(left_ms, 0, TICK_MS));
}

static bool screen_run(struct screen *screen, GError **error)
{
	if (!screen_refresh(screen, error))
		return false;
	screen_draw(screen);
	while (!screen->quit && !interrupted() && wait_for_key(screen)) {
		if (!live_drain(screen->live, &screen->view, error) || !screen_take_keys(screen, error))
			return false;
		if (g_get_monotonic_time() < screen->refresh_us || screen->quit)
			continue;
		if (!screen_refresh(screen, error))
			return false;
		screen_draw(screen);
	}
	return true;
}

bool top_live_run(struct top_live *live, GError **error)
{
	g_autofree struct screen *screen = g_new0(struct screen, 1);
	bool done;

	screen->live = live;
	screen->first_columns = live->choice.columns;
	if (!top_view_init(&screen->view, live->source, error))
		return false;
	screen->each_vcpu = screen->view.n_vcpus <= BARS_MAX;
	screen->folded = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	screen->paths = g_ptr_array_new_with_free_func(g_free);
	done = terminal_open("--once prints a snapshot", error);
	if (done) {
		done = screen_run(screen, error);
		terminal_close();
	}
	g_hash_table_unref(screen->folded);
	g_ptr_array_unref(screen->paths);
	top_view_clear(&screen->view);
	return done;
}
