// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_query.h"

#include <string.h>
#include <vprof/probe.h>

#include "lib/script/script_tree.h"
#include "trace/trace_aggregate.h"
#include "trace/trace_filter.h"
#include "trace/trace_script.h"
#include "ui/text.h"

#define COLUMNS_MAX (SCRIPT_KEYS_MAX - 1) /* beside the number of the probe */
#define KNOWN_BIT 10u                     /* of that number, for the first column; the probe is below */
#define KEYS_DEFAULT 16384u

_Static_assert(VPROF_PROBES_MAX <= 1u << KNOWN_BIT, "a probe's number is below the bits");

enum column_kind { COLUMN_PROBE, COLUMN_NUMBER, COLUMN_TEXT, COLUMN_KERNEL, COLUMN_USER, COLUMN_STACK };

/* What a key has of a field. */
struct column {
	const char *field;
	enum column_kind kind;
};

/* A map, and what it becomes. */
struct table {
	char *name;            /* of the map */
	char **fields;         /* of a count */
	char *title;           /* the same with commas; of a histogram, its field */
	GArray *columns;       /* of struct column: first those of the count, then others that filters are about */
	guint n_own;           /* of the count */
	GArray *of_filters;    /* guint: the column of each residual filter */
	bool is_hist;          /* `histogram`, and not `counts` */
	struct column counted; /* of a histogram */
	struct trace_counts *counts;
	struct trace_histogram histogram;
	uint64_t sum; /* of all rows that match */
};

struct trace_query {
	GArray *filters;             /* of struct trace_filter */
	GArray *residual;            /* of struct trace_filter *: what only this side can tell */
	GPtrArray *tables;           /* of struct table; the first has how many events were counted; empty: events */
	GPtrArray *fields;           /* each once, up to NULL; borrowed */
	struct trace_script *script; /* NULL: the probes have no programs */
	struct trace_source *source; /* borrowed */
	uint64_t limit;
};

/* ---- what is asked for ---- */

static void table_free(gpointer data)
{
	struct table *table = data;

	g_free(table->name);
	g_strfreev(table->fields);
	g_free(table->title);
	g_array_unref(table->columns);
	g_array_unref(table->of_filters);
	trace_counts_free(table->counts);
	g_free(table);
}

/* `fields` with commas; NULL: all events together. */
static struct table *add_table(struct trace_query *query, const char *fields, bool is_hist)
{
	struct table *table = g_new0(struct table, 1);

	table->name = g_strdup_printf("@table%u", query->tables->len);
	table->fields = g_strsplit(fields && !is_hist ? fields : "", ",", -1);
	table->title = is_hist ? g_strdup(fields) : g_strjoinv(", ", table->fields);
	table->columns = g_array_new(FALSE, FALSE, sizeof(struct column));
	table->of_filters = g_array_new(FALSE, FALSE, sizeof(guint));
	table->is_hist = is_hist;
	table->counts = is_hist ? NULL : trace_counts_new(table->title);
	table->histogram.field = table->title;
	g_ptr_array_add(query->tables, table);
	return table;
}

static void add_field(struct trace_query *query, const char *field)
{
	if (!g_ptr_array_find_with_equal_func(query->fields, field, g_str_equal, NULL))
		g_ptr_array_add(query->fields, (gpointer)field);
}

static bool add_filters(struct trace_query *query, char **filters, GError **error)
{
	for (; filters && *filters; filters++) {
		struct trace_filter filter;

		if (!trace_filter_parse(*filters, &filter, error))
			return false;
		g_array_append_val(query->filters, filter);
		add_field(query, filter.field);
	}
	return true;
}

static void add_counts(struct trace_query *query, char **counts)
{
	for (; counts && *counts; counts++) {
		const struct table *table = add_table(query, *counts, false);

		for (char **field = table->fields; *field; field++)
			add_field(query, *field);
	}
}

static void filter_clear(gpointer data)
{
	trace_filter_clear(data);
}

