// SPDX-License-Identifier: BSD-2-Clause
/* A recording from its begin to the end of its session: the rings are drained into the file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "engine/engine_modules.h"
#include "engine/engine_process.h"
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

/* ---- a session of the engine's ---- */

static void eventfd_close(void *data)
{
	close(*(int *)data);
}

static void rings_unmap(struct recorder *recorder)
{
	g_clear_pointer(&recorder->rings, g_ptr_array_unref);
	g_clear_pointer(&recorder->eventfds, g_array_unref);
}

bool recorder_get_rings(struct recorder *recorder, const char *method, json_t *arguments, GError **error)
{
	if (!recorder->rings) {
		recorder->rings = g_ptr_array_new_with_free_func((GDestroyNotify)ring_reader_free);
		recorder->eventfds = g_array_new(FALSE, FALSE, sizeof(int));
		g_array_set_clear_func(recorder->eventfds, eventfd_close);
	}
	return session_rings_get(recorder->config.client, method, arguments, recorder->rings, recorder->eventfds,
	                         error);
}

/* A vCPU has a ring. Without an answer, the recording has no account of time. */
static json_t *time_ask(const struct recorder *recorder)
{
	return vcpu_clocks_query(recorder->config.client, recorder->rings->len, ENGINE_ANSWER_TIMEOUT_MS, NULL);
}

/* The engine may have to read all of a guest's kernel first. Under an emulator that takes half a minute. */
static json_t *session_begin(struct recorder *recorder, GError **error)
{
	json_t *session =
		client_execute(recorder->config.client, "session-start", json_incref(recorder->config.session), NULL,
	                       NULL, SESSION_START_TIMEOUT_MS, error);

	rings_unmap(recorder);
	if (!session || !recorder_get_rings(recorder, "rings", NULL, error)) {
		json_decref(session);
		return NULL;
	}
	json_decref(g_steal_pointer(&recorder->time_to));
	json_decref(recorder->time_from);
	recorder->time_from = time_ask(recorder);
	return session;
}

/* One that is paused has said all. */
static bool session_stop(struct recorder *recorder, GError **error)
{
	if (recorder->statistics)
		return true;
	if (!recorder->time_to)
		recorder->time_to = time_ask(recorder);
	json_t *stopped = engine_ask(recorder->config.client, "session-stop", NULL, error);

	recorder->statistics = json_incref(json_object_get(stopped, "statistics"));
	json_decref(stopped);
	return stopped != NULL;
}

const struct recorder_source recorder_of_session = {.begin = session_begin, .stop = session_stop};

bool recorder_pause(struct recorder *recorder, GError **error)
{
	return session_stop(recorder, error) && recorder_drain(recorder, error);
}

bool recorder_resume(struct recorder *recorder, GError **error)
{
	if (recorder->tables)
		recorder_tables_send(recorder->tables, recorder->config.client);
	json_t *session = session_begin(recorder, error);

	json_decref(session);
	json_decref(g_steal_pointer(&recorder->statistics));
	return session != NULL;
}

/* ---- its begin ---- */

static json_t *rate_of(const json_t *session)
{
	static const char *const names[] = {"frequency-hz", "period"};
	json_t *rate = json_object();

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		member_set(rate, names[i], json_object_get(session, names[i]));
	return rate;
}

static struct guest_kernel kernel_load(const struct recorder *recorder)
{
	g_autoptr(GError) why = NULL;
	struct guest_kernel kernel = guest_kernel_load(recorder->config.client, recorder->config.guest, NULL, &why);

	if (!kernel.symtab)
		warn("addresses will have no names: %s", why->message);
	return kernel;
}

/* Must run while QEMU lives. */
static void host_load(struct recorder *recorder)
{
	const uint64_t process = member_number(recorder->session, "host", 0);

	if (process == 0)
		return;
	recorder->host = host_symbols_new("/proc", (pid_t)process, recorder_sources(recorder).debuginfod);
	const char *whys[] = {host_symbols_kernel_why(recorder->host), host_symbols_process_why(recorder->host)};

	for (size_t i = 0; i < G_N_ELEMENTS(whys); i++)
		if (whys[i])
			warn("%s will have no names: %s", i == 0 ? "the host's kernel functions" : "QEMU's functions",
			     whys[i]);
}

static void tables_begin(struct recorder *recorder)
{
	const char *call_graph = member_text(recorder->session, "call-graph");
	const struct user_symbol_sources sources = recorder_sources(recorder);

	if (recorder->config.tables && call_graph && strcmp(call_graph, "none") != 0 && strcmp(call_graph, "fp") != 0)
		recorder->tables = recorder_tables_new(&sources, recorder->config.programs);
}

