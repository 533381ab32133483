// SPDX-License-Identifier: BSD-2-Clause
#include "browse/browse.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "browse/browse_list.h"
#include "ui/interrupt.h"
#include "ui/text.h"

#define TICK_MS 1000 /* signals are looked at as often */
#define TEXT_MAX 200u

enum shown { SHOWN_ROWS, SHOWN_CODE, SHOWN_HELP };

/* A line that scrolls; of each of what is shown. */
struct spot {
	unsigned first;
	int selected;
};

struct browse {
	struct input *input;
	const struct report *report;
	struct annotation_options annotation;
	struct browse_list *list;
	size_t table;
	enum shown shown, under_help;
	struct spot rows, code;
	GArray *code_lines; /* NULL: none */
	GString *typed;     /* what is being typed behind `prompt`; NULL: nothing is */
	char prompt;        /* '/' or 'f' */
	char *search;       /* what was looked for last */
	char *filter;
	char *message;
	bool quit, whole;
};

/* ---- drawing ---- */

static GArray *help_lines(void)
{
	static const char *const texts[] = {
		"Enter, a              the code of the function, with its samples",
		"right, +, space       unfold a row: its callers; again: fold it",
		"left, -               fold a row, or go to the one that it is below",
		"e, c                  unfold all below a row; fold everything",
		"f                     only rows with a text; nothing typed: all",
		"/                     search; n, N: the next, the one before",
		"Tab                   the next event",
		"arrows, PgUp, PgDn, Home, End, j, k   select",
		"Ctrl-L                draw anew",
		"?, h, F1              this help; any key leaves it",
		"q, Esc                leave the code; then the report",
		"Ctrl-C, F10           leave the report",
		NULL,
	};
	GArray *lines = terminal_lines_new();

	terminal_lines_keys(lines, texts);
	return lines;
}

static GArray *lines_copy(const GArray *lines)
{
	GArray *copy = terminal_lines_new();

	for (guint i = 0; i < lines->len; i++) {
		const struct terminal_line *line = &g_array_index(lines, struct terminal_line, i);

		terminal_line_add(copy, line->style, g_strdup(line->text));
	}
	return copy;
}

static GArray *body_lines(const struct browse *browse)
{
	switch (browse->shown) {
	case SHOWN_HELP:
		return help_lines();
	case SHOWN_CODE:
		return lines_copy(browse->code_lines);
	default:
		return browse_list_lines(browse->list);
	}
}

static void head_lines(const struct browse *browse, GArray *head)
{
	const struct report_table *table = &browse->report->tables[browse->table];
	const struct recording_event *event = table->event;
	g_autofree char *rate = event ? recording_rate_text(browse->input, event) : NULL;

	terminal_line_add(
		head, TERMINAL_TITLE,
		g_strdup_printf("%s  %s%s%s, %" G_GUINT64_FORMAT " samples over %.3f s, lost %" G_GUINT64_FORMAT,
	                        browse->input->path, event ? event->name : "all events", rate ? ", " : "",
	                        rate ? rate : "", table->samples,
	                        (double)(browse->report->counts.last_ns - browse->report->counts.first_ns) / 1e9,
	                        record_losses_samples(&browse->report->input->losses)));
}

static char *foot_text(const struct browse *browse)
{
	g_autofree char *only = browse->filter ? g_strdup_printf("only \"%s\"  ", browse->filter) : g_strdup("");

	if (browse->typed)
		return g_strdup_printf(" %s%s_",
		                       browse->prompt == '/' ? "search: " : "only rows with: ", browse->typed->str);
	if (browse->message)
		return g_strdup_printf(" %s", browse->message);
	if (browse->shown == SHOWN_HELP)
		return g_strdup(" any key goes back");
	if (browse->shown == SHOWN_CODE)
		return g_strdup(" q back  / search  ? help");
	return g_strdup_printf(" %sEnter code  right unfold  f filter  / search  %s? help  q quit", only,
	                       browse->report->n_tables > 1 ? "Tab event  " : "");
}

static struct spot *spot_of(struct browse *browse)
{
	return browse->shown == SHOWN_CODE ? &browse->code : &browse->rows;
}

/* Keeps the selected line within the others and in sight. */
static void spot_keep(struct spot *spot, int n, int room)
{
	spot->selected = CLAMP(spot->selected, 0, MAX(n - 1, 0));
	if (spot->selected < (int)spot->first)
		spot->first = (unsigned)spot->selected;
	else if (spot->selected >= (int)spot->first + room)
		spot->first = (unsigned)MAX(spot->selected - room + 1, 0);
}

