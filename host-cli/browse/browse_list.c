// SPDX-License-Identifier: BSD-2-Clause
#include "browse/browse_list.h"

#include <string.h>

#include "ui/column_cell.h"

#define STRONG_SHARE 0.05 /* rows from here on stand out */
#define COLUMN_WIDTH_MAX 80
#define DEPTH_MAX 128u
#define UNFOLD_MAX 4096u /* rows that are unfolded at once */

/* Where in the call tree a node stands, and what the row above all of them took below there. */
struct taken {
	size_t at;
	uint64_t period, samples;
};

struct node {
	const struct profile_row *row; /* of the table; NULL: a caller */
	const struct call_node *call;  /* a caller; NULL */
	GArray *places;                /* of struct taken; NULL: not looked for yet */
	GPtrArray *below;              /* of struct node, the largest first; NULL: not looked for yet */
	uint64_t period, samples;
	unsigned depth;
	bool open;
};

struct browse_list {
	const struct report *report;
	const struct report_table *table;
	size_t *parents;  /* of the call nodes */
	GPtrArray *top;   /* of struct node */
	GPtrArray *shown; /* borrowed, in the order of the lines */
	GArray *owners;   /* unsigned: of each shown one, the number of that which it is below */
	char *filter;     /* casefolded; NULL: all */
	bool has_symbols; /* rows are of function, module and mode alone */
};

static void node_free(void *data)
{
	struct node *node = data;

	if (node->places)
		g_array_unref(node->places);
	if (node->below)
		g_ptr_array_unref(node->below);
	g_free(node);
}

/* ---- callers ---- */

static bool columns_tell_functions(const struct column_list *sorted)
{
	static const char *const names[] = {"sym", "module", "mode", NULL};

	for (size_t i = 0; i < sorted->n; i++)
		if (!g_strv_contains(names, sorted->column[i]->name))
			return false;
	return column_list_has(sorted, "sym");
}

static bool is_row_of(const struct column_list *sorted, const struct profile_row *row, const struct call_node *node)
{
	return strcmp(row->symbol, node->symbol) == 0 &&
	       (!column_list_has(sorted, "mode") || row->mode == node->mode) &&
	       (!column_list_has(sorted, "module") || strcmp(row->module, node->module) == 0);
}

static void row_find_places(const struct browse_list *list, struct node *node)
{
	const struct report_table *table = list->table;

	for (size_t i = 1; i < table->n_calls; i++) {
		const struct call_node *call = &table->calls[i];
		const struct taken taken = {i, call->self_period, call->self_samples};

		if (call->self_samples != 0 && is_row_of(&list->report->columns, node->row, call))
			g_array_append_val(node->places, taken);
	}
}

static bool is_same(const struct call_node *a, const struct call_node *b)
{
	return a->mode == b->mode && strcmp(a->symbol, b->symbol) == 0 && strcmp(a->module, b->module) == 0;
}

static struct node *caller_of(struct node *node, const struct call_node *call)
{
	for (guint i = 0; i < node->below->len; i++) {
		struct node *known = g_ptr_array_index(node->below, i);

		if (is_same(known->call, call))
			return known;
	}
	struct node *made = g_new0(struct node, 1);

	made->call = call;
	made->depth = node->depth + 1;
	made->places = g_array_new(FALSE, FALSE, sizeof(struct taken));
	g_ptr_array_add(node->below, made);
	return made;
}

static int nodes_compare(gconstpointer left, gconstpointer right)
{
	const struct node *a = *(struct node *const *)left, *b = *(struct node *const *)right;

	if (a->period != b->period)
		return a->period > b->period ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return strcmp(a->call->symbol, b->call->symbol);
}

static void node_find_below(const struct browse_list *list, struct node *node)
{
	if (node->below)
		return;
	node->below = g_ptr_array_new_with_free_func(node_free);
	if (!list->has_symbols || !list->table->calls || node->depth >= DEPTH_MAX)
		return;
	if (!node->places) {
		node->places = g_array_new(FALSE, FALSE, sizeof(struct taken));
		row_find_places(list, node);
	}
	for (guint i = 0; i < node->places->len; i++) {
		const struct taken *place = &g_array_index(node->places, struct taken, i);
		const size_t parent = list->parents[place->at];
		const struct taken above = {parent, place->period, place->samples};

		if (parent == 0)
			continue;
		struct node *caller = caller_of(node, &list->table->calls[parent]);

		caller->period += place->period;
		caller->samples += place->samples;
		g_array_append_val(caller->places, above);
	}
	g_ptr_array_sort(node->below, nodes_compare);
}

