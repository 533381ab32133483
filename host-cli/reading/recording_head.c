// SPDX-License-Identifier: BSD-2-Clause
#include "reading/recording_head.h"

#include <string.h>

#include "lib/profile/chain.h"
#include "reading/phases.h"
#include "reading/vcpu_clocks.h"
#include "ui/text.h"
#include "ui/units.h"

#define NS_PER_S UINT64_C(1000000000)

struct head {
	const struct input *input;
	const struct recording_counts *counts;
	recording_head_line *line;
	void *data;
};

/* ---- counts ---- */

static enum vprof_chain_end chain_end_of(uint16_t misc)
{
	unsigned end = (misc & VPROF_CHAIN_END_MASK) >> VPROF_CHAIN_END_SHIFT;

	return end < VPROF_CHAIN_END_COUNT ? (enum vprof_chain_end)end : VPROF_CHAIN_UNKNOWN;
}

static void chain_end_count(struct recording_counts *counts, const struct record_sample *sample)
{
	const enum vprof_chain_end end = chain_end_of(sample->misc);

	if (end == VPROF_CHAIN_UNKNOWN)
		return;
	const struct chain_parts parts = chain_parts(sample);

	counts->kernel_chain_ends[parts.user ? VPROF_CHAIN_WHOLE : end] += parts.kernel;
	counts->user_chain_ends[end] += parts.user;
}

void recording_counts_take(struct recording_counts *counts, const struct record_sample *sample)
{
	if (counts->samples == 0 || sample->time_ns < counts->first_ns)
		counts->first_ns = sample->time_ns;
	if (sample->time_ns > counts->last_ns)
		counts->last_ns = sample->time_ns;
	chain_end_count(counts, sample);
	counts->samples++;
}

/* ---- lines ---- */

static void say(const struct head *head, const char *name, const char *text)
{
	g_autofree char *printable = text_printable(text);

	head->line(name, printable, head->data);
}

/* What a shell takes as it is. */
#define WORD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%"

static void line_guest(const struct head *head)
{
	const json_t *guest = json_object_get(head->input->description, "guest");
	const char *name = member_text(guest, "name");
	g_autofree char *memory = NULL, *line = NULL;

	if (!json_is_object(guest))
		return;
	memory = units_format_bytes(member_number(guest, "memory-bytes", 0));
	line = g_strdup_printf("%s, %" G_GUINT64_FORMAT " vCPUs, %s", name ? name : "?",
	                       member_number(guest, "vcpus", 0), memory);
	say(head, "guest", line);
}

static void line_arch(const struct head *head)
{
	const enum arch arch = recording_arch(head->input->recording);

	if (arch_is_said(arch))
		say(head, "arch", arch_name(arch));
}

static void line_kernel(const struct head *head)
{
	const struct recording *recording = head->input->recording;
	const char *path = member_text(json_object_get(head->input->description, "guest"), "kernel");
	const char *release = recording_release(recording);
	const char *build_id = recording_kernel_build_id(recording);
	GString *line = g_string_new(path);

	if (release)
		g_string_append_printf(line, "%srelease %s", line->len != 0 ? ", " : "", release);
	if (build_id)
		g_string_append_printf(line, "%sbuild-id %s", line->len != 0 ? ", " : "", build_id);
	if (line->len != 0)
		say(head, "kernel", line->str);
	g_string_free(line, TRUE);
}

static void line_host(const struct head *head)
{
	const char *cpu = member_text(head->input->description, "host-cpu");

	if (cpu)
		say(head, "host", cpu);
}

static void line_end(const struct head *head)
{
	const json_t *end = json_object_get(head->input->description, "end");
	const char *reason = member_text(end, "reason"), *message = member_text(end, "message");
	g_autofree char *line = NULL;

	if (!reason)
		return;
	line = g_strdup_printf("%s: %s", reason, message ? message : "");
	say(head, "end", line);
}

