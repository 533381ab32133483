// SPDX-License-Identifier: BSD-2-Clause
#include "run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/profile/chain.h"
#include "lib/profile/histogram.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "lib/record/writer.h"
#include "run_symbols.h"
#include "text.h"

G_DEFINE_QUARK(vprof_capture_error, capture_error)

struct capture {
	struct engine *engine;
	json_t *arguments;  /* of session-start */
	json_t *statistics; /* of the last session, once it was ended here */
	json_t *session;    /* the answer to session-start; the events' names live in it */
	json_t *rate;       /* {"frequency-hz": N} or {"period": N}, of the session */
	json_t *phases;
	json_t *marks;
	bool marks_left_out; /* there were too many */
	struct recording_event *events;
	size_t n_events;
	struct ring_reader **rings;
	int *eventfds;
	size_t n_rings;
	struct recording_writer *writer;
	struct mappings *mappings;
	struct histogram *frames; /* of all call chains: every address that wants a symbol */
	uint64_t samples;
	uint64_t lost;
};

static bool protocol_error(GError **error, const char *what)
{
	g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_PROTOCOL,
	            "the engine's answer makes no sense: %s; are vprof and vprof-vmm from one installation?", what);
	return false;
}

/* "hex of VPROF_ATTR_BYTES bytes". */
static bool attr_parse(const char *hex, struct perf_event_attr *attr)
{
	uint8_t bytes[VPROF_ATTR_BYTES];

	if (hex == NULL || strlen(hex) != 2 * sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		int high = g_ascii_xdigit_value(hex[2 * i]), low = g_ascii_xdigit_value(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	/* attr may be longer than the file's in newer headers; what is added there is 0 for "not used". */
	memset(attr, 0, sizeof(*attr));
	memcpy(attr, bytes, MIN(sizeof(bytes), sizeof(*attr)));
	return true;
}

static bool event_parse(const json_t *json, struct recording_event *event, GError **error)
{
	const json_t *ids = json_object_get(json, "ids"), *id;
	uint64_t *numbers;
	size_t i;

	event->name = member_text(json, "name");
	if (event->name == NULL || !attr_parse(member_text(json, "attr"), &event->attr))
		return protocol_error(error, "an event without a name or with a wrong attr");
	numbers = g_new(uint64_t, json_array_size(ids));
	event->ids = numbers;
	event->n_ids = json_array_size(ids);
	json_array_foreach(ids, i, id) numbers[i] = (uint64_t)json_integer_value(id);
	return true;
}

static bool capture_parse_events(struct capture *capture, GError **error)
{
	const json_t *events = json_object_get(capture->session, "events"), *event;
	size_t i;

	if (json_array_size(events) == 0)
		return protocol_error(error, "a session without events");
	capture->n_events = json_array_size(events);
	capture->events = g_new0(struct recording_event, capture->n_events);
	json_array_foreach(events, i, event) if (!event_parse(event, &capture->events[i], error)) return false;
	return true;
}

/* Descriptors come in pairs: a ring's memory, and the eventfd that says it wants to be drained. */
static bool capture_map_rings(struct capture *capture, const int *fds, size_t n_fds, GError **error)
{
	if (n_fds == 0 || n_fds % 2 != 0)
		return protocol_error(error, "rings without descriptors");
	capture->rings = g_new0(struct ring_reader *, n_fds / 2);
	capture->eventfds = g_new(int, n_fds / 2);
	for (size_t i = 0; i < n_fds / 2; i++) {
		capture->rings[i] = ring_reader_open(fds[2 * i], error);
		if (capture->rings[i] == NULL)
			return false;
		capture->eventfds[i] = fcntl(fds[2 * i + 1], F_DUPFD_CLOEXEC, 0);
		capture->n_rings++;
		if (capture->eventfds[i] < 0) {
			g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_RING, "cannot keep a ring's eventfd: %s",
			            g_strerror(errno));
			return false;
		}
	}
	return true;
}

static void capture_unmap_rings(struct capture *capture)
{
	for (size_t i = 0; i < capture->n_rings; i++) {
		ring_reader_free(capture->rings[i]);
		if (capture->eventfds[i] >= 0)
			close(capture->eventfds[i]);
	}
	capture->n_rings = 0;
	g_clear_pointer(&capture->rings, g_free);
	g_clear_pointer(&capture->eventfds, g_free);
}

static bool capture_get_rings(struct capture *capture, struct engine *engine, GError **error)
{
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer = engine_execute_fds(engine, "rings", &fds, &n_fds, error);
	bool mapped = answer != NULL && capture_map_rings(capture, fds, n_fds, error);

	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return mapped;
}

static void object_set(json_t *object, const char *name, const json_t *value)
{
	if (value != NULL)
		json_object_set(object, name, (json_t *)value);
}

static json_t *rate_of(const json_t *session)
{
	static const char *const names[] = {"frequency-hz", "period"};
	json_t *rate = json_object();

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		object_set(rate, names[i], json_object_get(session, names[i]));
	return rate;
}

struct capture *capture_new(struct engine *engine, json_t *session, GError **error)
{
	struct capture *capture = g_new0(struct capture, 1);

	capture->engine = engine;
	capture->arguments = json_incref(session);
	capture->phases = json_array();
	capture->marks = json_array();
	capture->mappings = mappings_new();
	capture->frames = histogram_new(false);
	histogram_by_file(capture->frames, capture->mappings);
	capture->session = engine_execute(engine, "session-start", session, error);
	capture->rate = rate_of(capture->session);
	if (capture->session != NULL && capture_parse_events(capture, error) &&
	    capture_get_rings(capture, engine, error))
		return capture;
	capture_free(capture);
	return NULL;
}

void capture_free(struct capture *capture)
{
	if (capture == NULL)
		return;
	recording_writer_free(capture->writer);
	capture_unmap_rings(capture);
	for (size_t i = 0; i < capture->n_events; i++)
		g_free((void *)capture->events[i].ids);
	g_free(capture->events);
	histogram_free(capture->frames);
	mappings_free(capture->mappings);
	json_decref(capture->phases);
	json_decref(capture->marks);
	json_decref(capture->arguments);
	json_decref(capture->statistics);
	json_decref(capture->session);
	json_decref(capture->rate);
	g_free(capture);
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

/* Devices and pipes are no recordings: they stay where they are. */
static bool file_set_aside(const char *path, GError **error)
{
	g_autofree char *old = g_strconcat(path, ".old", NULL);
	struct stat status;

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || rename(path, old) == 0)
		return true;
	g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_FILE, "cannot rename %s to %s: %s", path, old,
	            g_strerror(errno));
	return false;
}

