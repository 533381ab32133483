// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon_metrics.h"

#include <glib.h>

#include "ui/text.h"

/* One family is under way. */
struct metrics {
	GString *text;
	const char *name;
};

static void family(struct metrics *metrics, const char *name, const char *type, const char *help)
{
	metrics->name = name;
	g_string_append_printf(metrics->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(GString *labels, const char *name, const char *value)
{
	g_string_append_printf(labels, "%s%s=\"", labels->len > 0 ? "," : "", name);
	for (const char *at = value ? value : ""; *at != '\0'; at++)
		switch (*at) {
		case '\\':
			g_string_append(labels, "\\\\");
			break;
		case '"':
			g_string_append(labels, "\\\"");
			break;
		case '\n':
			g_string_append(labels, "\\n");
			break;
		default:
			g_string_append_c(labels, *at);
		}
	g_string_append_c(labels, '"');
}

/* labels: freed; NULL: none. */
static void sample(struct metrics *metrics, GString *labels, double value)
{
	char number[G_ASCII_DTOSTR_BUF_SIZE];

	g_ascii_dtostr(number, sizeof(number), value);
	g_string_append(metrics->text, metrics->name);
	if (labels)
		g_string_append_printf(metrics->text, "{%s}", labels->str);
	g_string_append_printf(metrics->text, " %s\n", number);
	if (labels)
		g_string_free(labels, TRUE);
}

static double number_of(const json_t *object, const char *name)
{
	return (double)member_number(object, name, 0);
}

static double seconds_of(const json_t *object, const char *name)
{
	return number_of(object, name) / 1e9;
}

/* ---- the daemon itself ---- */

static const struct {
	const char *member, *process;
} own_processes[] = {{"cost", "supervisor"}, {"finder", "finder"}, {"sender", "sender"}};

static void own_samples(struct metrics *metrics, const json_t *status, const char *number, double unit)
{
	for (size_t i = 0; i < G_N_ELEMENTS(own_processes); i++) {
		const json_t *cost = json_object_get(status, own_processes[i].member);
		GString *labels;

		if (!cost)
			continue;
		labels = g_string_new(NULL);
		label(labels, "process", own_processes[i].process);
		sample(metrics, labels, number_of(cost, number) / unit);
	}
}

static void own_metrics(struct metrics *metrics, const json_t *status)
{
	const json_t *cost = json_object_get(status, "cost");
	GString *labels = g_string_new(NULL);

	label(labels, "version", member_text(status, "vprof"));
	family(metrics, "vprof_build_info", "gauge", "Version of vprof; always 1.");
	sample(metrics, labels, 1);
	family(metrics, "process_cpu_seconds_total", "counter",
	       "CPU time of the daemon's supervisor, as in vprof_daemon_cpu_seconds_total.");
	sample(metrics, NULL, seconds_of(cost, "cpu-ns"));
	family(metrics, "process_resident_memory_bytes", "gauge",
	       "Resident memory of the daemon's supervisor, as in vprof_daemon_resident_memory_bytes.");
	sample(metrics, NULL, number_of(cost, "resident-bytes"));
	family(metrics, "process_start_time_seconds", "gauge", "Start of the daemon since the epoch.");
	sample(metrics, NULL, number_of(status, "started"));
	family(metrics, "vprof_daemon_cpu_seconds_total", "counter",
	       "CPU time of the daemon's own processes, which find guests and send profiles.");
	own_samples(metrics, status, "cpu-ns", 1e9);
	family(metrics, "vprof_daemon_resident_memory_bytes", "gauge",
	       "Resident memory of the daemon's own processes.");
	own_samples(metrics, status, "resident-bytes", 1);
	family(metrics, "vprof_guests", "gauge", "Guests that are found and wanted.");
	sample(metrics, NULL, (double)json_array_size(json_object_get(status, "guests")));
}

static void push_metrics(struct metrics *metrics, const json_t *push)
{
	static const struct {
		const char *member, *result;
	} results[] = {{"sent", "sent"}, {"refused", "refused"}, {"too-old", "too_old"}, {"dropped", "dropped"}};

	if (!json_is_object(push))
		return;
	family(metrics, "vprof_push_profiles_total", "counter",
	       "Profiles by what became of them: sent; refused by the server, for their content or their age; dropped "
	       "from a full spool.");
	for (size_t i = 0; i < G_N_ELEMENTS(results); i++) {
		GString *labels = g_string_new(NULL);

		label(labels, "result", results[i].result);
		sample(metrics, labels, number_of(push, results[i].member));
	}
	family(metrics, "vprof_push_sent_bytes_total", "counter", "Bytes of the profiles that were sent.");
	sample(metrics, NULL, number_of(push, "sent-bytes"));
	family(metrics, "vprof_push_failures_total", "counter", "Attempts that the server did not answer or put off.");
	sample(metrics, NULL, number_of(push, "failures"));
	family(metrics, "vprof_push_spool_profiles", "gauge", "Profiles that wait in the spool.");
	sample(metrics, NULL, number_of(push, "spooled"));
	family(metrics, "vprof_push_spool_bytes", "gauge", "Bytes that wait in the spool.");
	sample(metrics, NULL, number_of(push, "spooled-bytes"));
}

/* ---- guests ---- */

/* Adds the samples of one guest to the family. */
typedef void guest_samples(struct metrics *metrics, const json_t *guest);

static GString *guest_labels(const json_t *guest)
{
	GString *labels = g_string_new(NULL);

	label(labels, "domain", member_text(guest, "name"));
	label(labels, "uuid", member_text(guest, "uuid"));
	return labels;
}

static GString *guest_labels_and(const json_t *guest, const char *name, const char *value)
{
	GString *labels = guest_labels(guest);

	label(labels, name, value);
	return labels;
}

static void up_samples(struct metrics *metrics, const json_t *guest)
{
	static const char *const states[] = {"sampling", "counting", NULL};
	const char *state = member_text(guest, "state");

	sample(metrics, guest_labels(guest), state && g_strv_contains(states, state));
}

static void info_samples(struct metrics *metrics, const json_t *guest)
{
	GString *labels = guest_labels(guest);

	label(labels, "vmm", member_text(guest, "vmm"));
	label(labels, "kernel", member_text(guest, "release"));
	label(labels, "route", member_text(guest, "route"));
	sample(metrics, labels, 1);
}

static void restart_samples(struct metrics *metrics, const json_t *guest)
{
	sample(metrics, guest_labels(guest), number_of(guest, "restarts"));
}

static void time_samples(struct metrics *metrics, const json_t *guest)
{
	const json_t *times = json_object_get(guest, "vcpu-ns"), *value;
	json_t *time;
	const char *mode;
	size_t i;

	json_array_foreach(times, i, time) {
		g_autofree char *vcpu = g_strdup_printf("%zu", i);

		json_object_foreach(time, mode, value) {
			GString *labels = guest_labels_and(guest, "vcpu", vcpu);

			label(labels, "mode", mode);
			sample(metrics, labels, (double)json_integer_value(value) / 1e9);
		}
	}
}

static void exit_samples(struct metrics *metrics, const json_t *guest)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(guest, "exits"), i, row) {
		const char *reason = member_text(row, "reason");

		sample(metrics, guest_labels_and(guest, "reason", reason ? reason : "unknown"),
		       number_of(row, "count"));
	}
}