struct trace_query *trace_query_new(const struct trace_query_options *options, GError **error)
{
	struct trace_query *query = g_new0(struct trace_query, 1);

	query->filters = g_array_new(FALSE, FALSE, sizeof(struct trace_filter));
	g_array_set_clear_func(query->filters, filter_clear);
	query->residual = g_array_new(FALSE, FALSE, sizeof(const struct trace_filter *));
	query->tables = g_ptr_array_new_with_free_func(table_free);
	query->fields = g_ptr_array_new();
	if (options->counts || options->hists)
		add_table(query, NULL, false);
	add_counts(query, options->counts);
	for (char **hist = options->hists; hist && *hist; hist++)
		add_field(query, add_table(query, *hist, true)->title);
	if (add_filters(query, options->filters, error)) {
		g_ptr_array_add(query->fields, NULL);
		return query;
	}
	trace_query_free(query);
	return NULL;
}

void trace_query_free(struct trace_query *query)
{
	if (!query)
		return;
	trace_script_free(query->script);
	g_array_unref(query->residual);
	g_array_unref(query->filters);
	g_ptr_array_unref(query->tables);
	g_ptr_array_unref(query->fields);
	g_free(query);
}

const char *const *trace_query_fields(const struct trace_query *query)
{
	return (const char *const *)query->fields->pdata;
}

bool trace_query_counts(const struct trace_query *query)
{
	return query->tables->len > 0;
}

bool trace_query_needs_stack(const struct trace_query *query)
{
	bool needs = false;

	for (guint i = 0; i < query->filters->len && !trace_query_counts(query); i++)
		needs |= trace_field_is_stack(g_array_index(query->filters, struct trace_filter, i).field);
	return needs;
}

/* ---- columns ---- */

static bool is_text(const struct trace_source *source, const char *field)
{
	bool found = strcmp(field, "comm") == 0;

	for (size_t i = 0; i < trace_source_count(source) && !found; i++) {
		const struct trace_path *path = trace_probe_path(trace_source_probe(source, i), field);

		found = path && path->is_text;
	}
	return found;
}

static struct column column_of(const struct trace_query *query, const char *field)
{
	static const struct {
		const char *name;
		enum column_kind kind;
	} names[] = {
		{"probe", COLUMN_PROBE}, {"kstack", COLUMN_KERNEL}, {"ustack", COLUMN_USER}, {"stack", COLUMN_STACK}};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (strcmp(names[i].name, field) == 0)
			return (struct column){field, names[i].kind};
	return (struct column){field, is_text(query->source, field) ? COLUMN_TEXT : COLUMN_NUMBER};
}

static void add_column(const struct trace_query *query, struct table *table, const char *field)
{
	const struct column column = column_of(query, field);

	g_array_append_val(table->columns, column);
}

static unsigned column_words(const struct column *column)
{
	switch (column->kind) {
	case COLUMN_PROBE:
		return 0;
	case COLUMN_NUMBER:
		return 1;
	case COLUMN_TEXT:
		return VPROF_PROGRAM_TEXT_WORDS;
	case COLUMN_STACK:
		return 2 * VPROF_PROGRAM_STACK_WORDS;
	default:
		return VPROF_PROGRAM_STACK_WORDS;
	}
}

static bool check_key(const struct table *table, unsigned parts, unsigned words, GError **error)
{
	if (parts > COLUMNS_MAX)
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_FILTER,
			"--count-by %s: %u fields make up its key, with those of filters by a pattern or a function's name, and stack for two; there can be %u",
			table->title, parts, COLUMNS_MAX);
	else if (words >= VPROF_MAP_KEY_WORDS_MAX)
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_FILTER,
			"--count-by %s: its key is too long; it has room for two call chains, with those of filters, and stack is two",
			table->title);
	return parts <= COLUMNS_MAX && words < VPROF_MAP_KEY_WORDS_MAX;
}

