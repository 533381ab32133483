// SPDX-License-Identifier: BSD-2-Clause
/*
 * One guest: its engine, and recordings of an interval each, one after the other, that become profiles in the spool. A
 * recording lives from its first sample to its profile, in the folder of the socket.
 */
#include <glib/gstdio.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "daemon/daemon_child.h"
#include "daemon/daemon_cost.h"
#include "daemon/daemon_parts.h"
#include "engine/attach_engine.h"
#include "engine/engine_process.h"
#include "engine/guest_list.h"
#include "lib/parser/parser.h"
#include "push/push_recording.h"
#include "reading/kvm_exits.h"
#include "reading/vcpu_clocks.h"
#include "record/recorder.h"
#include "ui/message.h"
#include "ui/text.h"

#define RING_BYTES (UINT64_C(256) << 10)        /* a guest of eight vCPUs has eight */
#define REPORT_US (5 * (int64_t)G_USEC_PER_SEC) /* between two lines to the supervisor */

enum { ENTRY_SUPERVISOR, ENTRY_CONTROL, ENTRY_ENGINE, ENTRY_RINGS };
#define ENTRIES_MAX (ENTRY_RINGS + VPROF_CONTROL_FDS_MAX / 2)

struct sampling {
	const struct daemon_config *config;
	const json_t *found; /* as guest_list has it */
	int fd;
	struct engine_process *engine;
	uint64_t engine_pid;
	json_t *guest;                  /* as query-guest */
	struct recorder *recorder;      /* of this interval; NULL: none */
	struct guest_kernel kernel;     /* of this interval */
	char *path;                     /* of the recording */
	struct push_spool *spool;       /* NULL: no profiles */
	bool rebooted;                  /* in this interval: its symbols are of two kernels */
	bool ended, gone;               /* the guest; the engine */
	int64_t report_us, interval_us; /* when they are due */
	/* What was counted until now. */
	uint64_t samples, profiles; /* before this interval; all */
	uint64_t profiles_lost;     /* that could not be made, or kept in the spool */
	char *profiles_why;         /* the last one could not; NULL: it could */
	uint64_t lost_ring, lost_throttled, lost_discarded;
	json_t *clocks;                                /* the last answers of vcpu_clocks_query; NULL: none */
	struct vcpu_time_parts times[VCPU_CLOCKS_MAX]; /* until then */
};

static unsigned vcpus_of(const struct sampling *sampling)
{
	return (unsigned)MIN(member_number(sampling->guest, "vcpus", 0), VCPU_CLOCKS_MAX);
}

/* ---- what the supervisor is told ---- */

/* Kernel and user are told apart between two readings, so that no sum of theirs ever shrinks. */
static void clocks_add(struct sampling *sampling, json_t *answers)
{
	for (size_t i = 0; i < MIN(json_array_size(answers), VCPU_CLOCKS_MAX); i++) {
		const struct vcpu_clocks from = vcpu_clocks_parse(json_array_get(sampling->clocks, i));
		const struct vcpu_clocks to = vcpu_clocks_parse(json_array_get(answers, i));
		struct vcpu_time_parts passed = vcpu_clocks_between(&from, &to).parts;

		passed.residual_ns = MAX(passed.residual_ns, 0);
		vcpu_time_parts_add(&sampling->times[i], &passed);
	}
	json_decref(sampling->clocks);
	sampling->clocks = answers;
}

static json_t *time_json(const struct vcpu_time_parts *time)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "kernel", (json_int_t)time->guest_kernel_ns,
	                 "user", (json_int_t)time->guest_user_ns, "guest", (json_int_t)time->guest_unknown_ns, "kvm",
	                 (json_int_t)time->kvm_ns, "vmm", (json_int_t)time->vmm_ns, "halted",
	                 (json_int_t)time->halted_ns, "offline", (json_int_t)time->offline_ns, "waiting",
	                 (json_int_t)time->runnable_ns, "other", (json_int_t)time->residual_ns);
}

/* By reason where KVM's trace points can be read, else all of them. */
static json_t *exits_json(const json_t *answers)
{
	g_autoptr(GArray) rows = kvm_exit_rows(NULL, answers, -1);
	json_t *exits = json_array();
	uint64_t all = 0;

	for (guint i = 0; i < rows->len; i++) {
		const struct kvm_exit_row *row = &g_array_index(rows, struct kvm_exit_row, i);

		json_array_append_new(exits, json_pack("{s:o, s:I, s:I}", "reason", text_json(row->name), "count",
		                                       (json_int_t)row->count, "ns", (json_int_t)row->ns));
	}
	for (size_t i = 0; rows->len == 0 && i < json_array_size(answers); i++)
		all += vcpu_clocks_parse(json_array_get(answers, i)).exits;
	if (all > 0)
		json_array_append_new(exits, json_pack("{s:n, s:I, s:n}", "reason", "count", (json_int_t)all, "ns"));
	return exits;
}