static bool capture_write(struct capture *capture, const void *record, GError **error)
{
	return recording_writer_record(capture->writer, record, error);
}

#define PROLOGUE_RECORD_BYTES 8192u /* a path (PATH_MAX) and the fields around it */

/*
 * perf finds a kernel's symbols by a mapping named after the symbol whose address is its page offset (Linux,
 * tools/perf/util/synthetic-events.c, perf_event__synthesize_kernel_mmap).
 */
static bool capture_write_kernel(struct capture *capture, const struct code_range *kernel, GError **error)
{
	const struct record_id id = {.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0};
	g_autofree char *name = g_strdup_printf("[kernel.kallsyms]%s", kernel->name);
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_mmap_encode(PERF_RECORD_MISC_KERNEL, UINT32_MAX, kernel->start, kernel->bytes, kernel->start, name,
	                       &id, record, sizeof(record)) == 0)
		return true;
	return capture_write(capture, record, error);
}

static bool capture_write_comm(struct capture *capture, uint32_t pid, const char *comm, GError **error)
{
	const struct record_id id = {
		.pid = pid,
		.tid = pid,
		.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0,
	};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];

	if (record_comm_encode(comm, false, &id, record, sizeof(record)) == 0)
		return true;
	return capture_write(capture, record, error);
}

/* The tasks that the engine does not name: all of the guest, or its idle tasks and what it could not tell. */
static bool capture_write_comms(struct capture *capture, GError **error)
{
	if (!json_is_true(json_object_get(capture->session, "tasks")))
		return capture_write_comm(capture, 0, "guest", error);
	return capture_write_comm(capture, 0, "swapper", error) &&
	       capture_write_comm(capture, VPROF_PID_UNKNOWN, "[unknown]", error);
}