/* A field that has a column already needs no other one. */
static void add_filter_column(const struct trace_query *query, struct table *table, const char *field)
{
	guint at = 0;

	while (at < table->columns->len && strcmp(g_array_index(table->columns, struct column, at).field, field) != 0)
		at++;
	if (at == table->columns->len)
		add_column(query, table, field);
	g_array_append_val(table->of_filters, at);
}

static bool fill_columns(const struct trace_query *query, struct table *table, GError **error)
{
	unsigned parts = 0, words = 0;

	for (char **field = table->fields; *field; field++)
		add_column(query, table, *field);
	table->n_own = table->columns->len;
	for (guint i = 0; i < query->residual->len; i++)
		add_filter_column(query, table, g_array_index(query->residual, const struct trace_filter *, i)->field);
	for (guint i = 0; i < table->columns->len; i++) {
		const struct column *column = &g_array_index(table->columns, struct column, i);

		parts += column->kind == COLUMN_STACK ? 2 : 1;
		words += column_words(column);
	}
	table->counted = column_of(query, table->title);
	if (table->is_hist && table->counted.kind != COLUMN_NUMBER) {
		g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILTER,
		            "--hist %s: this is no number; count it with --count-by %s", table->title, table->title);
		return false;
	}
	return check_key(table, parts, words, error);
}

static bool fill_residual(struct trace_query *query)
{
	for (guint i = 0; i < query->filters->len; i++) {
		const struct trace_filter *filter = &g_array_index(query->filters, struct trace_filter, i);
		bool is_of_names = false;

		for (size_t j = 0; j < trace_source_count(query->source); j++)
			is_of_names |= trace_filter_is_of_names(filter, trace_source_probe(query->source, j));
		if (is_of_names)
			g_array_append_val(query->residual, filter);
	}
	return query->residual->len < query->filters->len || trace_query_counts(query);
}

/* ---- the script ---- */

/* "$v2" is the value of the third field, and "$k2" whether it is known. */
static struct script_node *variable(const struct trace_query *query, char letter, const char *field)
{
	guint at = 0;

	g_ptr_array_find_with_equal_func(query->fields, field, g_str_equal, &at);
	g_autofree char *name = g_strdup_printf("$%c%u", letter, at);
	return script_node_text(NODE_VARIABLE, name);
}

static struct script_node *name_of(const char *name)
{
	return script_node_text(NODE_NAME, name);
}

static struct script_node *set(struct script_node *target, struct script_node *value)
{
	return script_node_pair(NODE_ASSIGN, "=", target, value);
}

static struct script_node *add_value(const struct trace_query *query, const struct column *column,
                                     const struct trace_probe *probe, struct script_node *list)
{
	const bool is_number = column->kind == COLUMN_NUMBER;
	const bool is_known = is_number == !is_text(query->source, column->field);
	struct script_node *before = script_node_text(NODE_VARIABLE, "$f"), *known = script_node_number(0),
			   *value = is_known ? trace_field_node(probe, column->field) : NULL;

	if (value) {
		script_node_free(known);
		known = script_node_pair(NODE_BINARY, "==", name_of("faults"), script_node_text(NODE_VARIABLE, "$f"));
	} else {
		value = is_number ? script_node_number(0) : script_node_text(NODE_STRING, "");
	}
	list = script_node_append(list, set(before, name_of("faults")));
	list = script_node_append(
		list, set(variable(query, 'v', column->field), is_number ? script_node_cast(64, value) : value));
	return script_node_append(list, set(variable(query, 'k', column->field), known));
}

static bool has_variable(const struct column *column)
{
	return column->kind == COLUMN_NUMBER || column->kind == COLUMN_TEXT;
}

/* Each field's once, for all tables. */
static struct script_node *add_values(const struct trace_query *query, const struct trace_probe *probe,
                                      struct script_node *list)
{
	g_autoptr(GPtrArray) written = g_ptr_array_new();