static void line_command(const struct head *head)
{
	const json_t *exec = json_object_get(head->input->description, "exec");
	const json_t *words = json_object_get(exec, "command"), *word;
	GString *line = g_string_new(NULL);
	size_t i;

	json_array_foreach(words, i, word) {
		g_autofree char *quoted = g_shell_quote(json_is_string(word) ? json_string_value(word) : "?");
		bool plain = strspn(quoted + 1, WORD_CHARACTERS) == strlen(quoted) - 2;

		g_string_append_printf(line, "%s%.*s", i != 0 ? " " : "", (int)(strlen(quoted) - (plain ? 2 : 0)),
		                       quoted + plain);
	}
	if (line->len != 0)
		say(head, "command", line->str);
	g_string_free(line, TRUE);
}

/* Which phases are shown, or which there are. */
static void line_phases(const struct head *head)
{
	const struct input *input = head->input;
	g_autofree char *list = phases_list(input->description), *line = NULL;

	if (!list)
		return;
	line = input->phase ? g_strdup_printf("%s, of %s", input->phase, list) : g_strdup(list);
	say(head, "phases", line);
}

/* So that a part is not taken for the whole. */
static void line_filter(const struct head *head)
{
	g_autofree char *text = head->input->filter ? filter_text(head->input->filter) : NULL;

	if (text)
		say(head, "only", text);
}

static const json_t *statistics_total(const struct head *head)
{
	return json_object_get(json_object_get(head->input->description, "statistics"), "total");
}

/* The losses in the recording, and every other way to lose or change a sample that the engine counted. */
static void line_samples(const struct head *head)
{
	static const struct {
		const char *member, *words;
	} causes[] = {
		{"throttled", "throttled or coalesced by the host"},
		{"quirk", "inside a host quirk's page, not guest code"},
		{"added", "made by hand, among them"},
	};
	const json_t *total = statistics_total(head);
	const uint64_t others = record_losses_others(&head->input->losses);
	GString *line = g_string_new(NULL);

	g_string_append_printf(line, "%" G_GUINT64_FORMAT " over %.3f s, lost %" G_GUINT64_FORMAT,
	                       head->counts->samples, (double)(head->counts->last_ns - head->counts->first_ns) / 1e9,
	                       record_losses_samples(&head->input->losses));
	if (others != 0)
		g_string_append_printf(line, " and %" G_GUINT64_FORMAT " records of other kinds", others);
	for (size_t i = 0; i < G_N_ELEMENTS(causes); i++) {
		uint64_t number = member_number(total, causes[i].member, 0);

		if (number != 0)
			g_string_append_printf(line, "; %" G_GUINT64_FORMAT " %s", number, causes[i].words);
	}
	if (head->counts->samples == 0 && !head->input->filter && !head->input->phase) {
		g_autofree char *idle = vcpu_clocks_sentence(json_object_get(head->input->description, "time"));

		g_string_append_printf(line, "%s%s", idle ? ": " : "", idle ? idle : "");
	}
	say(head, "samples", line->str);
	g_string_free(line, TRUE);
}

/* What the host's kernel did not let count. */
static void line_throttled(const struct head *head)
{
	const json_t *total = statistics_total(head);
	const uint64_t times = member_number(total, "throttles", 0);
	g_autofree char *line = NULL;

	if (times == 0)
		return;
	line = g_strdup_printf("%" G_GUINT64_FORMAT
	                       " times by the host's kernel, for %.3f s in all (kernel.perf_event_max_sample_rate)",
	                       times, (double)member_number(total, "throttled-ns", 0) / 1e9);
	say(head, "stopped", line);
}