/* The user code of a freestanding image is in its own file, where perf looks for it. */
static bool capture_write_user(struct capture *capture, const struct image *image, const char *path, GError **error)
{
	const struct record_id id = {.id = capture->events[0].n_ids != 0 ? capture->events[0].ids[0] : 0};
	uint64_t record[PROLOGUE_RECORD_BYTES / sizeof(uint64_t)];
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if (!segment_is_user_code(image, &segments[i]) ||
		    record_mmap_encode(PERF_RECORD_MISC_USER, 0, segments[i].gva, segments[i].memory_bytes,
		                       segments[i].file_offset, path, &id, record, sizeof(record)) == 0)
			continue;
		if (!capture_write(capture, record, error))
			return false;
	}
	return true;
}

static bool capture_write_image(struct capture *capture, const struct image *image, const struct symtab *symtab,
                                const char *path, GError **error)
{
	struct code_range kernel;

	kernel_code_range(image, symtab, &kernel);
	return capture_write_kernel(capture, &kernel, error) && capture_write_user(capture, image, path, error);
}

bool capture_open_file(struct capture *capture, const char *path, const struct image *image,
                       const struct symtab *symtab, const char *kernel_path, GError **error)
{
	if (!file_set_aside(path, error))
		return false;
	capture->writer = recording_writer_open(path, capture->events, capture->n_events, error);
	if (capture->writer == NULL)
		return false;
	return (image == NULL || capture_write_image(capture, image, symtab, kernel_path, error)) &&
	       capture_write_comms(capture, error) && recording_writer_round(capture->writer, error);
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
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	uint32_t n = chain_frames(sample, frames);

	for (uint32_t i = 0; i < n; i++)
		histogram_add(capture->frames,
		              &(struct record_sample){.ip = frames[i].ip,
		                                      .misc = frames[i].misc,
		                                      .pid = sample->pid,
		                                      .time_ns = sample->time_ns},
		              0);
	capture->samples++;
}

static void capture_count(struct capture *capture, const struct perf_event_header *record, size_t bytes)
{
	const uint64_t sample_type = capture->events[0].attr.sample_type;
	struct record_sample sample;
	uint64_t id, lost, time_ns;

	if (record->type == PERF_RECORD_SAMPLE && record_sample_decode(record, bytes, sample_type, &sample))
		capture_count_sample(capture, &sample);
	else if (record->type != PERF_RECORD_SAMPLE && record_time(record, bytes, sample_type, &time_ns))
		mappings_add(capture->mappings, record, bytes, time_ns);
	if (record_lost_decode(record, bytes, &id, &lost))
		capture->lost += lost;
}

static bool capture_drain_ring(struct capture *capture, size_t vcpu, GError **error)
{
	const struct perf_event_header *record;
	uint64_t wakeups;
	size_t bytes;

	/* Before the ring is looked at, so that no later wake-up is lost. Without one, EAGAIN: nothing to take back. */
	if (read(capture->eventfds[vcpu], &wakeups, sizeof(wakeups)) < 0 && errno != EAGAIN && errno != EINTR)
		return protocol_error(error, "an eventfd that cannot be read");
	while ((record = ring_reader_next(capture->rings[vcpu], &bytes)) != NULL) {
		capture_count(capture, record, bytes);
		if (!capture_write(capture, record, error))
			return false;
	}
	if (ring_reader_corrupt(capture->rings[vcpu])) {
		g_set_error(error, CAPTURE_ERROR, CAPTURE_ERROR_RING,
		            "the ring of vCPU %zu is corrupt; the engine has overwritten its own memory", vcpu);
		return false;
	}
	ring_reader_release(capture->rings[vcpu]);
	return true;
}

bool capture_drain(struct capture *capture, GError **error)
{
	for (size_t i = 0; i < capture->n_rings; i++)
		if (!capture_drain_ring(capture, i, error))
			return false;
	return recording_writer_round(capture->writer, error);
}