	for (guint i = 0; i < query->tables->len; i++) {
		const struct table *table = g_ptr_array_index(query->tables, i);

		for (guint j = 0; j < table->columns->len + table->is_hist; j++) {
			const struct column *column = j < table->columns->len
			                                      ? &g_array_index(table->columns, struct column, j)
			                                      : &table->counted;

			if (!has_variable(column) ||
			    g_ptr_array_find_with_equal_func(written, column->field, g_str_equal, NULL))
				continue;
			g_ptr_array_add(written, (gpointer)column->field);
			list = add_value(query, column, probe, list);
		}
	}
	return list;
}

/* The number of the probe with a bit for each column that is known, and the columns. NULL: no key. */
static struct script_node *key_of(const struct trace_query *query, const struct table *table)
{
	struct script_node *known = script_node_cast(64, name_of("probe")), *columns = NULL;

	for (guint i = 0; i < table->columns->len; i++) {
		const struct column *column = &g_array_index(table->columns, struct column, i);

		if (has_variable(column)) {
			known = script_node_pair(NODE_BINARY, "+", known,
			                         script_node_pair(NODE_BINARY, "<<",
			                                          variable(query, 'k', column->field),
			                                          script_node_number(KNOWN_BIT + i)));
			columns = script_node_append(columns, variable(query, 'v', column->field));
		}
		if (column->kind == COLUMN_USER || column->kind == COLUMN_STACK)
			columns = script_node_append(columns, name_of("ustack"));
		if (column->kind == COLUMN_KERNEL || column->kind == COLUMN_STACK)
			columns = script_node_append(columns, name_of("kstack"));
	}
	known->next = columns;
	if (table->columns->len > 0)
		return known;
	script_node_free(known);
	return NULL;
}

static struct script_node *count_of(const struct trace_query *query, const struct table *table)
{
	struct script_node *map = script_node_list(NODE_MAP, table->name, key_of(query, table));

	if (!table->is_hist)
		return set(map, script_node_list(NODE_CALL, "count", NULL));
	return script_node_if(variable(query, 'k', table->title),
	                      set(map, script_node_list(NODE_CALL, "hist", variable(query, 'v', table->title))));
}

/* Whether the engine knows by itself when to stop. */
static bool engine_ends(const struct trace_query *query)
{
	return query->limit > 0 && query->residual->len == 0 && trace_query_counts(query);
}

/* Whether as many events as the limit were counted, or fewer, by the sign. */
static struct script_node *at_limit(const struct trace_query *query, const char *sign)
{
	const struct table *all = g_ptr_array_index(query->tables, 0);

	return script_node_pair(NODE_BINARY, sign, script_node_list(NODE_MAP, all->name, NULL),
	                        script_node_number((int64_t)query->limit));
}

static struct script_node *statements_of(const struct trace_query *query, const struct trace_probe *probe)
{
	struct script_node *counts = NULL, *list;

	if (query->tables->len == 0)
		return script_node_list(NODE_CALL, "event", NULL);
	for (guint i = 0; i < query->tables->len; i++)
		counts = script_node_append(counts, count_of(query, g_ptr_array_index(query->tables, i)));
	list = add_values(query, probe, NULL);
	if (!engine_ends(query))
		return script_node_append(list, counts);
	list = script_node_append(list, script_node_if(at_limit(query, "<"), counts));
	return script_node_append(list,
	                          script_node_if(at_limit(query, ">="), script_node_list(NODE_CALL, "exit", NULL)));
}

/* NULL: none. */
static struct script_node *predicate_of(const struct trace_query *query, const struct trace_probe *probe)
{
	struct script_node *all = NULL;

	for (guint i = 0; i < query->filters->len; i++) {
		struct script_node *condition =
			trace_filter_condition(&g_array_index(query->filters, struct trace_filter, i), probe);

		all = all && condition ? script_node_pair(NODE_BINARY, "&&", all, condition)
		      : condition      ? condition
		                       : all;
	}
	return all;
}

/* A clause for each probe. */
static struct script *build(const struct trace_query *query)
{
	struct script *script = script_new();