static json_t *report_json(struct sampling *sampling)
{
	const json_t *session = sampling->recorder ? recorder_session(sampling->recorder) : NULL;
	const uint64_t samples = sampling->recorder ? recorder_samples(sampling->recorder) : 0;
	json_t *vcpus = json_array();
	json_t *report =
		json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:{s:I, s:I, s:I}}", "vcpu-ns", vcpus, "exits",
	                  exits_json(sampling->clocks), "engine", daemon_cost((pid_t)sampling->engine_pid), "worker",
	                  daemon_cost(getpid()), "samples", (json_int_t)(sampling->samples + samples), "profiles",
	                  (json_int_t)sampling->profiles, "profiles-lost", (json_int_t)sampling->profiles_lost, "lost",
	                  "ring", (json_int_t)sampling->lost_ring, "throttled", (json_int_t)sampling->lost_throttled,
	                  "discarded", (json_int_t)sampling->lost_discarded);

	for (unsigned i = 0; i < json_array_size(sampling->clocks) && i < VCPU_CLOCKS_MAX; i++)
		json_array_append_new(vcpus, time_json(&sampling->times[i]));
	if (member_text(sampling->guest, "release"))
		json_object_set(report, "release", json_object_get(sampling->guest, "release"));
	member_set(report, "route", json_object_get(session, "delivery"));
	member_set(report, "frequency-hz", json_object_get(session, "frequency-hz"));
	if (sampling->profiles_why)
		json_object_set_new(report, "profiles-why", text_json(sampling->profiles_why));
	member_set(report, "event", json_object_get(json_array_get(json_object_get(session, "events"), 0), "name"));
	return report;
}

/* False: the supervisor is gone. An engine that does not answer is found to be gone later. */
static bool report(struct sampling *sampling)
{
	json_t *answers = vcpu_clocks_query(engine_process_client(sampling->engine), vcpus_of(sampling),
	                                    ENGINE_ANSWER_TIMEOUT_MS, NULL);

	if (answers)
		clocks_add(sampling, answers);
	sampling->report_us = g_get_monotonic_time() + REPORT_US;
	return daemon_child_say(sampling->fd, report_json(sampling));
}

/* ---- an interval ---- */

/* Once for each kernel. */
static void kernel_read(struct sampling *sampling)
{
	guest_kernel_clear(&sampling->kernel);
	sampling->kernel = guest_kernel_load_code(engine_process_client(sampling->engine), sampling->guest);
}

static bool interval_begin(struct sampling *sampling, GError **error)
{
	const struct daemon_config *config = sampling->config;
	json_t *session = json_pack("{s:I, s:s, s:I}", "frequency-hz", (json_int_t)config->frequency_hz, "call-graph",
	                            config->call_graph, "ring-bytes", (json_int_t)RING_BYTES);
	const struct recorder_config recording = {
		.client = engine_process_client(sampling->engine),
		.guest = sampling->guest,
		.session = session,
		.kernel = &sampling->kernel,
	};

	sampling->interval_us = g_get_monotonic_time() + (int64_t)config->interval_s * G_USEC_PER_SEC;
	sampling->rebooted = false;
	sampling->recorder = recorder_new(&recording, error);
	json_decref(session);
	return sampling->recorder && recorder_open(sampling->recorder, sampling->path, error);
}

/* Ends it; *kept: the recording is worth a profile. */
static bool interval_end(struct sampling *sampling, bool *kept, GError **error)
{
	const struct recorder_end end = {.guest = sampling->guest};
	struct recorder *recorder = sampling->recorder;

	if (!recorder_stop(recorder, error))
		return false;
	const bool written = recorder_finish(recorder, &end, error);
	const uint64_t samples = recorder_samples(recorder);
	const json_t *total = json_object_get(recorder_statistics(recorder), "total");

	*kept = written && !sampling->rebooted && samples > 0;
	sampling->samples += samples;
	sampling->lost_ring += member_number(total, "dropbuf-sample", 0);
	sampling->lost_throttled += member_number(total, "throttled", 0);
	if (!*kept)
		sampling->lost_discarded += samples;
	recorder_free(g_steal_pointer(&sampling->recorder));
	return written;
}