bool capture_pause(struct capture *capture, GError **error)
{
	json_t *stopped = engine_execute(capture->engine, "session-stop", NULL, error);

	json_decref(capture->statistics);
	capture->statistics = json_incref(json_object_get(stopped, "statistics"));
	json_decref(stopped);
	return stopped != NULL && capture_drain(capture, error);
}

bool capture_resume(struct capture *capture, GError **error)
{
	json_t *session = engine_execute(capture->engine, "session-start", json_incref(capture->arguments), error);
	bool started = session != NULL;

	json_decref(session);
	json_decref(g_steal_pointer(&capture->statistics));
	capture_unmap_rings(capture);
	return started && capture_get_rings(capture, capture->engine, error);
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
	capture->marks_left_out |= json_array_size(capture->marks) == VPROF_MARKS_MAX;
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

/* "model name" of /proc/cpuinfo; NULL where there is none. New string. */
static char *host_cpu(void)
{
	g_autofree char *cpuinfo = NULL;
	char *at, *end;

	if (!g_file_get_contents("/proc/cpuinfo", &cpuinfo, NULL, NULL))
		return NULL;
	at = strstr(cpuinfo, "model name");
	at = at != NULL ? strchr(at, ':') : NULL;
	end = at != NULL ? strchr(at, '\n') : NULL;
	return end != NULL ? g_strstrip(g_strndup(at + 1, (gsize)(end - at - 1))) : NULL;
}

/* Sentences about what could not be known of the guest. */
static json_t *capture_missing(const struct capture *capture)
{
	static const struct {
		const char *what, *member;
	} whys[] = {{"tasks", "tasks-why"}, {"mapped files", "mappings-why"}};
	json_t *missing = json_array();

	for (size_t i = 0; i < G_N_ELEMENTS(whys); i++) {
		const char *why = member_text(capture->session, whys[i].member);

		if (why != NULL)
			json_array_append_new(missing, json_sprintf("%s: %s", whys[i].what, why));
	}
	return missing;
}

/* VPROF_FEATURE_DESCRIPTION. */
static char *capture_description(const struct capture *capture, const struct capture_summary *summary)
{
	g_autofree char *cpu = host_cpu();
	json_t *description = json_pack("{s:i, s:o}", "version", 1, "host-cpu", text_json(cpu));
	char *text;

	object_set(description, "guest", summary->guest);
	object_set(description, "events", json_object_get(capture->session, "events"));
	object_set(description, "rate", capture->rate);
	object_set(description, "statistics", summary->statistics);
	object_set(description, "end", summary->end);
	object_set(description, "phases", capture->phases);
	object_set(description, "marks", capture->marks);
	object_set(description, "exec", summary->exec);
	json_object_set_new(description, "missing", capture_missing(capture));
	text = json_dumps(description, JSON_COMPACT);
	json_decref(description);
	return text;
}

bool capture_finish(struct capture *capture, const struct capture_summary *summary, const struct image *image,
                    const struct symtab *symtab, const char *const *command_line, GError **error)
{
	struct recording_features features = {
		.hostname = member_text(summary->guest, "name"),
		.release = member_text(summary->guest, "release"),
		.version = VPROF_VERSION,
		.cmdline = command_line,
		.vcpus = (unsigned)member_number(summary->guest, "vcpus", 1),
		.memory_bytes = member_number(summary->guest, "memory-bytes", 0),
		.kernel_path = member_text(summary->guest, "kernel"),
	};
	struct recording_symbol *symbols = symbols_hit(capture->frames, symtab, &features.n_symbols);
	struct recording_symbol *user_symbols =
		user_symbols_hit(capture->frames, summary->user_symbols, &features.n_user_symbols);
	char *description = capture_description(capture, summary);
	bool finished;

	features.description = description;
	if (image != NULL)
		features.kernel_build_id = image_build_id(image, &features.kernel_build_id_bytes);
	features.symbols = symbols;
	features.user_symbols = user_symbols;
	finished = recording_writer_finish(capture->writer, &features, error);
	free(description);
	g_free(symbols);
	g_free(user_symbols);
	return finished;
}