	for (size_t i = 0; i < trace_source_count(query->source); i++) {
		const struct trace_probe *probe = trace_source_probe(query->source, i);

		script_add_clause(script, probe->name, predicate_of(query, probe), statements_of(query, probe));
	}
	return script;
}

bool trace_query_place(struct trace_query *query, struct trace_source *source, uint64_t limit, uint64_t map_keys,
                       GError **error)
{
	g_autoptr(GError) failure = NULL;

	query->source = source;
	query->limit = limit;
	if (!fill_residual(query))
		return true;
	for (guint i = 0; i < query->tables->len; i++)
		if (!fill_columns(query, g_ptr_array_index(query->tables, i), error))
			return false;
	query->script = trace_script_of(build(query));
	if (trace_script_attach(query->script, source, map_keys > 0 ? map_keys : KEYS_DEFAULT, &failure))
		return true;
	if (failure->domain == SCRIPT_ERROR)
		g_set_error(
			error, TRACE_ERROR, TRACE_ERROR_FILTER,
			"the filters and counts are too many for one program (%s); leave some out, or start vprof trace for each",
			failure->message);
	else
		g_propagate_error(error, g_steal_pointer(&failure));
	return false;
}

/* ---- events ---- */

bool trace_query_takes(struct trace_query *query, const struct trace_event *event)
{
	struct trace_names *names = trace_source_names(query->source);
	bool takes = true;

	if (trace_query_counts(query)) {
		trace_script_take(query->script, event, false, stdout, NULL);
		return false;
	}
	for (guint i = 0; i < query->residual->len && takes; i++) {
		const struct trace_filter *filter = g_array_index(query->residual, const struct trace_filter *, i);
		g_autofree char *text = trace_event_text(event, filter->field, names);

		takes = trace_filter_matches(filter, text);
	}
	return takes;
}

/* ---- rows ---- */

struct reading {
	struct trace_query *query;
	struct table *table;
};

/* "main;read;vfs_read", the outermost first. */
static void append_stack(const struct trace_query *query, const uint64_t *words, GString *text)
{
	const uint16_t misc = words[0] == 0 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	unsigned n = 1;

	while (n < VPROF_PROGRAM_STACK_WORDS && words[n] != 0)
		n++;
	while (--n > 0) {
		const struct chain_frame frame = {words[n], misc};
		g_autofree char *name =
			trace_names_frame(trace_source_names(query->source), &frame, (uint32_t)words[0], UINT64_MAX);

		g_string_append_printf(text, "%s%s", text->len > 0 ? ";" : "", name);
	}
}

static char *stack_text(const struct trace_query *query, const struct column *column, const uint64_t *words)
{
	GString *text = g_string_new(NULL);

	append_stack(query, words, text);
	if (column->kind == COLUMN_STACK)
		append_stack(query, words + VPROF_PROGRAM_STACK_WORDS, text);
	return g_string_free(text, FALSE);
}

static char *comm_text(const uint64_t *words)
{
	char text[VPROF_PROGRAM_TEXT_BYTES + 1] = {0};

	memcpy(text, words, VPROF_PROGRAM_TEXT_BYTES);
	return text[0] == '\0' ? g_strdup("-") : text_printable(text);
}

/* NULL: it is not known. */
static char *column_text(const struct trace_query *query, const struct column *column, const struct trace_probe *probe,
                         bool known, const uint64_t *words)
{
	switch (column->kind) {
	case COLUMN_PROBE:
		return g_strdup(probe->name);
	case COLUMN_NUMBER:
		if (strcmp(column->field, "func") == 0)
			return trace_names_function(trace_source_names(query->source), words[0]);
		break;
	case COLUMN_TEXT:
		if (strcmp(column->field, "comm") == 0)
			return comm_text(words);
		break;
	default:
		return stack_text(query, column, words);
	}
	return known ? trace_probe_text(probe, column->field, words) : NULL;
}