/* The names of labels that are more than those of every push. */
static char **labels_of(const struct sampling *sampling)
{
	g_autoptr(GPtrArray) labels = g_ptr_array_new();
	const char *uuid = member_text(sampling->found, "uuid");

	if (uuid)
		g_ptr_array_add(labels, g_strconcat("uuid=", uuid, NULL));
	for (char **label = sampling->config->labels; *label; label++)
		g_ptr_array_add(labels, g_strdup(*label));
	g_ptr_array_add(labels, NULL);
	return (char **)g_ptr_array_steal(labels, NULL);
}

static bool profile_spool(struct sampling *sampling, const char *path, GError **error)
{
	g_auto(GStrv) labels = labels_of(sampling);
	const struct push_naming naming = {sampling->config->name, (const char *const *)labels};
	struct input *input = input_open(path, NULL, false, error);
	struct push_profile profile = {0};
	bool made;

	if (!input)
		return false;
	made = push_profile_make(input, NULL, push_api_format(sampling->config->api), &naming, &profile, error) &&
	       push_spool_add(sampling->spool, &profile, error);
	push_profile_clear(&profile);
	input_free(input);
	return made;
}

/* A disk that is full now need not be full later: what is lost is counted and said. */
static void profile_make(struct sampling *sampling, const char *path)
{
	g_autoptr(GError) error = NULL;

	if (profile_spool(sampling, path, &error)) {
		sampling->profiles++;
		g_clear_pointer(&sampling->profiles_why, g_free);
		return;
	}
	g_autofree char *name = text_printable(member_text(sampling->found, "name"));

	sampling->profiles_lost++;
	if (g_strcmp0(sampling->profiles_why, error->message) != 0)
		warn("%s: a profile is lost: %s", name, error->message);
	g_free(sampling->profiles_why);
	sampling->profiles_why = g_strdup(error->message);
}

/* What is not needed until the next interval ends. */
static void rest(void)
{
	parser_stop();
	malloc_trim(0);
}

/* Ends an interval and, unless it is the `last`, begins another; the first is made into a profile afterwards. */
static bool interval_turn(struct sampling *sampling, bool last, GError **error)
{
	g_autofree char *finished = g_strconcat(sampling->path, DAEMON_FINISHED, NULL);
	bool kept = false, done;

	done = interval_end(sampling, &kept, error);
	if (sampling->rebooted)
		kernel_read(sampling);
	if (done && last)
		done = g_rename(sampling->path, finished) == 0;
	else if (done)
		done = interval_begin(sampling, error); /* sets the recording aside as .old */
	if (kept)
		profile_make(sampling, finished);
	g_unlink(finished);
	rest();
	return done;
}

static bool interval_first(struct sampling *sampling, GError **error)
{
	kernel_read(sampling);
	const bool done = interval_begin(sampling, error);

	rest();
	return done;
}

/* ---- from its start to its end ---- */

char *daemon_recording(const struct daemon_config *config, pid_t pid)
{
	g_autofree char *folder = g_path_get_dirname(config->socket);

	return g_strdup_printf("%s/%d.data", folder, (int)pid);
}

/* It is called as in the list: an engine makes names with process ids of others. */
static bool guest_ask(struct sampling *sampling, GError **error)
{
	json_t *guest = engine_ask(engine_process_client(sampling->engine), "query-guest", NULL, error);

	if (!guest)
		return false;
	json_object_set(guest, "name", json_object_get(sampling->found, "name"));
	json_decref(sampling->guest);
	sampling->guest = guest;
	return true;
}

static bool engine_begin(struct sampling *sampling, GError **error)
{
	struct attach_engine_options options = {
		.connect = sampling->config->connect,
		.no_monitor = !sampling->config->monitor,
		.lean = true,
	};
	const char *domain;
	json_t *status;
	int exited;

	options = guest_options(&options, sampling->found, &domain);
	sampling->engine = attach_engine_start(&options, domain, 0, &exited, error);
	if (!sampling->engine)
		return false;
	status = guest_ask(sampling, error)
	                 ? engine_ask(engine_process_client(sampling->engine), "query-status", NULL, error)
	                 : NULL;
	sampling->engine_pid = member_number(status, "pid", 0);
	json_decref(status);
	return status != NULL;
}

static bool sampling_begin(struct sampling *sampling, GError **error)
{
	sampling->path = daemon_recording(sampling->config, getpid());
	if (sampling->config->url)
		sampling->spool = push_spool_open(sampling->config->spool, error);
	return (!sampling->config->url || sampling->spool) && engine_begin(sampling, error) &&
	       (!sampling->spool || interval_first(sampling, error)) &&
	       engine_tell(engine_process_client(sampling->engine), "guest-start", NULL, error);
}