/* ---- what is shown ---- */

static double share_of(const struct browse_list *list, const struct node *node)
{
	const struct profile_row row = {.period = node->period, .samples = node->samples};

	return report_share(list->table, &row);
}

static bool has_text(const char *text, const char *folded)
{
	g_autofree char *own = g_utf8_casefold(text, -1);

	return strstr(own, folded) != NULL;
}

static bool row_passes(const struct browse_list *list, const struct profile_row *row)
{
	const struct column_list *sorted = &list->report->columns;

	for (size_t i = 0; list->filter && i < sorted->n; i++) {
		g_autofree char *text = column_cell_text(sorted->column[i], row);

		if (has_text(text, list->filter))
			return true;
	}
	return !list->filter;
}

static void node_show(struct browse_list *list, struct node *node, unsigned owner)
{
	const unsigned number = list->shown->len;

	g_ptr_array_add(list->shown, node);
	owner = node->depth == 0 ? number : owner;
	g_array_append_val(list->owners, owner);
	for (guint i = 0; node->open && i < node->below->len; i++)
		node_show(list, g_ptr_array_index(node->below, i), number);
}

static void show(struct browse_list *list)
{
	g_ptr_array_set_size(list->shown, 0);
	g_array_set_size(list->owners, 0);
	for (guint i = 0; i < list->top->len; i++) {
		struct node *node = g_ptr_array_index(list->top, i);

		if (row_passes(list, node->row))
			node_show(list, node, 0);
	}
}

static struct node *node_at(const struct browse_list *list, unsigned row)
{
	return row < list->shown->len ? g_ptr_array_index(list->shown, row) : NULL;
}

struct browse_list *browse_list_new(const struct report *report, size_t table)
{
	struct browse_list *list = g_new0(struct browse_list, 1);

	list->report = report;
	list->table = &report->tables[table];
	list->top = g_ptr_array_new_with_free_func(node_free);
	list->shown = g_ptr_array_new();
	list->owners = g_array_new(FALSE, FALSE, sizeof(unsigned));
	list->has_symbols = columns_tell_functions(&report->columns);
	list->parents = g_new0(size_t, list->table->n_calls);
	for (size_t i = 0; i < list->table->n_calls; i++)
		for (size_t child = list->table->calls[i].first_child; child != 0;
		     child = list->table->calls[child].next_sibling)
			list->parents[child] = i;
	for (size_t i = 0; i < list->table->n_rows; i++) {
		struct node *node = g_new0(struct node, 1);

		node->row = &list->table->rows[i];
		node->period = node->row->period;
		node->samples = node->row->samples;
		g_ptr_array_add(list->top, node);
	}
	show(list);
	return list;
}

void browse_list_free(struct browse_list *list)
{
	if (!list)
		return;
	g_ptr_array_unref(list->shown);
	g_ptr_array_unref(list->top);
	g_array_unref(list->owners);
	g_free(list->parents);
	g_free(list->filter);
	g_free(list);
}

void browse_list_filter(struct browse_list *list, const char *text)
{
	g_free(list->filter);
	list->filter = text && text[0] != '\0' ? g_utf8_casefold(text, -1) : NULL;
	show(list);
}

unsigned browse_list_rows(const struct browse_list *list)
{
	return list->shown->len;
}

/* ---- folding ---- */

bool browse_list_fold(struct browse_list *list, unsigned row)
{
	struct node *node = node_at(list, row);

	if (!node)
		return false;
	node_find_below(list, node);
	if (node->below->len == 0)
		return false;
	node->open = !node->open;
	show(list);
	return true;
}

static void node_unfold(const struct browse_list *list, struct node *node, unsigned *left)
{
	node_find_below(list, node);
	node->open = node->below->len != 0;
	for (guint i = 0; i<node->below->len && * left> 0; i++) {
		--*left;
		node_unfold(list, g_ptr_array_index(node->below, i), left);
	}
}