static void exit_time_samples(struct metrics *metrics, const json_t *guest)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(guest, "exits"), i, row)
		if (member_text(row, "reason"))
			sample(metrics, guest_labels_and(guest, "reason", member_text(row, "reason")),
			       seconds_of(row, "ns"));
}

static void sample_samples(struct metrics *metrics, const json_t *guest)
{
	sample(metrics, guest_labels(guest), number_of(guest, "samples"));
}

static void lost_samples(struct metrics *metrics, const json_t *guest)
{
	json_t *lost = json_object_get(guest, "lost"), *value;
	const char *cause;

	json_object_foreach(lost, cause, value)
		sample(metrics, guest_labels_and(guest, "cause", cause), (double)json_integer_value(value));
}

static void profile_samples(struct metrics *metrics, const json_t *guest)
{
	sample(metrics, guest_labels(guest), number_of(guest, "profiles"));
}

static void profile_lost_samples(struct metrics *metrics, const json_t *guest)
{
	sample(metrics, guest_labels(guest), number_of(guest, "profiles-lost"));
}

static const char *const processes[] = {"engine", "worker"};

static void cpu_samples(struct metrics *metrics, const json_t *guest)
{
	for (size_t i = 0; i < G_N_ELEMENTS(processes); i++)
		sample(metrics, guest_labels_and(guest, "process", processes[i]),
		       seconds_of(json_object_get(guest, processes[i]), "cpu-ns"));
}