/* How many of the call chains are whole in that part, and where the others were cut. */
static void line_chain_part(const char *part, const uint64_t ends[VPROF_CHAIN_END_COUNT], const struct head *head)
{
	static const char *const words[] = {
#define X(id, name, text) [id] = text,
		VPROF_CHAIN_ENDS(X)
#undef X
	};
	g_autoptr(GString) line = g_string_new(part);
	const char *gap = "";
	uint64_t n = 0;

	for (unsigned end = VPROF_CHAIN_WHOLE; end < VPROF_CHAIN_END_COUNT; end++)
		n += ends[end];
	for (unsigned end = VPROF_CHAIN_WHOLE; end < VPROF_CHAIN_END_COUNT; end++) {
		if (ends[end] == 0)
			continue;
		g_string_append_printf(line, "%s%.2f %% %s", gap, (double)ends[end] * 100 / (double)n, words[end]);
		gap = ", ";
	}
	if (n != 0)
		say(head, "chains", line->str);
}

static const char *frames_name(const struct input *input)
{
	return arch_frames_name(recording_arch(input->recording));
}

/* "user space, by unwind tables of 5 files (4 in initramfs, 1 in --symfs), else by frame pointers: ". New string. */
static char *user_unwinder(const struct input *input)
{
	const json_t *tables = json_object_get(input->description, "unwind-tables");
	const json_t *sources = json_object_get(tables, "sources"), *number;
	g_autoptr(GString) list = g_string_new(NULL);
	const char *source;
	json_int_t n = 0;

	json_object_foreach((json_t *)sources, source, number) {
		g_autofree char *name = text_printable(source);

		n += json_integer_value(number);
		g_string_append_printf(list, "%s%" JSON_INTEGER_FORMAT " in %s", list->len != 0 ? ", " : "",
		                       json_integer_value(number), name);
	}
	if (n == 0)
		return g_strdup_printf("user space, by %s: ", frames_name(input));
	return g_strdup_printf("user space, by unwind tables of %" JSON_INTEGER_FORMAT " file%s (%s), else by %s: ", n,
	                       n == 1 ? "" : "s", list->str, frames_name(input));
}

static void line_chains(const struct head *head)
{
	const char *unwinder = member_text(head->input->description, "unwinder");
	const char *way = unwinder && strcmp(unwinder, "orc") == 0 ? "ORC" : frames_name(head->input);
	g_autofree char *kernel = unwinder ? g_strdup_printf("kernel, by %s: ", way) : g_strdup("kernel: ");
	g_autofree char *user = user_unwinder(head->input);

	line_chain_part(kernel, head->counts->kernel_chain_ends, head);
	line_chain_part(user, head->counts->user_chain_ends, head);
}

struct count {
	const char *member, *words;
};

/* A line with those of the members that are not 0. */
static void line_counts(const struct head *head, const char *title, const char *begin, const json_t *members,
                        const struct count *counts, size_t n)
{
	g_autoptr(GString) line = g_string_new(begin);
	const char *gap = "";

	for (size_t i = 0; i < n; i++) {
		uint64_t number = member_number(members, counts[i].member, 0);

		if (number == 0)
			continue;
		g_string_append_printf(line, "%s%" G_GUINT64_FORMAT " %s", gap, number, counts[i].words);
		gap = ", ";
	}
	if (*gap != '\0')
		say(head, title, line->str);
}

/* What became of searches for the stack pointer, on hosts that do not give it. */
static void line_stacks(const struct head *head)
{
	static const struct count kernels[] = {
		{"stack-found", "found"},
		{"stack-none", "without a chain"},
		{"stack-ambiguous", "ambiguous"},
		{"stack-switching", "in code that changes stacks"},
		{"stack-no-table", "in code whose calls are not known"},
		{"stack-work", "given up"},
	};
	static const struct count users[] = {
		{"user-stack-found", "found"},         {"user-stack-none", "without a certain call"},
		{"user-stack-ambiguous", "ambiguous"}, {"user-stack-no-table", "in code without unwind entry"},
		{"user-stack-work", "given up"},
	};

	line_counts(head, "stacks", "searched in memory: ", statistics_total(head), kernels, G_N_ELEMENTS(kernels));
	line_counts(head, "stacks", "of user space, searched in memory: ", statistics_total(head), users,
	            G_N_ELEMENTS(users));
}

