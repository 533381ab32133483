// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <vprof/control.h>

#include "cmd/command.h"
#include "engine/attach_engine.h"
#include "engine/engine_find.h"
#include "engine/guest_engine.h"
#include "engine/guest_list.h"
#include "reading/symbol_options.h"
#include "terminal/terminal.h"
#include "top/top_guests.h"
#include "top/top_guests_live.h"
#include "top/top_lines.h"
#include "top/top_live.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/text.h"

#define INTERVAL_S 2.0
#define INTERVAL_S_MIN 0.1
#define INTERVAL_S_MAX 3600.0
#define SNAPSHOT_ROWS 30
#define SNAPSHOT_WIDTH 100u

struct top_values {
	struct attach_engine_options engine;
	struct symbol_options symbols;
	char *sort;
	uint64_t frequency_hz, rows; /* 0: the engine's; all */
	double interval_s;
	gboolean once, json, calls;
};

static const struct top_values defaults = {.interval_s = INTERVAL_S, .rows = SNAPSHOT_ROWS};

static const struct option_row options[] = {
	{"once", OPTION_FLAG, offsetof(struct top_values, once), "print one interval and exit, as without a terminal",
         NULL},
	{"json", OPTION_FLAG, offsetof(struct top_values, json), "print one interval as a JSON object", NULL},
	{"interval", OPTION_DOUBLE, offsetof(struct top_values, interval_s), "seconds between two updates (default 2)",
         "SECONDS"},
	{"sort", OPTION_TEXT, offsetof(struct top_values, sort),
         "group by these columns of `vprof report` (default " REPORT_DEFAULT_SORT ")", "KEYS", "@columns"},
	{"limit", OPTION_NUMBER, offsetof(struct top_values, rows), "rows of a snapshot (default 30; 0 for all)", "N"},
	{"call-tree", OPTION_FLAG, offsetof(struct top_values, calls),
         "record call chains and show the call tree (key t)", NULL},
	{"frequency", OPTION_NUMBER, offsetof(struct top_values, frequency_hz),
         "samples per second and vCPU, if top starts the session (default: the engine's)", "HZ", .min = 1,
         .max = VPROF_FREQUENCY_HZ_MAX},
	OPTION_ROWS(attach_engine_option_rows, struct top_values, engine),
	OPTION_ROWS(symbol_option_rows, struct top_values, symbols),
	{NULL},
};

/* Arguments of session-start. */
static json_t *session_arguments(const struct top_values *given)
{
	json_t *arguments = json_object();

	if (given->frequency_hz != 0)
		json_object_set_new(arguments, "frequency-hz", json_integer((json_int_t)given->frequency_hz));
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

/* Whether the options are valid, before anything is done. */
static bool top_check(const struct top_values *given, GError **error)
{
	struct top_live live = {.source = NULL};

	return options_check(given, &live, error);
}

static void snapshot_print(const struct top_values *given, const struct top_live *live, const struct top_view *view)
{
	g_autoptr(GHashTable) none_folded = g_hash_table_new(g_str_hash, g_str_equal);
	g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GArray) lines = terminal_lines_new();

	top_lines_head(lines, view, false, true, SNAPSHOT_WIDTH);
	if (live->tree)
		top_lines_calls(lines, view, none_folded, paths);
	else
		top_lines_table(lines, view, (size_t)given->rows);
	for (guint i = 0; i < lines->len; i++)
		puts(g_array_index(lines, struct terminal_line, i).text);
}

static bool snapshot(const struct top_values *given, struct top_live *live, GError **error)
{
	g_autofree struct top_view *view = g_new0(struct top_view, 1);
	bool done = top_live_snapshot(live, view, error);

	if (done && given->json) {
		json_t *document = top_view_json(view, (size_t)given->rows);

		text_print_json(document, 6, stdout);
		json_decref(document);
	} else if (done) {
		snapshot_print(given, live, view);
	}
	top_view_clear(view);
	return done;
}

static struct user_symbols *user_symbols_of(const struct top_values *given, const struct top_source *source)
{
	const char *initrd = member_text(top_source_guest(source), "initrd");
	const struct user_symbol_sources sources = symbol_options_sources(&given->symbols, initrd, arch_here(), false);

	return symbol_options_given(&given->symbols) || initrd ? user_symbols_new(&sources) : NULL;
}