void browse_list_unfold_all(struct browse_list *list, unsigned row)
{
	struct node *node = node_at(list, row);
	unsigned left = UNFOLD_MAX;

	if (node)
		node_unfold(list, node, &left);
	show(list);
}

static void node_fold(struct node *node)
{
	node->open = false;
	for (guint i = 0; node->below && i < node->below->len; i++)
		node_fold(g_ptr_array_index(node->below, i));
}

void browse_list_fold_all(struct browse_list *list)
{
	for (guint i = 0; i < list->top->len; i++)
		node_fold(g_ptr_array_index(list->top, i));
	show(list);
}

unsigned browse_list_parent(const struct browse_list *list, unsigned row)
{
	return row < list->owners->len ? g_array_index(list->owners, unsigned, row) : row;
}

bool browse_list_is_open(const struct browse_list *list, unsigned row)
{
	const struct node *node = node_at(list, row);

	return node && node->open;
}

/* ---- lines ---- */

/* "-" can be folded, "+" unfolded; what is below a caller is not known before it was unfolded. */
static char mark_of(const struct browse_list *list, const struct node *node)
{
	if (node->open)
		return '-';
	if (node->below)
		return node->below->len != 0 ? '+' : ' ';
	return list->has_symbols && list->table->calls ? '+' : ' ';
}

static char *caller_text(const struct browse_list *list, const struct node *node)
{
	return g_strdup_printf("%c%7.2f%%  %9" G_GUINT64_FORMAT "  %*s< %s (%s)", mark_of(list, node),
	                       share_of(list, node) * 100, node->samples, (int)(2 * node->depth), "",
	                       node->call->symbol, node->call->module);
}

static char *row_text(const struct browse_list *list, const struct node *node, const int *widths)
{
	const struct column_list *sorted = &list->report->columns;
	g_autoptr(GString) cells = g_string_new(NULL);

	for (size_t i = 0; i < sorted->n; i++) {
		g_autofree char *text = column_cell_text(sorted->column[i], node->row);

		column_cell_append(cells, sorted->column[i], text, widths[i], i + 1 == sorted->n);
	}
	return g_strdup_printf("%c%7.2f%%  %9" G_GUINT64_FORMAT "%s", mark_of(list, node), share_of(list, node) * 100,
	                       node->samples, cells->str);
}

GArray *browse_list_lines(const struct browse_list *list)
{
	const struct column_list *sorted = &list->report->columns;
	GArray *lines = terminal_lines_new();
	g_autoptr(GString) head = g_string_new(NULL);
	int widths[COLUMN_LIST_MAX];

	for (size_t i = 0; i < sorted->n; i++) {
		widths[i] =
			column_cells_width(sorted->column[i], list->table->rows, list->table->n_rows, COLUMN_WIDTH_MAX);
		column_cell_append(head, sorted->column[i], sorted->column[i]->header, widths[i], i + 1 == sorted->n);
	}
	terminal_line_add(lines, TERMINAL_HEAD, g_strdup_printf(" %8s  %9s%s", "Share", "Samples", head->str));
	for (guint i = 0; i < list->shown->len; i++) {
		const struct node *node = g_ptr_array_index(list->shown, i);
		const enum terminal_style style = node->depth > 0                        ? TERMINAL_DIM
		                                  : share_of(list, node) >= STRONG_SHARE ? TERMINAL_STRONG
		                                                                         : TERMINAL_PLAIN;

		terminal_line_add(lines, style, node->row ? row_text(list, node, widths) : caller_text(list, node));
	}
	return lines;
}

int browse_lines_search(const GArray *lines, const char *text, int from, int step)
{
	g_autofree char *folded = g_utf8_casefold(text, -1);
	const int n = (int)lines->len - 1;

	for (int i = 0; i < n; i++) {
		const int row = ((from + i * step) % n + n) % n;

		if (has_text(g_array_index(lines, struct terminal_line, row + 1).text, folded))
			return row;
	}
	return -1;
}

const char *browse_list_symbol(const struct browse_list *list, unsigned row, const char **module)
{
	const struct node *node = node_at(list, row);

	*module = NULL;
	if (!node)
		return NULL;
	if (node->call) {
		*module = node->call->module;
		return node->call->symbol;
	}
	if (column_list_has(&list->report->columns, "module"))
		*module = node->row->module;
	return column_list_has(&list->report->columns, "sym") ? node->row->symbol : NULL;
}