static void memory_samples(struct metrics *metrics, const json_t *guest)
{
	for (size_t i = 0; i < G_N_ELEMENTS(processes); i++)
		sample(metrics, guest_labels_and(guest, "process", processes[i]),
		       number_of(json_object_get(guest, processes[i]), "resident-bytes"));
}

static const struct {
	const char *name, *type, *help;
	guest_samples *samples;
} guest_families[] = {
	{"vprof_guest_up", "gauge", "Whether the guest is being sampled.", up_samples},
	{"vprof_guest_info", "gauge", "What the guest runs, and how it is sampled; always 1.", info_samples},
	{"vprof_guest_engine_restarts_total", "counter", "Engines that ended by themselves and were started again.",
         restart_samples},
	{"vprof_guest_vcpu_seconds_total", "counter",
         "Time of each vCPU by mode: kernel, user and guest (not told apart) in the guest; kvm, vmm: handling its "
         "exits; halted, offline, waiting for a host CPU, other.",
         time_samples},
	{"vprof_guest_exits_total", "counter", "Exits of all vCPUs by reason; unknown where KVM's are not told apart.",
         exit_samples},
	{"vprof_guest_exit_seconds_total", "counter", "Time from an exit to the next entry, by reason.",
         exit_time_samples},
	{"vprof_guest_samples_total", "counter", "Samples taken.", sample_samples},
	{"vprof_guest_lost_samples_total", "counter",
         "Samples lost by cause: ring (it was full), throttled (by the host's kernel), discarded (the guest booted "
         "another kernel).",
         lost_samples},
	{"vprof_guest_profiles_total", "counter", "Profiles made.", profile_samples},
	{"vprof_guest_lost_profiles_total", "counter", "Profiles that could not be made, or kept in the spool.",
         profile_lost_samples},
	{"vprof_guest_profiler_cpu_seconds_total", "counter", "CPU time that profiling the guest takes.", cpu_samples},
	{"vprof_guest_profiler_resident_memory_bytes", "gauge", "Resident memory that profiling the guest takes.",
         memory_samples},
};

char *daemon_metrics(const json_t *status)
{
	const json_t *guests = json_object_get(status, "guests"), *guest;
	struct metrics metrics = {.text = g_string_new(NULL)};
	size_t j;

	own_metrics(&metrics, status);
	push_metrics(&metrics, json_object_get(status, "push"));
	for (size_t i = 0; i < G_N_ELEMENTS(guest_families); i++) {
		family(&metrics, guest_families[i].name, guest_families[i].type, guest_families[i].help);
		json_array_foreach(guests, j, guest)
			if (guest_families[i].samples == up_samples || json_object_get(guest, "samples"))
				guest_families[i].samples(&metrics, guest);
	}
	return g_string_free(metrics.text, FALSE);
}
