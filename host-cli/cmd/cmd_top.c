// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <unistd.h>

#include "cmd/command.h"
#include "engine/attach_engine.h"
#include "reading/symbol_options.h"
#include "top/top_lines.h"
#include "top/top_live.h"
#include "top/top_screen.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define INTERVAL_S 2.0
#define INTERVAL_S_MIN 0.1
#define INTERVAL_S_MAX 3600.0
#define SNAPSHOT_ROWS 30
#define SNAPSHOT_WIDTH 100u

struct top_values {
	struct attach_engine_options engine;
	struct symbol_options symbols;
	char *frequency, *sort;
	double interval_s;
	int rows;
	gboolean once, json, calls;
};

static const struct top_values defaults = {.interval_s = INTERVAL_S, .rows = SNAPSHOT_ROWS};

static const struct option_row options[] = {
	{"once", 'b', OPTION_FLAG, offsetof(struct top_values, once),
         "print one interval and exit, as without a terminal", NULL},
	{"json", 'j', OPTION_FLAG, offsetof(struct top_values, json), "print one interval as a JSON object", NULL},
	{"interval", 'd', OPTION_DOUBLE, offsetof(struct top_values, interval_s),
         "seconds between two updates (default 2)", "SECONDS"},
	{"sort", 's', OPTION_TEXT, offsetof(struct top_values, sort),
         "group by these columns of `vprof report` (default " REPORT_DEFAULT_SORT ")", "KEYS"},
	{"rows", 0, OPTION_INT, offsetof(struct top_values, rows), "rows of a snapshot (default 30; 0 for all)", "N"},
	{"call-tree", 'g', OPTION_FLAG, offsetof(struct top_values, calls),
         "record call chains and show the call tree (key t)", NULL},
	{"frequency", 'F', OPTION_TEXT, offsetof(struct top_values, frequency),
         "samples per second and vCPU, if top starts the session (default: the engine's)", "HZ"},
	OPTION_ROWS(attach_engine_option_rows, struct top_values, engine),
	OPTION_ROWS(symbol_option_rows, struct top_values, symbols),
	{NULL},
};

/* Arguments of session-start; NULL if the options are invalid. */
static json_t *session_arguments(const struct top_values *given, GError **error)
{
	json_t *arguments;
	uint64_t hz = 0;

	if (given->frequency && !units_parse_number("--frequency", given->frequency, 1, INT64_MAX, &hz, error))
		return NULL;
	arguments = json_object();
	if (hz != 0)
		json_object_set_new(arguments, "frequency-hz", json_integer((json_int_t)hz));
	if (given->calls)
		json_object_set_new(arguments, "call-graph", json_string("auto"));
	return arguments;
}

static bool options_check(const struct top_values *given, struct top_live *live, GError **error)
{
	const char *sort = given->sort ? given->sort : REPORT_DEFAULT_SORT;

	if (!(given->interval_s >= INTERVAL_S_MIN && given->interval_s <= INTERVAL_S_MAX)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
		            "--interval takes seconds from %g to %g, not %g", INTERVAL_S_MIN, INTERVAL_S_MAX,
		            given->interval_s);
		return false;
	}
	if (given->rows < 0) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--rows takes 0 or more, not %d",
		            given->rows);
		return false;
	}
	live->interval_s = given->interval_s;
	live->tree = given->calls;
	if (!column_list_parse(sort, &live->choice.columns, error))
		return false;
	if (column_list_has(&live->choice.columns, "domain")) {
		g_set_error(error, COLUMN_ERROR, COLUMN_ERROR_UNKNOWN,
		            "--sort domain: not supported for a single guest");
		return false;
	}
	return symbol_options_check(&given->symbols, error);
}

static void snapshot_print(const struct top_values *given, const struct top_live *live, const struct top_view *view)
{
	g_autoptr(GHashTable) none_folded = g_hash_table_new(g_str_hash, g_str_equal);
	g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GArray) lines = top_lines_new();

	top_lines_head(lines, view, false, true, SNAPSHOT_WIDTH);
	if (live->tree)
		top_lines_calls(lines, view, none_folded, paths);
	else
		top_lines_table(lines, view, (size_t)given->rows);
	for (guint i = 0; i < lines->len; i++)
		puts(g_array_index(lines, struct top_line, i).text);
}