static void sampling_clear(struct sampling *sampling)
{
	recorder_free(sampling->recorder);
	engine_process_free(sampling->engine);
	guest_kernel_clear(&sampling->kernel);
	push_spool_free(sampling->spool);
	if (sampling->path)
		g_unlink(sampling->path);
	json_decref(sampling->guest);
	json_decref(sampling->clocks);
	g_free(sampling->path);
	g_free(sampling->profiles_why);
}

static void kernel_changed(struct sampling *sampling)
{
	guest_ask(sampling, NULL);
	sampling->rebooted = true;
}

static void events_take(struct sampling *sampling)
{
	g_autoptr(GError) error = NULL;
	json_t *event;

	while ((event = client_next_event(engine_process_client(sampling->engine), 0, &error))) {
		const char *name = member_text(event, "event");

		if (g_strcmp0(name, VPROF_EVENT_GUEST_ENDED) == 0)
			sampling->ended = true;
		else if (g_strcmp0(name, VPROF_EVENT_GUEST_KERNEL) == 0)
			kernel_changed(sampling);
		json_decref(event);
	}
	sampling->gone |= error != NULL;
}

/* Waits until something is due. False: the supervisor wants the end. */
static bool wait_for_work(const struct sampling *sampling, bool *rings)
{
	struct pollfd entries[ENTRIES_MAX] = {
		[ENTRY_SUPERVISOR] = {.fd = sampling->fd, .events = POLLIN},
		[ENTRY_CONTROL] = {.fd = client_fd(engine_process_client(sampling->engine)), .events = POLLIN},
		[ENTRY_ENGINE] = {.fd = engine_process_pidfd(sampling->engine), .events = POLLIN},
	};
	const int64_t due_us =
		sampling->recorder ? MIN(sampling->report_us, sampling->interval_us) : sampling->report_us;
	const int64_t left_ms = (due_us - g_get_monotonic_time()) / 1000 + 1;
	size_t n = ENTRY_RINGS;

	if (sampling->recorder)
		n += recorder_poll(sampling->recorder, &entries[ENTRY_RINGS], ENTRIES_MAX - ENTRY_RINGS);
	if (poll(entries, (nfds_t)n, (int)MAX(left_ms, 0)) < 0)
		return true;
	for (size_t i = ENTRY_RINGS; i < n; i++)
		*rings |= entries[i].revents != 0;
	return entries[ENTRY_SUPERVISOR].revents == 0;
}

static bool sampling_run(struct sampling *sampling, GError **error)
{
	bool wanted = report(sampling);

	while (wanted && !sampling->ended && !sampling->gone) {
		const int64_t now_us = g_get_monotonic_time();
		bool rings = false;

		if (now_us >= sampling->report_us && !report(sampling))
			break;
		if (sampling->recorder && now_us >= sampling->interval_us && !interval_turn(sampling, false, error))
			return false;
		wanted = wait_for_work(sampling, &rings);
		if (rings && !recorder_drain(sampling->recorder, error))
			return false;
		events_take(sampling);
	}
	if (sampling->gone || !sampling->recorder || interval_turn(sampling, true, NULL))
		report(sampling);
	return true;
}

/* Why its engine does not start, as far as it says so. */
static char *engine_words(const struct sampling *sampling, const GError *error)
{
	struct attach_engine_options options = {
		.connect = sampling->config->connect,
		.no_monitor = !sampling->config->monitor,
	};
	json_t *guest = json_deep_copy(sampling->found);
	char *words;

	if (!g_error_matches(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_REFUSED)) {
		json_decref(guest);
		return g_strdup(error->message);
	}
	guest_probe(&options, guest);
	words = g_strdup(member_text(guest, "why") ? member_text(guest, "why") : error->message);
	json_decref(guest);
	return words;
}

int daemon_sample(int fd, void *data)
{
	const struct daemon_guest_job *job = data;
	struct sampling sampling = {.config = job->config, .found = job->guest, .fd = fd};
	g_autoptr(GError) error = NULL;

	if (!sampling_begin(&sampling, &error) || !sampling_run(&sampling, &error)) {
		g_autofree char *words = engine_words(&sampling, error);
		g_autofree char *name = text_printable(member_text(job->guest, "name"));

		say("%s: %s", name, words);
		daemon_child_say(fd, json_pack("{s:o}", "why", text_json(words)));
	}
	sampling_clear(&sampling);
	return error ? STATUS_FAILED : STATUS_OK;
}