static bool wants_screen(const struct top_values *given)
{
	if (given->once || given->json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	if (!terminal_available())
		warn("vprof was built without ncurses; printing one interval of %g s", given->interval_s);
	return terminal_available();
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

/* Shows one guest. `name`: an engine or a guest; NULL: the one in `engine`. *status: as top_source_open. */
static bool guest_show(const struct top_values *given, const struct attach_engine_options *engine, const char *name,
                       int *status, GError **error)
{
	struct top_live live = {.source = NULL};
	bool shown = false;

	if (!options_check(given, &live, error))
		return false;
	live.source = top_source_open(engine, name, session_arguments(given), status, error);
	if (live.source)
		shown = look(given, &live, error);
	top_source_close(live.source);
	return shown;
}

/* ---- all guests ---- */

/* Messages of a guest's engine and of this program, kept away from the screen. */
struct diversion {
	FILE *to;
	int stderr_fd;
};

static bool divert(struct diversion *diversion)
{
	diversion->to = tmpfile();
	if (!diversion->to)
		return false;
	fflush(stderr);
	diversion->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	dup2(fileno(diversion->to), STDERR_FILENO);
	return true;
}

/* The last line that came meanwhile; NULL: none did. New string. */
static char *divert_end(struct diversion *diversion)
{
	char line[512], *last = NULL;

	fflush(stderr);
	dup2(diversion->stderr_fd, STDERR_FILENO);
	close(diversion->stderr_fd);
	rewind(diversion->to);
	while (fgets(line, sizeof(line), diversion->to)) {
		g_free(last);
		last = g_strdup(g_strchomp(line));
	}
	fclose(diversion->to);
	return last;
}

/* An engine that has this guest already is asked; another guest is attached to. */
static void guest_enter(const struct top_values *given, const json_t *guest)
{
	const char *domain;
	const struct attach_engine_options engine = guest_options(&given->engine, guest, &domain);
	const struct attach_engine_options none = {.kernel = given->engine.kernel};
	g_autofree char *pid = g_strdup_printf("%" G_GUINT64_FORMAT, member_number(guest, "pid", 0));
	struct client *client = engine_find(pid, NULL);
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	if (client)
		guest_show(given, &none, pid, &status, &error);
	else
		guest_show(given, &engine, domain, &status, &error);
	client_free(client);
	if (error)
		guest_engine_failure(command_top.name, status, error);
}

static char *guest_visit(const struct top_values *given, const json_t *guest)
{
	struct diversion diversion;

	say("attaching to %s", member_text(guest, "name"));
	if (!divert(&diversion))
		return g_strdup("cannot make a temporary file for messages");
	guest_enter(given, guest);
	return divert_end(&diversion);
}

static bool guests_watch(const struct top_values *given, GError **error)
{
	json_t *chosen = NULL, *domains = guest_list_domains(&given->engine, error);
	struct top_guests_live *live;
	bool done;

	if (!domains) /* of a libvirt that was named */
		return false;
	json_decref(domains);
	live = top_guests_live_new(&given->engine, given->interval_s);
	while ((done = top_guests_live_choose(live, &chosen, error)) && chosen && !interrupted()) {
		top_guests_live_say(live, guest_visit(given, chosen));
		json_decref(g_steal_pointer(&chosen));
	}
	json_decref(chosen);
	top_guests_live_free(live);
	return done;
}

static void guests_print(const struct top_values *given, const struct top_guests *guests)
{
	g_autoptr(GArray) lines = terminal_lines_new();

	top_guests_title(lines, guests);
	top_guests_table(lines, guests, (size_t)given->rows);
	for (guint i = 0; i < lines->len; i++)
		puts(g_array_index(lines, struct terminal_line, i).text);
}

static bool guests_print_once(const struct top_values *given, GError **error)
{
	struct top_guests guests;
	bool done;

	top_guests_init(&guests);
	done = top_guests_snapshot(&guests, &given->engine, given->interval_s, error);
	if (done && given->json) {
		json_t *document = top_guests_json(&guests, (size_t)given->rows);

		text_print_json(document, 6, stdout);
		json_decref(document);
	} else if (done) {
		guests_print(given, &guests);
	}
	top_guests_clear(&guests);
	return done;
}

static int guests_show(const struct top_values *given)
{
	g_autoptr(GError) error = NULL;
	bool done;

	interrupt_watch();
	done = wants_screen(given) ? guests_watch(given, &error) : guests_print_once(given, &error);
	return done ? STATUS_OK : failure(error);
}

static int top_run(void *values, unsigned n, char **arguments)
{
	const struct top_values *given = values;
	const char *name = n > 0 ? arguments[0] : NULL;
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	if (!top_check(given, &error))
		return usage_error(command_top.name, "%s", error->message);
	if (!name && given->engine.pid == 0)
		return guests_show(given);
	if (guest_show(given, &given->engine, name, &status, &error))
		return STATUS_OK;
	return guest_engine_failure(command_top.name, status, error);
}

const struct command command_top = {
	.name = "top",
	.summary = "Show live where a running guest spends its time",
	.arguments = "[ENGINE|GUEST]",
	.max_arguments = 1,
	.argument_words = {"@engines @guests"},
	.manual = "vprof-top",
	.description =

		"Without an argument, top shows all guests of this host: CPU time, exits per second, and the\n"
		"kernel that each runs. Enter looks into the selected one, q comes back.\n"
		"ENGINE is a name or process id from `vprof list`, or the path of a socket. A GUEST of `vprof\n"
		"attach --list` without an engine is attached to.\n"
		"If the guest is being recorded, top shows those samples; otherwise it starts a session of its\n"
		"own. Key h shows the keys. Without a terminal, top prints one interval.\n"
		"\n"
		"Examples:\n"
		"  vprof top\n"
		"  vprof top web01 -s comm,sym\n"
		"  vprof top web01 --once -d 5 | head\n"
		"  vprof top --json | jq '.guests[] | {name, cpus}'",
	.options = options,
	.values_bytes = sizeof(struct top_values),
	.defaults = &defaults,
	.run = top_run,
};
