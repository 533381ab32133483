// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_source.h"

#include <string.h>
#include <vprof/control.h>

#include "engine/engine_process.h"
#include "engine/guest_engine.h"
#include "engine/guest_kernel.h"
#include "engine/session_events.h"
#include "lib/record/ring_reader.h"
#include "reading/vcpu_clocks.h"
#include "ui/text.h"

#define READS_MAX 64u /* of one vCPU's samples in one go, when looking on */

G_DEFINE_QUARK(vprof_top_source_error, top_source_error)

struct top_source {
	struct guest_engine engine;
	struct symtab *symtab; /* NULL: symtab_why */
	char *symtab_why;
	json_t *arguments; /* of session-start */
	bool own;          /* the session is ours, and its rings */
	json_t *session;   /* NULL: none yet */
	struct recording_event *events;
	size_t n_events;
	GPtrArray *rings; /* of struct ring_reader; NULL when looking on */
	unsigned vcpus;
	int64_t next[VCPU_CLOCKS_MAX]; /* offsets to read on from when looking on; -1: at the oldest record */
	bool fresh;
	char *how;
};

/* ---- the engine ---- */

static bool source_gone(struct top_source *source, GError **error)
{
	g_autofree char *death = source->engine.own ? engine_process_death(source->engine.own) : NULL;

	g_set_error(error, TOP_SOURCE_ERROR, TOP_SOURCE_ERROR_ENGINE_GONE, "the engine %s",
	            death ? death : "is gone, and with it what it showed");
	return false;
}

static json_t *execute(struct top_source *source, const char *method, json_t *arguments, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *answer = engine_ask(source->engine.client, method, arguments, &why);

	if (g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
		source_gone(source, error);
	else if (why)
		g_propagate_error(error, g_steal_pointer(&why));
	return answer;
}

/* Of a method that has nothing to say. */
static bool execute_only(struct top_source *source, const char *method, GError **error)
{
	json_t *answer = execute(source, method, NULL, error);

	json_decref(answer);
	return answer != NULL;
}

static void source_set_how(struct top_source *source, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void source_set_how(struct top_source *source, const char *format, ...)
{
	va_list arguments;

	g_free(source->how);
	va_start(arguments, format);
	source->how = g_strdup_vprintf(format, arguments);
	va_end(arguments);
}

/* ---- sessions ---- */

static void source_forget_session(struct top_source *source)
{
	session_events_free(source->events, source->n_events);
	source->events = NULL;
	source->n_events = 0;
	json_decref(g_steal_pointer(&source->session));
	g_clear_pointer(&source->rings, g_ptr_array_unref);
	for (unsigned i = 0; i < VCPU_CLOCKS_MAX; i++)
		source->next[i] = -1;
}

/* Steals `session`. */
static bool source_take_session(struct top_source *source, json_t *session, GError **error)
{
	source_forget_session(source);
	source->session = session;
	source->events = session_events_parse(session, &source->n_events, error);
	source->fresh = true;
	return source->events != NULL;
}

static bool source_map_rings(struct top_source *source, GError **error)
{
	source->rings = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);
	return session_rings_get(source->engine.client, "rings", NULL, source->rings, NULL, error);
}

static bool source_start_session(struct top_source *source, GError **error)
{
	json_t *session = execute(source, "session-start", json_incref(source->arguments), error);

	if (!session)
		return false;
	source->own = true;
	source_set_how(source, "a session of its own");
	return source_take_session(source, session, error) && source_map_rings(source, error);
}

/* Follows the session of another client, also from one to the next. */
static bool source_look_on(struct top_source *source, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *session = execute(source, "query-session", NULL, &why);

	if (client_refused(why, VPROF_ERROR_STATE))
		return true;
	if (!session) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	if (json_equal(session, source->session)) {
		json_decref(session);
		return true;
	}
	source_set_how(source, "looking on at session %" G_GUINT64_FORMAT ", which another client controls",
	               member_number(session, "session", 0));
	return source_take_session(source, session, error);
}

static bool session_runs(struct top_source *source, bool *runs, GError **error)
{
	json_t *status = execute(source, "query-status", NULL, error);

	*runs = g_strcmp0(member_text(status, "session"), "running") == 0;
	json_decref(status);
	return status != NULL;
}

/* A session of its own, unless one runs or the control role is taken. */
static bool source_begin(struct top_source *source, GError **error)
{
	g_autoptr(GError) why = NULL;
	bool runs;

	if (!session_runs(source, &runs, error))
		return false;
	if (runs)
		return source_look_on(source, error);
	if (execute_only(source, "control-take", &why))
		return source_start_session(source, error);
	if (!g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_REMOTE)) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	source_set_how(source, "no samples: %s", strstr(why->message, ": ") + 2);
	return true;
}

/* ---- opening and closing ---- */

static void source_load_symbols(struct top_source *source, const char *kernel)
{
	g_autoptr(GError) why = NULL;
	struct guest_kernel found = guest_kernel_load(source->engine.client, source->engine.guest, kernel, &why);

	source->symtab = g_steal_pointer(&found.symtab);
	if (!source->symtab)
		source->symtab_why = g_strdup(g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_REMOTE)
		                                      ? "the guest's kernel is not known"
		                                      : why->message);
	guest_kernel_clear(&found);
}

struct top_source *top_source_open(const struct attach_engine_options *options, const char *name, json_t *session,
                                   int *status, GError **error)
{
	struct top_source *source = g_new0(struct top_source, 1);

	source->arguments = session;
	source->how = g_strdup("no session yet");
	const bool found = guest_engine_open(&source->engine, options, name, status, error);

	if (found) {
		source->vcpus = (unsigned)MIN(member_number(source->engine.guest, "vcpus", 0), VCPU_CLOCKS_MAX);
		source_load_symbols(source, options->kernel);
		source_forget_session(source);
	}
	/* The engine of an attached guest waits for guest-start, as it does for `vprof attach`. */
	if (found && source_begin(source, error) && (!source->engine.own || execute_only(source, "guest-start", error)))
		return source;
	top_source_close(source);
	return NULL;
}

