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

G_DEFINE_QUARK(vprof_capture_error, capture_error)

/* Descriptors come in pairs: the memory of a ring, and the eventfd that signals that it should be drained. */
static bool capture_map_rings(struct capture *capture, const int *fds, size_t n_fds, GError **error)
{
	if (!capture->rings)
		capture->rings = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);
	if (!session_rings_map(capture->rings, fds, n_fds, error))
		return false;
	capture->eventfds = g_renew(int, capture->eventfds, capture->n_rings + n_fds / 2);
	for (size_t i = 0; i < n_fds / 2; i++) {
		int eventfd = fcntl(fds[2 * i + 1], F_DUPFD_CLOEXEC, 0);

		capture->eventfds[capture->n_rings++] = eventfd;
		if (eventfd < 0) {
			g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_RING, "cannot duplicate a ring's eventfd: %s",
			            g_strerror(errno));
			return false;
		}
	}
	return true;
}

static void capture_unmap_rings(struct capture *capture)
{
	for (size_t i = 0; i < capture->n_rings; i++)
		if (capture->eventfds[i] >= 0)
			close(capture->eventfds[i]);
	capture->n_rings = 0;
	g_clear_pointer(&capture->rings, g_ptr_array_unref);
	g_clear_pointer(&capture->eventfds, g_free);
}