static bool snapshot(const struct top_values *given, struct top_live *live, GError **error)
{
	struct top_view view = {.source = NULL};
	bool done = top_live_snapshot(live, &view, error);

	if (done && given->json) {
		json_t *document = top_view_json(&view, (size_t)given->rows);

		text_print_json(document, 6, stdout);
		json_decref(document);
	} else if (done) {
		snapshot_print(given, live, &view);
	}
	top_view_clear(&view);
	return done;
}

static struct user_symbols *user_symbols_of(const struct top_values *given, const struct top_source *source)
{
	const char *initrd = member_text(top_source_guest(source), "initrd");
	const struct user_symbol_sources sources = symbol_options_sources(&given->symbols, initrd, false);

	return symbol_options_given(&given->symbols) || initrd ? user_symbols_new(&sources) : NULL;
}

static bool wants_screen(const struct top_values *given)
{
	if (given->once || given->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	if (!top_screen_available())
		warn("vprof was built without ncurses; printing one interval of %g s", given->interval_s);
	return top_screen_available();
}

/* If the guest ends while top shows it, that is no error. */
static bool watch(struct top_live *live, GError **error)
{
	g_autoptr(GError) why = NULL;

	if (top_live_run(live, &why))
		return true;
	if (g_error_matches(why, TOP_SOURCE_ERROR, TOP_SOURCE_ERROR_GUEST_ENDED)) {
		say("%s", why->message);
		return true;
	}
	g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

static bool look(const struct top_values *given, struct top_live *live, GError **error)
{
	const char *why;
	const struct symtab *symtab = top_source_symtab(live->source, &why);
	struct user_symbols *user = user_symbols_of(given, live->source);
	bool done;

	if (!symtab)
		warn("kernel addresses will have no names: %s", why);
	live->profile = top_profile_new(symtab, user);
	interrupt_watch();
	done = wants_screen(given) ? watch(live, error) : snapshot(given, live, error);
	top_profile_free(live->profile);
	user_symbols_free(user);
	return done;
}

static int top_run(void *values, unsigned n, char **arguments)
{
	const struct top_values *given = values;
	g_autoptr(GError) error = NULL;
	struct top_live live = {.source = NULL};
	json_t *session = options_check(given, &live, &error) ? session_arguments(given, &error) : NULL;
	int status = STATUS_FAILED;

	if (!session)
		return usage_error(command_top.name, "%s", error->message);
	live.source = top_source_open(&given->engine, n > 0 ? arguments[0] : NULL, session, &status, &error);
	if (live.source)
		look(given, &live, &error);
	top_source_close(live.source);
	if (!error)
		return STATUS_OK;
	if (!g_error_matches(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_REFUSED))
		return failure(error);
	/* The engine that was started has printed the reason itself. */
	if (n > 0)
		say("no engine \"%s\" is running either; `vprof list` shows the running ones", arguments[0]);
	return status;
}

const struct command command_top = {
	.name = "top",
	.summary = "Show live where a running guest spends its time",
	.arguments = "[ENGINE|DOMAIN]",
	.max_arguments = 1,
	.manual = "vprof-top",
	.description =

		"ENGINE is a name or process id from `vprof list`, or the path of a socket. It may be omitted if\n"
		"only one engine runs.\n"
		"A libvirt DOMAIN without an engine is attached, as by `vprof attach`.\n"
		"If the guest is being recorded, top shows those samples; otherwise it starts a session of its\n"
		"own. Key h shows the keys. Without a terminal, top prints one interval.\n"
		"\n"
		"Examples:\n"
		"  vprof top\n"
		"  vprof top web01 -s comm,sym\n"
		"  vprof top -b -d 5 | head\n"
		"  vprof top --json | jq '.rows[0]'",
	.options = options,
	.values_bytes = sizeof(struct top_values),
	.defaults = &defaults,
	.run = top_run,
};