void top_source_close(struct top_source *source)
{
	if (!source)
		return;
	if (source->own)
		execute_only(source, "session-stop", NULL);
	source_forget_session(source);
	guest_engine_close(&source->engine);
	symtab_free(source->symtab);
	json_decref(source->arguments);
	g_free(source->symtab_why);
	g_free(source->how);
	g_free(source);
}

/* ---- what there is to say ---- */

const json_t *top_source_guest(const struct top_source *source)
{
	return source->engine.guest;
}

const struct symtab *top_source_symtab(const struct top_source *source, const char **why)
{
	*why = source->symtab_why;
	return source->symtab;
}

const json_t *top_source_session(const struct top_source *source)
{
	return source->session;
}

const struct recording_event *top_source_event(const struct top_source *source)
{
	return source->events;
}

const char *top_source_how(const struct top_source *source)
{
	return source->how;
}

struct client *top_source_client(const struct top_source *source)
{
	return source->engine.client;
}

int top_source_fd(const struct top_source *source)
{
	return client_fd(source->engine.client);
}

json_t *top_source_clocks(struct top_source *source, GError **error)
{
	return vcpu_clocks_query(source->engine.client, source->vcpus, ENGINE_ANSWER_TIMEOUT_MS, error);
}

json_t *top_source_statistics(struct top_source *source, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *answer = execute(source, "query-stats", NULL, &why);
	json_t *total = json_incref(json_object_get(answer, "total"));

	if (why && !client_refused(why, VPROF_ERROR_STATE))
		g_propagate_error(error, g_steal_pointer(&why));
	json_decref(answer);
	return total;
}

/* ---- samples ---- */

/* Other events than the guest's end are not ours. */
static bool source_take_events(struct top_source *source, GError **error)
{
	g_autoptr(GError) gone = NULL;
	json_t *event;
	bool ended = false;

	while (!ended && (event = client_next_event(source->engine.client, 0, &gone))) {
		ended = g_strcmp0(member_text(event, "event"), VPROF_EVENT_GUEST_ENDED) == 0;
		if (ended) {
			g_autofree char *message =
				text_printable(member_text(json_object_get(event, "data"), "message"));

			g_set_error(error, TOP_SOURCE_ERROR, TOP_SOURCE_ERROR_GUEST_ENDED, "the guest has ended: %s",
			            message);
		}
		json_decref(event);
	}
	return !ended && (!gone || source_gone(source, error));
}

static bool ring_drain(struct ring_reader *ring, GByteArray *records, GError **error)
{
	const struct perf_event_header *record;
	size_t bytes;

	while ((record = ring_reader_next(ring, &bytes)))
		g_byte_array_append(records, (const guint8 *)record, (guint)bytes);
	ring_reader_release(ring);
	if (!ring_reader_corrupt(ring))
		return true;
	g_set_error(error, TOP_SOURCE_ERROR, TOP_SOURCE_ERROR_RING,
	            "a ring of the engine is corrupt: it has overwritten its own memory");
	return false;
}

/* *more: there may be. */
static bool samples_read(struct top_source *source, unsigned vcpu, GByteArray *records, bool *more, GError **error)
{
	json_t *arguments = json_pack("{s:i, s:I}", "vcpu", (int)vcpu, "session",
	                              (json_int_t)member_number(source->session, "session", 0));
	g_autoptr(GError) why = NULL;

	g_autofree guchar *bytes = NULL;
	gsize n = 0;
	json_t *answer;

	if (source->next[vcpu] >= 0)
		json_object_set_new(arguments, "offset", json_integer(source->next[vcpu]));
	answer = execute(source, "samples-read", arguments, &why);
	*more = false;
	/* That session is over: the next call finds another one. */
	if (client_refused(why, VPROF_ERROR_STATE))
		return true;
	if (!answer) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	if (member_text(answer, "data"))
		bytes = g_base64_decode(member_text(answer, "data"), &n);
	source->next[vcpu] = (int64_t)member_number(answer, "next", 0);
	g_byte_array_append(records, bytes, (guint)n);
	*more = n != 0;
	json_decref(answer);
	return true;
}

static bool source_read_samples(struct top_source *source, GByteArray *records, GError **error)
{
	for (unsigned vcpu = 0; vcpu < source->vcpus; vcpu++) {
		bool more = true;

		for (unsigned i = 0; i < READS_MAX && more; i++)
			if (!samples_read(source, vcpu, records, &more, error))
				return false;
	}
	return true;
}

bool top_source_drain(struct top_source *source, GByteArray *records, bool *fresh, GError **error)
{
	*fresh = false;
	if (!source_take_events(source, error) || (!source->own && !source_look_on(source, error)))
		return false;
	*fresh = source->fresh;
	source->fresh = false;
	if (source->session && !source->own)
		return source_read_samples(source, records, error);
	for (guint i = 0; source->rings && i < source->rings->len; i++)
		if (!ring_drain(g_ptr_array_index(source->rings, i), records, error))
			return false;
	return true;
}

bool top_source_add_chains(struct top_source *source, GError **error)
{
	if (!source->own)
		return false;
	json_object_set_new(source->arguments, "call-graph", json_string("auto"));
	source->own = false; /* until it is, again */
	return execute_only(source, "session-stop", error) && source_start_session(source, error);
}
