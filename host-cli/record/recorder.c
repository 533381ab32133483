// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/counters.h"
#include "engine/engine_find.h"
#include "engine/engine_modules.h"
#include "engine/session_events.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "reading/vcpu_clocks.h"
#include "record/jit_symbols.h"
#include "record/recorder_priv.h"
#include "ui/message.h"
#include "ui/text.h"

#define SESSION_START_TIMEOUT_MS 60000u

G_DEFINE_QUARK(vprof_recorder_error, recorder_error)

/* Descriptors come in pairs: the memory of a ring, and the eventfd that signals that it should be drained. */
static bool recorder_map_rings(struct recorder *recorder, const int *fds, size_t n_fds, GError **error)
{
	if (!recorder->rings)
		recorder->rings = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);
	if (!session_rings_map(recorder->rings, fds, n_fds, error))
		return false;
	recorder->eventfds = g_renew(int, recorder->eventfds, recorder->n_rings + n_fds / 2);
	for (size_t i = 0; i < n_fds / 2; i++) {
		int eventfd = fcntl(fds[2 * i + 1], F_DUPFD_CLOEXEC, 0);

		recorder->eventfds[recorder->n_rings++] = eventfd;
		if (eventfd < 0) {
			g_set_error(error, RECORDER_ERROR, RECORDER_ERROR_RING, "cannot duplicate a ring's eventfd: %s",
			            g_strerror(errno));
			return false;
		}
	}
	return true;
}

static void recorder_unmap_rings(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->n_rings; i++)
		if (recorder->eventfds[i] >= 0)
			close(recorder->eventfds[i]);
	recorder->n_rings = 0;
	g_clear_pointer(&recorder->rings, g_ptr_array_unref);
	g_clear_pointer(&recorder->eventfds, g_free);
}

/* Adds the rings that `method` returns; steals `arguments`. */
static bool recorder_get_rings(struct recorder *recorder, const char *method, json_t *arguments, GError **error)
{
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer =
		client_execute(recorder->client, method, arguments, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);
	bool mapped = answer && recorder_map_rings(recorder, fds, n_fds, error);

	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return mapped;
}

static json_t *rate_of(const json_t *session)
{
	static const char *const names[] = {"frequency-hz", "period"};
	json_t *rate = json_object();

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		member_set(rate, names[i], json_object_get(session, names[i]));
	return rate;
}

static void kernel_before_clear(void *data)
{
	struct kernel_before *kernel = data;

	histogram_free(kernel->frames);
}

static struct recorder *recorder_alloc(struct client *client)
{
	struct recorder *recorder = g_new0(struct recorder, 1);

	recorder->client = client;
	recorder->phases = json_array();
	recorder->marks = json_array();
	recorder->names = names_new();
	recorder->texts = g_string_chunk_new(1024);
	recorder->frames = histogram_new(recorder->names, 0);
	recorder->kernels = g_array_new(FALSE, FALSE, sizeof(struct kernel_before));
	g_array_set_clear_func(recorder->kernels, kernel_before_clear);
	return recorder;
}

/* Steals the answer to session-start, or what looks like it. */
static bool recorder_take_session(struct recorder *recorder, json_t *session, GError **error)
{
	recorder->session = session;
	recorder->rate = rate_of(session);
	const char *rate_why = session ? member_text(session, "rate-why") : NULL;

	if (rate_why)
		warn("%s", rate_why);
	if (session)
		recorder->events = session_events_parse(session, &recorder->n_events, error);
	return recorder->events != NULL;
}

/* A vCPU has a ring. Without an answer, the recording has no account of time. */
static json_t *recorder_ask_time(const struct recorder *recorder)
{
	return vcpu_clocks_query(recorder->client, (unsigned)recorder->n_rings, ENGINE_ANSWER_TIMEOUT_MS, NULL);
}

static void recorder_time_begin(struct recorder *recorder)
{
	json_decref(g_steal_pointer(&recorder->time_to));
	json_decref(recorder->time_from);
	recorder->time_from = recorder_ask_time(recorder);
}

void recorder_time_end(struct recorder *recorder)
{
	if (!recorder->time_to)
		recorder->time_to = recorder_ask_time(recorder);
}

/* The engine may have to read all of a guest's kernel first. Under an emulator that takes half a minute. */
static json_t *session_start(struct recorder *recorder, json_t *arguments, GError **error)
{
	return client_execute(recorder->client, "session-start", arguments, NULL, NULL, SESSION_START_TIMEOUT_MS,
	                      error);
}

struct recorder *recorder_new(struct engine_process *engine, json_t *session, GError **error)
{
	struct recorder *recorder = recorder_alloc(engine_process_client(engine));

	recorder->arguments = json_incref(session);
	if (recorder_take_session(recorder, session_start(recorder, session, error), error) &&
	    recorder_get_rings(recorder, "rings", NULL, error)) {
		recorder_time_begin(recorder);
		return recorder;
	}
	recorder_free(recorder);
	return NULL;
}

struct recorder *recorder_new_of_counters(struct client *client, const json_t *counters, GError **error)
{
	struct recorder *recorder = recorder_alloc(client);
	bool done = recorder_take_session(recorder, counters_session(counters), error);
	const json_t *counter;
	size_t i;