static bool begin(struct recorder *recorder, GError **error)
{
	recorder->session = recorder->source->begin(recorder, error);
	if (!recorder->session)
		return false;
	const char *rate_why = member_text(recorder->session, "rate-why");

	if (rate_why)
		warn("%s", rate_why);
	recorder->rate = rate_of(recorder->session);
	recorder->events = session_events_parse(recorder->session, &recorder->n_events, error);
	if (!recorder->events)
		return false;
	recorder->kernel = recorder->config.kernel ? *recorder->config.kernel : kernel_load(recorder);
	host_load(recorder);
	tables_begin(recorder);
	return true;
}

struct recorder *recorder_new(const struct recorder_config *config, GError **error)
{
	struct recorder *recorder = g_new0(struct recorder, 1);

	recorder->config = *config;
	json_incref(config->guest);
	json_incref(config->session);
	json_incref(config->counters);
	recorder->source = config->session ? &recorder_of_session : &recorder_of_counters;
	recorder->phases = json_array();
	recorder->marks = json_array();
	recorder->names = names_new();
	recorder->texts = g_string_chunk_new(1024);
	recorder->frames = histogram_new(recorder->names, 0);
	recorder->frames_before = g_ptr_array_new_with_free_func((GDestroyNotify)histogram_free);
	recorder->kernel_symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));
	if (begin(recorder, error))
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
	rings_unmap(recorder);
	session_events_free(recorder->events, recorder->n_events);
	g_ptr_array_unref(recorder->frames_before);
	g_array_unref(recorder->kernel_symbols);
	histogram_free(recorder->frames);
	if (!recorder->config.kernel) /* those that are shared are not ours */
		guest_kernel_clear(&recorder->kernel);
	json_decref(recorder->config.guest);
	json_decref(recorder->config.session);
	json_decref(recorder->config.counters);
	host_symbols_free(recorder->host);
	g_clear_pointer(&recorder->guest_symbols, g_array_unref);
	g_clear_pointer(&recorder->made_code, g_array_unref);
	g_string_chunk_free(recorder->texts);
	names_free(recorder->names);
	json_decref(recorder->phases);
	json_decref(recorder->marks);
	json_decref(recorder->statistics);
	json_decref(recorder->session);
	json_decref(recorder->time_from);
	json_decref(recorder->time_to);
	json_decref(recorder->rate);
	g_clear_error(&recorder->failure);
	g_free(recorder->path);
	g_free(recorder);
}

const json_t *recorder_session(const struct recorder *recorder)
{
	return recorder->session;
}

uint64_t recorder_samples(const struct recorder *recorder)
{
	return recorder->samples;
}

bool recorder_failed(const struct recorder *recorder)
{
	return recorder->failure != NULL;
}

const json_t *recorder_statistics(const struct recorder *recorder)
{
	return recorder->statistics;
}

json_t *recorder_time(const struct recorder *recorder)
{
	return recorder->time_from && recorder->time_to ? vcpu_clocks_window(recorder->time_from, recorder->time_to)
	                                                : NULL;
}

/* Updates what is known of the guest with this kernel. If the engine ends meanwhile, the old facts stay. */
static void facts_ask(struct recorder *recorder)
{
	static const char *const facts[] = {"tasks",    "tasks-why",    "mappings-why", "modules-why",
	                                    "unwinder", "unwinder-why", "waits-why"};
	json_t *session = engine_ask(recorder->config.client, "query-session", NULL, NULL);

	for (size_t i = 0; session && i < G_N_ELEMENTS(facts); i++)
		json_object_set(recorder->session, facts[i], json_object_get(session, facts[i]));
	json_decref(session);
}

/* The symbol with texts of its own. */
static struct recording_symbol symbol_kept(struct recorder *recorder, const struct recording_symbol *symbol)
{
	return (struct recording_symbol){
		.address = symbol->address,
		.size = symbol->size,
		.name = g_string_chunk_insert_const(recorder->texts, symbol->name),
		.module = g_string_chunk_insert_const(recorder->texts, symbol->module),
	};
}

/* Names what was sampled of the kernel: of a guest's kernels, one at a time has its symbols in memory. */
static void kernel_end(struct recorder *recorder)
{
	g_autoptr(GArray) hits = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	recorder_kernel_hits(recorder, hits);
	for (guint i = 0; i < hits->len; i++) {
		const struct recording_symbol kept =
			symbol_kept(recorder, &g_array_index(hits, struct recording_symbol, i));

		g_array_append_val(recorder->kernel_symbols, kept);
	}
	if (recorder->config.kernel) /* it is shared, and not ours; the next one is */
		recorder->kernel = (struct guest_kernel){NULL, NULL};
	recorder->config.kernel = NULL;
	guest_kernel_clear(&recorder->kernel);
}