static void draw(struct browse *browse)
{
	g_autoptr(GArray) head = terminal_lines_new(), body = body_lines(browse);
	g_autofree char *line = foot_text(browse), *foot = text_printable(line);
	const bool help = browse->shown == SHOWN_HELP;
	struct spot *spot = spot_of(browse);

	head_lines(browse, head);
	if (!help)
		spot_keep(spot, (int)body->len - 1, (int)terminal_body_rows(head));
	terminal_draw(&(struct terminal_page){
		.head = head,
		.body = body,
		.first = help ? 0 : spot->first,
		.selected = help ? -1 : spot->selected,
		.foot = foot,
		.whole = browse->whole,
	});
	browse->whole = false;
}

static void say(struct browse *browse, char *message)
{
	g_free(browse->message);
	browse->message = message;
}

/* ---- a function's code ---- */

static GArray *text_lines(const char *text)
{
	g_auto(GStrv) parts = g_strsplit(text, "\n", -1);
	GArray *lines = terminal_lines_new();
	const guint n = g_strv_length(parts);

	for (guint i = 0; i + (n > 0 && parts[n - 1][0] == '\0') < n; i++)
		terminal_line_add(lines, i == 0 ? TERMINAL_HEAD : TERMINAL_PLAIN, g_strdup(parts[i]));
	return lines;
}

static char *annotation_text(const struct annotation *annotation)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return NULL;
	annotation_print_text(annotation, stream);
	fclose(stream);
	return text;
}

static void code_show(struct browse *browse)
{
	struct annotation_options wanted = browse->annotation;
	g_autoptr(GError) error = NULL;

	wanted.symbol = browse_list_symbol(browse->list, (unsigned)browse->rows.selected, &wanted.module);
	if (!wanted.symbol) {
		say(browse, g_strdup("these rows are of no function: --sort mode,sym"));
		return;
	}
	struct annotation *annotation = annotation_new(browse->input, &wanted, &error);
	char *text = annotation ? annotation_text(annotation) : NULL;

	annotation_free(annotation);
	if (!text) {
		say(browse, g_strdup(error ? error->message : "out of memory"));
		return;
	}
	g_clear_pointer(&browse->code_lines, g_array_unref);
	browse->code_lines = text_lines(text);
	browse->code = (struct spot){0};
	browse->shown = SHOWN_CODE;
	free(text);
}

/* ---- keys ---- */

/* From the selected line on, or from the one behind or before it. */
static void search(struct browse *browse, int offset, int step)
{
	g_autoptr(GArray) lines = body_lines(browse);
	struct spot *spot = spot_of(browse);
	int found;

	if (!browse->search)
		return;
	found = browse_lines_search(lines, browse->search, spot->selected + offset, step);
	if (found >= 0)
		spot->selected = found;
	else
		say(browse, g_strdup_printf("\"%s\" is not there", browse->search));
}

static void filter_set(struct browse *browse, const char *text)
{
	g_free(browse->filter);
	browse->filter = text[0] != '\0' ? g_strdup(text) : NULL;
	browse_list_filter(browse->list, browse->filter);
	browse->rows = (struct spot){0};
	if (browse_list_rows(browse->list) == 0)
		say(browse, g_strdup_printf("no row has \"%s\"; f changes that", text));
}

static void typed_take(struct browse *browse, bool done)
{
	g_autofree char *text = g_string_free(g_steal_pointer(&browse->typed), FALSE);

	if (!done)
		return;
	if (browse->prompt == 'f') {
		filter_set(browse, text);
	} else if (text[0] != '\0') {
		g_free(browse->search);
		browse->search = g_steal_pointer(&text);
		search(browse, 0, 1);
	}
}

static void typing(struct browse *browse, int key)
{
	GString *typed = browse->typed;

	if (key == TERMINAL_KEY_ENTER || key == TERMINAL_KEY_ESCAPE || key == TERMINAL_KEY_INTERRUPT)
		typed_take(browse, key == TERMINAL_KEY_ENTER);
	else if (key == TERMINAL_KEY_BACKSPACE)
		g_string_truncate(typed, typed->len > 0 ? typed->len - 1 : 0);
	else if (key >= ' ' && key < 0x7f && typed->len < TEXT_MAX)
		g_string_append_c(typed, (char)key);
}