	json_array_foreach(counters, i, counter)
		done = done &&
		       recorder_get_rings(recorder, "counter-rings",
		                          json_pack("{s:O}", "counter", json_object_get(counter, "counter")), error);
	if (done)
		return recorder;
	recorder_free(recorder);
	return NULL;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	recorder_tables_free(recorder->tables);
	recording_writer_free(recorder->writer);
	recorder_unmap_rings(recorder);
	session_events_free(recorder->events, recorder->n_events);
	histogram_free(recorder->frames);
	g_clear_pointer(&recorder->guest_symbols, g_array_unref);
	g_clear_pointer(&recorder->made_code, g_array_unref);
	g_string_chunk_free(recorder->texts);
	g_array_unref(recorder->kernels);
	names_free(recorder->names);
	json_decref(recorder->phases);
	json_decref(recorder->marks);
	json_decref(recorder->arguments);
	json_decref(recorder->statistics);
	json_decref(recorder->session);
	json_decref(recorder->time_from);
	json_decref(recorder->time_to);
	json_decref(recorder->rate);
	g_free(recorder);
}

void recorder_use_tables(struct recorder *recorder, const struct user_symbol_sources *sources, char *const *programs)
{
	const char *call_graph = member_text(recorder->session, "call-graph");

	if (call_graph && strcmp(call_graph, "none") != 0 && strcmp(call_graph, "fp") != 0)
		recorder->tables = recorder_tables_new(sources, programs);
}

const json_t *recorder_session(const struct recorder *recorder)
{
	return recorder->session;
}

uint64_t recorder_samples(const struct recorder *recorder)
{
	return recorder->samples;
}

uint64_t recorder_lost(const struct recorder *recorder)
{
	return recorder->lost;
}

uint64_t recorder_throttles(const struct recorder *recorder)
{
	return recorder->throttles;
}

json_t *recorder_time(const struct recorder *recorder)
{
	return recorder->time_from && recorder->time_to ? vcpu_clocks_window(recorder->time_from, recorder->time_to)
	                                                : NULL;
}

/* Updates what is known of the guest with this kernel. If the engine ends meanwhile, the old facts stay. */
static void recorder_ask_facts(struct recorder *recorder)
{
	static const char *const facts[] = {"tasks",       "tasks-why", "mappings-why",
	                                    "modules-why", "unwinder",  "unwinder-why"};
	json_t *session = engine_ask(recorder->client, "query-session", NULL, NULL);

	for (size_t i = 0; session && i < G_N_ELEMENTS(facts); i++)
		json_object_set(recorder->session, facts[i], json_object_get(session, facts[i]));
	json_decref(session);
}

bool recorder_kernel(struct recorder *recorder, const struct symtab *until, const struct image *image,
                     const struct symtab *symtab, GError **error)
{
	struct kernel_before before = {.symtab = until, .frames = recorder->frames};

	/* The rings hold samples of the last kernel, or of the boot of this one. */
	if (!recorder_drain(recorder, error))
		return false;
	recorder_ask_facts(recorder);
	g_array_append_val(recorder->kernels, before);
	recorder->frames = histogram_new(recorder->names, 0);
	return recorder_write_kernel(recorder, image, symtab, (uint64_t)g_get_monotonic_time() * 1000, error);
}

size_t recorder_poll(const struct recorder *recorder, struct pollfd *entries, size_t room)
{
	size_t n = MIN(room, recorder->n_rings);

	for (size_t i = 0; i < n; i++)
		entries[i] = (struct pollfd){.fd = recorder->eventfds[i], .events = POLLIN};
	return n;
}

static void recorder_count_sample(struct recorder *recorder, const struct record_sample *sample)
{
	const struct vprof_wait wait = record_sample_wait(sample);
	const struct record_sample lock = {.ip = wait.lock, .misc = PERF_RECORD_MISC_KERNEL};

	histogram_add_frames(recorder->frames, sample);
	/* For the name of a lock in the kernel's own data. */
	if (wait.lock_kind == VPROF_LOCK_MUTEX || wait.lock_kind == VPROF_LOCK_RWSEM)
		histogram_add(recorder->frames, &lock, 0);
	recorder->samples++;
}

/* The fields that the first event's samples have are all that most need. */
static bool sample_decode(const struct recorder *recorder, const struct perf_event_header *record, size_t bytes,
                          struct record_sample *sample)
{
	if (!record_sample_decode(record, bytes, recorder->events[0].attr.sample_type, sample))
		return false;
	for (size_t i = 1; i < recorder->n_events; i++)
		for (size_t k = 0; k < recorder->events[i].n_ids; k++)
			if (recorder->events[i].ids[k] == sample->id)
				return record_sample_decode(record, bytes, recorder->events[i].attr.sample_type,
				                            sample);
	return true;
}