static bool row_matches(const struct reading *reading, char **parts)
{
	bool matches = true;

	for (guint i = 0; i < reading->query->residual->len && matches; i++)
		matches = trace_filter_matches(g_array_index(reading->query->residual, const struct trace_filter *, i),
		                               parts[g_array_index(reading->table->of_filters, guint, i)]);
	return matches;
}

static char *row_key(const struct table *table, char **parts)
{
	GString *text = g_string_new(NULL);

	for (guint i = 0; i < table->n_own; i++)
		g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", parts[i] ? parts[i] : "-");
	return g_string_free(text, FALSE);
}

static void add_row(struct table *table, char **parts, const uint64_t *value)
{
	g_autofree char *key = row_key(table, parts);

	if (table->is_hist) {
		trace_histogram_add(&table->histogram, value);
		return;
	}
	trace_counts_add(table->counts, key, value[0]);
	table->sum += value[0];
}

/* Adds an entry of the map to the table, if the filters about names let it. */
static void take_row(void *data, const uint64_t *key, const uint64_t *value)
{
	const struct reading *reading = data;
	struct table *table = reading->table;
	const uint64_t *words = key + 1;
	char *parts[COLUMNS_MAX] = {NULL};

	for (guint i = 0; i < table->columns->len; i++) {
		const struct column *column = &g_array_index(table->columns, struct column, i);
		const uint64_t probe = key[0] & ((1u << KNOWN_BIT) - 1);

		if (probe < trace_source_count(reading->query->source))
			parts[i] =
				column_text(reading->query, column, trace_source_probe(reading->query->source, probe),
			                    key[0] >> (KNOWN_BIT + i) & 1, words);
		words += column_words(column);
	}
	if (row_matches(reading, parts))
		add_row(table, parts, value);
	for (guint i = 0; i < table->columns->len; i++)
		g_free(parts[i]);
}

static bool read_table(struct trace_query *query, struct table *table, GError **error)
{
	struct reading reading = {query, table};
	struct trace_map *map = trace_script_read(query->script, trace_script_map(query->script, table->name), error);

	if (!map)
		return false;
	table->sum = 0;
	trace_map_each(map, take_row, &reading);
	trace_map_free(map);
	return true;
}

bool trace_query_is_full(struct trace_query *query)
{
	if (query->limit == 0 || !trace_query_counts(query))
		return false;
	if (engine_ends(query))
		return trace_script_exited(query->script);
	struct table *all = g_ptr_array_index(query->tables, 0);

	return !read_table(query, all, NULL) || all->sum >= query->limit;
}

bool trace_query_finish(struct trace_query *query, uint64_t *events, GError **error)
{
	for (guint i = 0; i < query->tables->len; i++)
		if (!read_table(query, g_ptr_array_index(query->tables, i), error))
			return false;
	if (trace_query_counts(query))
		*events = ((const struct table *)g_ptr_array_index(query->tables, 0))->sum;
	return true;
}

/* ---- the end ---- */

void trace_query_print(const struct trace_query *query, FILE *out)
{
	for (guint i = 1; i < query->tables->len; i++) {
		const struct table *table = g_ptr_array_index(query->tables, i);

		if (table->is_hist)
			trace_histogram_print(&table->histogram, out);
		else
			trace_counts_print(table->counts, out);
	}
}

void trace_query_fill_json(const struct trace_query *query, json_t *end)
{
	json_t *counts = json_array(), *hists = json_array();

	for (guint i = 1; i < query->tables->len; i++) {
		const struct table *table = g_ptr_array_index(query->tables, i);

		if (table->is_hist)
			json_array_append_new(hists, trace_histogram_json(&table->histogram));
		else
			json_array_append_new(counts, trace_counts_json(table->counts));
	}
	if (json_array_size(counts) > 0)
		json_object_set(end, "counts", counts);
	if (json_array_size(hists) > 0)
		json_object_set(end, "hists", hists);
	json_decref(counts);
	json_decref(hists);
}