static void move(struct browse *browse, int key)
{
	g_autoptr(GArray) head = terminal_lines_new();
	struct spot *spot = spot_of(browse);

	head_lines(browse, head);
	const int page = MAX((int)terminal_body_rows(head) - 1, 1);

	switch (key) {
	case TERMINAL_KEY_UP:
	case 'k':
		spot->selected--;
		break;
	case TERMINAL_KEY_DOWN:
	case 'j':
		spot->selected++;
		break;
	case TERMINAL_KEY_PAGE_UP:
		spot->selected -= page;
		break;
	case TERMINAL_KEY_PAGE_DOWN:
		spot->selected += page;
		break;
	case TERMINAL_KEY_HOME:
		spot->selected = 0;
		break;
	case TERMINAL_KEY_END:
		spot->selected = INT_MAX;
		break;
	default:
		break;
	}
}

static void table_show(struct browse *browse, size_t table)
{
	browse_list_free(browse->list);
	browse->table = table;
	browse->list = browse_list_new(browse->report, table);
	browse_list_filter(browse->list, browse->filter);
	browse->rows = (struct spot){0};
}

static void fold(struct browse *browse, bool leave)
{
	const unsigned row = (unsigned)browse->rows.selected;

	if (leave && !browse_list_is_open(browse->list, row))
		browse->rows.selected = (int)browse_list_parent(browse->list, row);
	else if (!browse_list_fold(browse->list, row) && !leave)
		say(browse, g_strdup("no call chain leads to it; -g records call chains"));
}

/* Those of the rows alone. */
static void rows_act(struct browse *browse, int key)
{
	switch (key) {
	case TERMINAL_KEY_ENTER:
	case 'a':
		code_show(browse);
		break;
	case TERMINAL_KEY_RIGHT:
	case '+':
	case ' ':
		fold(browse, false);
		break;
	case TERMINAL_KEY_LEFT:
	case '-':
		fold(browse, true);
		break;
	case 'e':
		browse_list_unfold_all(browse->list, (unsigned)browse->rows.selected);
		break;
	case 'c':
		browse_list_fold_all(browse->list);
		browse->rows = (struct spot){0};
		break;
	case 'f':
		browse->prompt = 'f';
		browse->typed = g_string_new(browse->filter);
		break;
	case '\t':
		table_show(browse, (browse->table + 1) % browse->report->n_tables);
		break;
	default:
		move(browse, key);
		break;
	}
}

static void leave(struct browse *browse)
{
	if (browse->shown == SHOWN_ROWS)
		browse->quit = true;
	browse->shown = SHOWN_ROWS;
}

static void act(struct browse *browse, int key)
{
	switch (key) {
	case TERMINAL_KEY_INTERRUPT:
	case TERMINAL_KEY_F10:
		browse->quit = true;
		break;
	case 'q':
	case TERMINAL_KEY_ESCAPE:
		leave(browse);
		break;
	case '?':
	case 'h':
	case TERMINAL_KEY_F1:
		browse->under_help = browse->shown;
		browse->shown = SHOWN_HELP;
		break;
	case '/':
		browse->prompt = '/';
		browse->typed = g_string_new(NULL);
		break;
	case 'n':
		search(browse, 1, 1);
		break;
	case 'N':
		search(browse, -1, -1);
		break;
	default:
		if (browse->shown == SHOWN_ROWS)
			rows_act(browse, key);
		else
			move(browse, key);
		break;
	}
}

static void take_key(struct browse *browse, int key)
{
	if (key == TERMINAL_KEY_RESIZE || key == TERMINAL_KEY_REDRAW) {
		browse->whole = true;
		return;
	}
	say(browse, NULL);
	if (browse->typed)
		typing(browse, key);
	else if (browse->shown == SHOWN_HELP && key != TERMINAL_KEY_INTERRUPT)
		browse->shown = browse->under_help;
	else
		act(browse, key);
}

static void keys_run(struct browse *browse)
{
	int key;

	draw(browse);
	while (!browse->quit && !interrupted() && terminal_wait(TICK_MS))
		while (!browse->quit && (key = terminal_key()) != TERMINAL_KEY_NONE) {
			take_key(browse, key);
			draw(browse);
		}
}

bool browse_run(struct input *input, const struct report *report, const struct annotation_options *annotation,
                GError **error)
{
	struct browse browse = {.input = input, .report = report, .annotation = *annotation};

	if (!terminal_open("without --tui the report is printed", error))
		return false;
	interrupt_watch();
	table_show(&browse, 0);
	keys_run(&browse);
	terminal_close();
	browse_list_free(browse.list);
	if (browse.code_lines)
		g_array_unref(browse.code_lines);
	if (browse.typed)
		g_string_free(browse.typed, TRUE);
	g_free(browse.search);
	g_free(browse.filter);
	g_free(browse.message);
	return true;
}