static void recorder_count(struct recorder *recorder, const struct perf_event_header *record, size_t bytes)
{
	const uint64_t sample_type = recorder->events[0].attr.sample_type;
	struct record_sample sample;
	struct record_throttle throttle;
	struct record_lost lost;
	struct record_mmap mapping;

	if (recorder->tables && record_mmap_decode(record, bytes, &mapping))
		recorder_tables_want(recorder->tables, &mapping);
	if (record->type == PERF_RECORD_SAMPLE && sample_decode(recorder, record, bytes, &sample))
		recorder_count_sample(recorder, &sample);
	names_take(recorder->names, record, bytes, sample_type);
	if (record_lost_decode(record, bytes, &lost))
		recorder->lost += lost.lost;
	if (record_throttle_decode(record, bytes, &throttle) && !throttle.ends)
		recorder->throttles++;
}

static bool recorder_drain_ring(struct recorder *recorder, size_t vcpu, GError **error)
{
	struct ring_reader *ring = g_ptr_array_index(recorder->rings, vcpu);
	const struct perf_event_header *record;
	uint64_t wakeups;
	size_t bytes;

	/* Read before the ring, so that no later wake-up is lost. Without a wake-up, the read fails with EAGAIN. */
	if (read(recorder->eventfds[vcpu], &wakeups, sizeof(wakeups)) < 0 && errno != EAGAIN && errno != EINTR)
		return session_protocol_error(error, "an eventfd that cannot be read");
	while ((record = ring_reader_next(ring, &bytes))) {
		recorder_count(recorder, record, bytes);
		if (!recording_writer_record(recorder->writer, record, error))
			return false;
	}
	if (ring_reader_corrupt(ring)) {
		g_set_error(error, RECORDER_ERROR, RECORDER_ERROR_RING,
		            "the ring of vCPU %zu is corrupt; the engine has overwritten its own memory", vcpu);
		return false;
	}
	ring_reader_release(ring);
	return true;
}

bool recorder_drain(struct recorder *recorder, GError **error)
{
	for (size_t i = 0; i < recorder->n_rings; i++)
		if (!recorder_drain_ring(recorder, i, error))
			return false;
	if (recorder->tables)
		recorder_tables_send(recorder->tables, recorder->client);
	return recording_writer_round(recorder->writer, error);
}

static void guest_symbol_add(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	struct recorder *recorder = data;
	const struct recording_symbol kept = {
		.address = symbol->address,
		.size = symbol->size,
		.name = g_string_chunk_insert_const(recorder->texts, symbol->name),
		.module = g_string_chunk_insert_const(recorder->texts, symbol->module),
	};

	(void)address;
	g_array_append_val(recorder->guest_symbols, kept);
}

void recorder_ask_symbols(struct recorder *recorder)
{
	g_autoptr(GArray) addresses = NULL;
	g_autoptr(GError) error = NULL;

	/* The next drain reports what cannot be written. */
	recorder_drain(recorder, NULL);
	if (recorder->tables)
		recorder_tables_settle(recorder->tables, recorder->client);
	addresses = module_addresses(recorder->frames, NULL);
	g_clear_pointer(&recorder->guest_symbols, g_array_unref);
	recorder->guest_symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));
	if (!module_symbols_ask(recorder->client, addresses, guest_symbol_add, recorder, &error))
		warn("no symbols of the guest's modules: %s", error->message);
	jit_symbols_ask(recorder->client, recorder->frames, guest_symbol_add, recorder);
}

bool recorder_pause(struct recorder *recorder, GError **error)
{
	recorder_time_end(recorder);

	json_t *stopped = engine_ask(recorder->client, "session-stop", NULL, error);

	json_decref(recorder->statistics);
	recorder->statistics = json_incref(json_object_get(stopped, "statistics"));
	json_decref(stopped);
	return stopped && recorder_drain(recorder, error);
}

bool recorder_resume(struct recorder *recorder, GError **error)
{
	if (recorder->tables)
		recorder_tables_send(recorder->tables, recorder->client);
	json_t *session = session_start(recorder, json_incref(recorder->arguments), error);
	bool started = session != NULL;

	json_decref(session);
	json_decref(g_steal_pointer(&recorder->statistics));
	recorder_unmap_rings(recorder);
	if (!started || !recorder_get_rings(recorder, "rings", NULL, error))
		return false;
	recorder_time_begin(recorder);
	return true;
}

const json_t *recorder_statistics(const struct recorder *recorder)
{
	return recorder->statistics;
}

void recorder_phase(struct recorder *recorder, json_t *phase)
{
	json_array_append(recorder->phases, phase);
}

void recorder_marker(struct recorder *recorder, json_t *marker)
{
	recorder->marks_left_out |= json_array_size(recorder->marks) == VPROF_MARKERS_MAX;
	if (!recorder->marks_left_out)
		json_array_append(recorder->marks, marker);
}

void recorder_mark(struct recorder *recorder, const char *name, bool begins, uint64_t time_ns)
{
	json_t *marker = json_pack("{s:o, s:s, s:I}", "name", text_json(name), "kind", begins ? "begin" : "end",
	                           "time-ns", (json_int_t)time_ns);

	recorder_marker(recorder, marker);
	json_decref(marker);
}

bool recorder_marks_left_out(const struct recorder *recorder)
{
	return recorder->marks_left_out;
}