/* Adds the rings that `method` returns; steals `arguments`. */
static bool capture_get_rings(struct capture *capture, const char *method, json_t *arguments, GError **error)
{
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer =
		client_execute(capture->client, method, arguments, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);
	bool mapped = answer && capture_map_rings(capture, fds, n_fds, error);

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

static struct capture *capture_alloc(struct client *client)
{
	struct capture *capture = g_new0(struct capture, 1);

	capture->client = client;
	capture->phases = json_array();
	capture->marks = json_array();
	capture->names = names_new();
	capture->texts = g_string_chunk_new(1024);
	capture->frames = histogram_new(capture->names, 0);
	capture->kernels = g_array_new(FALSE, FALSE, sizeof(struct kernel_before));
	g_array_set_clear_func(capture->kernels, kernel_before_clear);
	return capture;
}

/* Steals the answer to session-start, or what looks like it. */
static bool capture_take_session(struct capture *capture, json_t *session, GError **error)
{
	capture->session = session;
	capture->rate = rate_of(session);
	const char *rate_why = session ? member_text(session, "rate-why") : NULL;

	if (rate_why)
		warn("%s", rate_why);
	if (session)
		capture->events = session_events_parse(session, &capture->n_events, error);
	return capture->events != NULL;
}

/* A vCPU has a ring. Without an answer, the recording has no account of time. */
static json_t *capture_ask_time(const struct capture *capture)
{
	return vcpu_clocks_query(capture->client, (unsigned)capture->n_rings, ENGINE_ANSWER_TIMEOUT_MS, NULL);
}

static void capture_time_begin(struct capture *capture)
{
	json_decref(g_steal_pointer(&capture->time_to));
	json_decref(capture->time_from);
	capture->time_from = capture_ask_time(capture);
}

void capture_time_end(struct capture *capture)
{
	if (!capture->time_to)
		capture->time_to = capture_ask_time(capture);
}

/* The engine may have to read all of a guest's kernel first. Under an emulator that takes half a minute. */
static json_t *session_start(struct capture *capture, json_t *arguments, GError **error)
{
	return client_execute(capture->client, "session-start", arguments, NULL, NULL, SESSION_START_TIMEOUT_MS, error);
}

struct capture *capture_new(struct engine_process *engine, json_t *session, GError **error)
{
	struct capture *capture = capture_alloc(engine_process_client(engine));

	capture->arguments = json_incref(session);
	if (capture_take_session(capture, session_start(capture, session, error), error) &&
	    capture_get_rings(capture, "rings", NULL, error)) {
		capture_time_begin(capture);
		return capture;
	}
	capture_free(capture);
	return NULL;
}

struct capture *capture_new_of_counters(struct client *client, const json_t *counters, GError **error)
{
	struct capture *capture = capture_alloc(client);
	bool done = capture_take_session(capture, counters_session(counters), error);
	const json_t *counter;
	size_t i;

	json_array_foreach(counters, i, counter)
		done = done &&
		       capture_get_rings(capture, "counter-rings",
		                         json_pack("{s:O}", "counter", json_object_get(counter, "counter")), error);
	if (done)
		return capture;
	capture_free(capture);
	return NULL;
}

void capture_free(struct capture *capture)
{
	if (!capture)
		return;
	capture_tables_free(capture->tables);
	recording_writer_free(capture->writer);
	capture_unmap_rings(capture);
	session_events_free(capture->events, capture->n_events);
	histogram_free(capture->frames);
	g_clear_pointer(&capture->guest_symbols, g_array_unref);
	g_clear_pointer(&capture->made_code, g_array_unref);
	g_string_chunk_free(capture->texts);
	g_array_unref(capture->kernels);
	names_free(capture->names);
	json_decref(capture->phases);
	json_decref(capture->marks);
	json_decref(capture->arguments);
	json_decref(capture->statistics);
	json_decref(capture->session);
	json_decref(capture->time_from);
	json_decref(capture->time_to);
	json_decref(capture->rate);
	g_free(capture);
}

void capture_use_tables(struct capture *capture, const struct user_symbol_sources *sources, char *const *programs)
{
	const char *call_graph = member_text(capture->session, "call-graph");

	if (call_graph && strcmp(call_graph, "none") != 0 && strcmp(call_graph, "fp") != 0)
		capture->tables = capture_tables_new(sources, programs);
}

const json_t *capture_session(const struct capture *capture)
{
	return capture->session;
}

uint64_t capture_samples(const struct capture *capture)
{
	return capture->samples;
}

uint64_t capture_lost(const struct capture *capture)
{
	return capture->lost;
}

uint64_t capture_throttles(const struct capture *capture)
{
	return capture->throttles;
}

json_t *capture_time(const struct capture *capture)
{
	return capture->time_from && capture->time_to ? vcpu_clocks_window(capture->time_from, capture->time_to) : NULL;
}

/* Updates what is known of the guest with this kernel. If the engine ends meanwhile, the old facts stay. */
static void capture_ask_facts(struct capture *capture)
{
	static const char *const facts[] = {"tasks",       "tasks-why", "mappings-why",
	                                    "modules-why", "unwinder",  "unwinder-why"};
	json_t *session = engine_ask(capture->client, "query-session", NULL, NULL);

	for (size_t i = 0; session && i < G_N_ELEMENTS(facts); i++)
		json_object_set(capture->session, facts[i], json_object_get(session, facts[i]));
	json_decref(session);
}

bool capture_kernel(struct capture *capture, const struct symtab *until, const struct image *image,
                    const struct symtab *symtab, GError **error)
{
	struct kernel_before before = {.symtab = until, .frames = capture->frames};

	/* The rings hold samples of the last kernel, or of the boot of this one. */
	if (!capture_drain(capture, error))
		return false;
	capture_ask_facts(capture);
	g_array_append_val(capture->kernels, before);
	capture->frames = histogram_new(capture->names, 0);
	return capture_write_kernel(capture, image, symtab, (uint64_t)g_get_monotonic_time() * 1000, error);
}

size_t capture_poll(const struct capture *capture, struct pollfd *entries, size_t room)
{
	size_t n = MIN(room, capture->n_rings);

	for (size_t i = 0; i < n; i++)
		entries[i] = (struct pollfd){.fd = capture->eventfds[i], .events = POLLIN};
	return n;
}

static void capture_count_sample(struct capture *capture, const struct record_sample *sample)
{
	const struct vprof_wait wait = record_sample_wait(sample);
	const struct record_sample lock = {.ip = wait.lock, .misc = PERF_RECORD_MISC_KERNEL};

	histogram_add_frames(capture->frames, sample);
	/* For the name of a lock in the kernel's own data. */
	if (wait.lock_kind == VPROF_LOCK_MUTEX || wait.lock_kind == VPROF_LOCK_RWSEM)
		histogram_add(capture->frames, &lock, 0);
	capture->samples++;
}

/* The fields that the first event's samples have are all that most need. */
static bool sample_decode(const struct capture *capture, const struct perf_event_header *record, size_t bytes,
                          struct record_sample *sample)
{
	if (!record_sample_decode(record, bytes, capture->events[0].attr.sample_type, sample))
		return false;
	for (size_t i = 1; i < capture->n_events; i++)
		for (size_t k = 0; k < capture->events[i].n_ids; k++)
			if (capture->events[i].ids[k] == sample->id)
				return record_sample_decode(record, bytes, capture->events[i].attr.sample_type, sample);
	return true;
}

static void capture_count(struct capture *capture, const struct perf_event_header *record, size_t bytes)
{
	const uint64_t sample_type = capture->events[0].attr.sample_type;
	struct record_sample sample;
	struct record_throttle throttle;
	struct record_lost lost;
	struct record_mmap mapping;

	if (capture->tables && record_mmap_decode(record, bytes, &mapping))
		capture_tables_want(capture->tables, &mapping);
	if (record->type == PERF_RECORD_SAMPLE && sample_decode(capture, record, bytes, &sample))
		capture_count_sample(capture, &sample);
	names_take(capture->names, record, bytes, sample_type);
	if (record_lost_decode(record, bytes, &lost))
		capture->lost += lost.lost;
	if (record_throttle_decode(record, bytes, &throttle) && !throttle.ends)
		capture->throttles++;
}

static bool capture_drain_ring(struct capture *capture, size_t vcpu, GError **error)
{
	struct ring_reader *ring = g_ptr_array_index(capture->rings, vcpu);
	const struct perf_event_header *record;
	uint64_t wakeups;
	size_t bytes;

	/* Read before the ring, so that no later wake-up is lost. Without a wake-up, the read fails with EAGAIN. */
	if (read(capture->eventfds[vcpu], &wakeups, sizeof(wakeups)) < 0 && errno != EAGAIN && errno != EINTR)
		return session_protocol_error(error, "an eventfd that cannot be read");
	while ((record = ring_reader_next(ring, &bytes))) {
		capture_count(capture, record, bytes);
		if (!recording_writer_record(capture->writer, record, error))
			return false;
	}
	if (ring_reader_corrupt(ring)) {
		g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_RING,
		            "the ring of vCPU %zu is corrupt; the engine has overwritten its own memory", vcpu);
		return false;
	}
	ring_reader_release(ring);
	return true;
}