const char *recorder_reboot(struct recorder *recorder)
{
	/* The rings hold samples of the last kernel, or of the boot of the next one. */
	recorder_drain(recorder, NULL);
	kernel_end(recorder);
	recorder->kernel = kernel_load(recorder);
	if (!recorder->kernel.image || recorder->failure)
		return NULL;
	facts_ask(recorder);
	g_ptr_array_add(recorder->frames_before, recorder->frames);
	recorder->frames = histogram_new(recorder->names, 0);
	recorder_write_kernel(recorder, (uint64_t)g_get_monotonic_time() * 1000, &recorder->failure);
	const char *release = image_release(recorder->kernel.image);

	return release ? release : "";
}

/* ---- meanwhile ---- */

size_t recorder_poll(const struct recorder *recorder, struct pollfd *entries, size_t room)
{
	size_t n = MIN(room, recorder->eventfds->len);

	for (size_t i = 0; i < n; i++)
		entries[i] = (struct pollfd){.fd = g_array_index(recorder->eventfds, int, i), .events = POLLIN};
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
	struct record_mmap mapping;

	if (recorder->tables && record_mmap_decode(record, bytes, &mapping))
		recorder_tables_want(recorder->tables, &mapping);
	if (record->type == PERF_RECORD_SAMPLE && sample_decode(recorder, record, bytes, &sample))
		recorder_count_sample(recorder, &sample);
	names_take(recorder->names, record, bytes, sample_type);
	record_losses_take(&recorder->losses, record, bytes);
	if (record_throttle_decode(record, bytes, &throttle) && !throttle.ends)
		recorder->throttles++;
}

static bool recorder_drain_ring(struct recorder *recorder, guint vcpu, GError **error)
{
	struct ring_reader *ring = g_ptr_array_index(recorder->rings, vcpu);
	const struct perf_event_header *record;
	uint64_t wakeups;
	size_t bytes;

	/* Read before the ring, so that no later wake-up is lost. Without a wake-up, the read fails with EAGAIN. */
	if (read(g_array_index(recorder->eventfds, int, vcpu), &wakeups, sizeof(wakeups)) < 0 && errno != EAGAIN &&
	    errno != EINTR)
		return session_protocol_error(error, "an eventfd that cannot be read");
	while ((record = ring_reader_next(ring, &bytes))) {
		recorder_count(recorder, record, bytes);
		if (!recording_writer_record(recorder->writer, record, error))
			return false;
	}
	if (ring_reader_corrupt(ring)) {
		g_set_error(error, RECORDER_ERROR, RECORDER_ERROR_RING,
		            "the ring of vCPU %u is corrupt; the engine has overwritten its own memory", vcpu);
		return false;
	}
	ring_reader_release(ring);
	return true;
}

static bool drain(struct recorder *recorder, GError **error)
{
	for (guint i = 0; i < recorder->rings->len; i++)
		if (!recorder_drain_ring(recorder, i, error))
			return false;
	if (recorder->tables)
		recorder_tables_send(recorder->tables, recorder->config.client);
	return recording_writer_round(recorder->writer, error);
}

bool recorder_drain(struct recorder *recorder, GError **error)
{
	if (!recorder->failure && drain(recorder, &recorder->failure))
		return true;
	if (error)
		*error = g_error_copy(recorder->failure);
	return false;
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

/* ---- the end of its session ---- */

static void guest_symbol_add(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	struct recorder *recorder = data;
	const struct recording_symbol kept = symbol_kept(recorder, symbol);

	(void)address;
	g_array_append_val(recorder->guest_symbols, kept);
}

/* Symbols that only the guest has: those of its kernel's modules, and of code that was compiled at run time. */
static void symbols_ask(struct recorder *recorder)
{
	struct client *client = recorder->config.client;
	g_autoptr(GArray) addresses = NULL;
	g_autoptr(GError) error = NULL;

	/* The next drain reports what cannot be written. */
	recorder_drain(recorder, NULL);
	if (recorder->tables)
		recorder_tables_settle(recorder->tables, client);
	addresses = module_addresses(recorder->frames, NULL);
	g_clear_pointer(&recorder->guest_symbols, g_array_unref);
	recorder->guest_symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));
	if (!module_symbols_ask(client, addresses, guest_symbol_add, recorder, &error))
		warn("no symbols of the guest's modules: %s", error->message);
	jit_symbols_ask(client, recorder->frames, guest_symbol_add, recorder);
}

bool recorder_stop(struct recorder *recorder, GError **error)
{
	g_autoptr(GError) why = NULL;
	const bool stopped = recorder->source->stop(recorder, &why);

	/* Another client may have ended it before. */
	if (stopped || g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_REMOTE))
		symbols_ask(recorder);
	if (!stopped)
		g_propagate_error(error, g_steal_pointer(&why));
	return stopped;
}