/* What is not in the unwind tables of programs and libraries. */
static void line_tables(const struct head *head)
{
	static const struct count left_out[] = {
		{"rows-of-no-form", "rows of a form that is not walked"},
		{"corrupt", "functions with corrupt entries"},
		{"missing", "functions that the guest did not have in memory"},
	};
	const json_t *tables = json_object_get(head->input->description, "unwind-tables");

	line_counts(head, "tables", "without ", json_object_get(tables, "left-out"), left_out, G_N_ELEMENTS(left_out));
}

/* Looks at the tasks that wait, their waits, and what was not recorded of them. */
static void line_waits(const struct head *head)
{
	static const struct count looks[] = {
		{"wall-looks", "looks"},
		{"wall-broken", "that did not see all tasks"},
		{"wall-later", "samples left to the next look"},
		{"wall-no-frame", "dropped without a frame"},
		{"wall-torn", "dropped because the task ran meanwhile"},
		{"off-cpu-dropped", "waits not recorded for lack of room"},
		{"off-cpu-unread", "waits not recorded because the task cannot be read"},
	};

	line_counts(head, "waits", "", statistics_total(head), looks, G_N_ELEMENTS(looks));
}

/* What the engine left to later samples, as it had cost too much: addresses before those may have no names. */
static void line_later(const struct head *head)
{
	static const struct count kinds[] = {
		{"mappings-later", "times mappings"},
		{"build-ids-later", "times build-ids"},
		{"cgroups-later", "times paths of cgroups"},
	};

	line_counts(head, "later", "over a twentieth of the vCPU, and left to later samples: ", statistics_total(head),
	            kinds, G_N_ELEMENTS(kinds));
}

/* What could not be known of the guest. */
static void line_missing(const struct head *head)
{
	const json_t *missing = json_object_get(head->input->description, "missing"), *sentence;
	size_t i;

	json_array_foreach(missing, i, sentence)
		if (json_is_string(sentence))
			say(head, "missing", json_string_value(sentence));
}

void recording_head(const struct input *input, const struct recording_counts *counts, recording_head_line *line,
                    void *data)
{
	const struct head head = {input, counts, line, data};

	line_guest(&head);
	line_arch(&head);
	line_kernel(&head);
	line_host(&head);
	line_end(&head);
	line_command(&head);
	line_phases(&head);
	line_filter(&head);
	line_samples(&head);
	line_throttled(&head);
	line_chains(&head);
	line_stacks(&head);
	line_tables(&head);
	line_waits(&head);
	line_later(&head);
	line_missing(&head);
}

/* The engine adapts periods itself, so an attr of ours has no frequency. 0: a period is given. */
static uint64_t frequency_hz(const struct input *input, const struct perf_event_attr *attr)
{
	return member_number(json_object_get(input->description, "rate"), "frequency-hz",
	                     attr->freq ? attr->sample_freq : 0);
}

char *recording_rate_text(const struct input *input, const struct recording_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	uint64_t hz = frequency_hz(input, attr);

	/* It has a rate of its own: looks at the tasks. */
	if (strcmp(event->name, VPROF_WALL_EVENT) == 0 && attr->sample_period != 0)
		hz = NS_PER_S / attr->sample_period;
	if (strcmp(event->name, VPROF_OFF_CPU_EVENT) == 0)
		return g_strdup("every wait");
	if (hz != 0)
		return g_strdup_printf("%" G_GUINT64_FORMAT " Hz", hz);
	if (attr->sample_period == 0 && attr->inherit_stat)
		return g_strdup("every switch");
	return g_strdup_printf("every %" G_GUINT64_FORMAT, (uint64_t)attr->sample_period);
}

uint64_t recording_counted_period(const struct input *input, const struct recording_event *event)
{
	const char *kind = member_text(json_object_get(input->description, "guest"), "kind");

	if (!kind || strcmp(kind, "kvm") != 0 || event->attr.type == PERF_TYPE_SOFTWARE ||
	    frequency_hz(input, &event->attr) != 0)
		return 0;
	return event->attr.sample_period;
}