bool capture_drain(struct capture *capture, GError **error)
{
	for (size_t i = 0; i < capture->n_rings; i++)
		if (!capture_drain_ring(capture, i, error))
			return false;
	if (capture->tables)
		capture_tables_send(capture->tables, capture->client);
	return recording_writer_round(capture->writer, error);
}

static void guest_symbol_add(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	struct capture *capture = data;
	const struct recording_symbol kept = {
		.address = symbol->address,
		.size = symbol->size,
		.name = g_string_chunk_insert_const(capture->texts, symbol->name),
		.module = g_string_chunk_insert_const(capture->texts, symbol->module),
	};

	(void)address;
	g_array_append_val(capture->guest_symbols, kept);
}

void capture_ask_symbols(struct capture *capture)
{
	g_autoptr(GArray) addresses = NULL;
	g_autoptr(GError) error = NULL;

	/* The next drain reports what cannot be written. */
	capture_drain(capture, NULL);
	if (capture->tables)
		capture_tables_settle(capture->tables, capture->client);
	addresses = module_addresses(capture->frames, NULL);
	g_clear_pointer(&capture->guest_symbols, g_array_unref);
	capture->guest_symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));
	if (!module_symbols_ask(capture->client, addresses, guest_symbol_add, capture, &error))
		warn("no symbols of the guest's modules: %s", error->message);
	jit_symbols_ask(capture->client, capture->frames, guest_symbol_add, capture);
}

bool capture_pause(struct capture *capture, GError **error)
{
	capture_time_end(capture);

	json_t *stopped = engine_ask(capture->client, "session-stop", NULL, error);

	json_decref(capture->statistics);
	capture->statistics = json_incref(json_object_get(stopped, "statistics"));
	json_decref(stopped);
	return stopped && capture_drain(capture, error);
}

bool capture_resume(struct capture *capture, GError **error)
{
	if (capture->tables)
		capture_tables_send(capture->tables, capture->client);
	json_t *session = session_start(capture, json_incref(capture->arguments), error);
	bool started = session != NULL;

	json_decref(session);
	json_decref(g_steal_pointer(&capture->statistics));
	capture_unmap_rings(capture);
	if (!started || !capture_get_rings(capture, "rings", NULL, error))
		return false;
	capture_time_begin(capture);
	return true;
}

const json_t *capture_statistics(const struct capture *capture)
{
	return capture->statistics;
}

void capture_phase(struct capture *capture, json_t *phase)
{
	json_array_append(capture->phases, phase);
}

void capture_marker(struct capture *capture, json_t *marker)
{
	capture->marks_left_out |= json_array_size(capture->marks) == VPROF_MARKERS_MAX;
	if (!capture->marks_left_out)
		json_array_append(capture->marks, marker);
}

void capture_mark(struct capture *capture, const char *name, bool begins, uint64_t time_ns)
{
	json_t *marker = json_pack("{s:o, s:s, s:I}", "name", text_json(name), "kind", begins ? "begin" : "end",
	                           "time-ns", (json_int_t)time_ns);

	capture_marker(capture, marker);
	json_decref(marker);
}

bool capture_marks_left_out(const struct capture *capture)
{
	return capture->marks_left_out;
}
