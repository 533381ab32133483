// SPDX-License-Identifier: BSD-2-Clause
#include "engine/vcpu_clocks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ui/message.h"
#include "ui/text.h"

#define CLOCKS_VERSION 2

json_t *vcpu_clocks_query(struct client *client, unsigned vcpus, unsigned timeout_ms, GError **error)
{
	json_t *answers = json_array();

	for (unsigned i = 0; i < vcpus; i++) {
		json_t *answer = client_execute(client, "query-vcpu-time", json_pack("{s:i}", "vcpu", (int)i), NULL,
		                                NULL, timeout_ms, error);

		if (!answer) {
			json_decref(answers);
			return NULL;
		}
		json_array_append_new(answers, answer);
	}
	return answers;
}

/* As the protocol spells it: "halt-wait". New string. */
static char *spelled(const char *name)
{
	return g_strdelimit(g_strdup(name), "_", '-');
}

static uint64_t clock_parse(const json_t *clocks, const char *name)
{
	g_autofree char *key = spelled(name);

	return member_number(clocks, key, 0);
}

struct vcpu_clocks vcpu_clocks_parse(const json_t *answer)
{
	const json_t *ns = json_object_get(answer, "ns"), *exits = json_object_get(answer, "exits"), *exit;
	const json_t *looks = json_object_get(answer, "looks");
	struct vcpu_clocks clocks = {.exits = 0};
	size_t i;

#define X(name, help) clocks.time.name##_ns = clock_parse(ns, #name);
	VCPU_TIMES(X)
#undef X
	json_array_foreach(exits, i, exit)
		clocks.exits += member_number(exit, "count", 0);
	/* Only KVM sees the exits of an attached guest. */
	if (json_array_size(exits) == 0)
		clocks.exits = member_number(json_object_get(answer, "counters"), "exits", 0);
	clocks.modes = (struct vcpu_modes){
		.kernel = member_number(looks, "kernel", 0),
		.user = member_number(looks, "user", 0),
	};
	clocks.parts = vcpu_time_split(&clocks.time, &clocks.modes);
	return clocks;
}

/* Counts from 0 if the clock was reset between the readings. */
static uint64_t since(uint64_t from, uint64_t to)
{
	return to >= from ? to - from : to;
}

struct vcpu_clocks vcpu_clocks_between(const struct vcpu_clocks *from, const struct vcpu_clocks *to)
{
	struct vcpu_clocks between = {
		.time = vcpu_time_between(&from->time, &to->time),
		.modes = {.kernel = since(from->modes.kernel, to->modes.kernel),
	                  .user = since(from->modes.user, to->modes.user)},
		.exits = since(from->exits, to->exits),
	};

	between.parts = vcpu_time_split(&between.time, &between.modes);
	return between;
}

struct vcpu_clocks vcpu_clocks_sum(const struct vcpu_clocks *vcpus, size_t n)
{
	struct vcpu_clocks sum = {.exits = 0};

	for (size_t i = 0; i < n; i++) {
		vcpu_time_add(&sum.time, &vcpus[i].time);
		vcpu_time_parts_add(&sum.parts, &vcpus[i].parts);
		sum.modes.kernel += vcpus[i].modes.kernel;
		sum.modes.user += vcpus[i].modes.user;
		sum.exits += vcpus[i].exits;
	}
	return sum;
}

void vcpu_clocks_say_missing(const json_t *answers)
{
	const char *missing = member_text(json_array_get(answers, 0), "missing");

	if (missing)
		warn("this host does not tell for how long a vCPU was %s; that time is in the residual", missing);
}

static double percent(int64_t ns, uint64_t wall_ns)
{
	return wall_ns != 0 ? 100.0 * (double)ns / (double)wall_ns : 0;
}

/* A share of the guest's time, or "-" without samples of the mode. */
static void print_mode(uint64_t ns, const struct vcpu_time_parts *parts, FILE *stream)
{
	if (parts->guest_kernel_ns + parts->guest_user_ns != 0)
		fprintf(stream, " %8.2f", percent((int64_t)ns, parts->wall_ns));
	else
		fprintf(stream, " %8s", "-");
}

/* Exit rates are per second of a vCPU; the sum's is per second of the guest, hence `vcpus`. */
static void print_row(const char *name, const struct vcpu_clocks *clocks, size_t vcpus, FILE *stream)
{
	const struct vcpu_time_parts *parts = &clocks->parts;
	const uint64_t wall_ns = parts->wall_ns;
	const double seconds = (double)wall_ns / 1e9 / (double)vcpus;

	fprintf(stream, "%4s %9.3f %8.2f", name, seconds, percent((int64_t)parts->guest_ns, wall_ns));
	print_mode(parts->guest_kernel_ns, parts, stream);
	print_mode(parts->guest_user_ns, parts, stream);
	fprintf(stream, " %8.2f %8.2f %8.2f %8.2f %9.2f %9.0f\n", percent((int64_t)parts->vmm_ns, wall_ns),
	        percent((int64_t)parts->halted_ns, wall_ns), percent((int64_t)parts->runnable_ns, wall_ns),
	        percent((int64_t)parts->offline_ns, wall_ns), percent(parts->residual_ns, wall_ns),
	        seconds > 0 ? (double)clocks->exits / seconds : 0);
}

/* How kernel and user were distinguished, and the error of that: 1.96 standard errors of a share. */
static void print_looks(const struct vcpu_modes *modes, FILE *stream)
{
	const double n = (double)(modes->kernel + modes->user);

	if (n == 0)
		return;
	const double share = (double)modes->kernel / n;

	fprintf(stream,
	        "# %%GUEST is %%KERNEL + %%USER as %.0f looks at the guest's mode found them, %u in a second of a vCPU: +- %.1f %% of it\n",
	        n, VCPU_MODE_LOOKS_HZ, 196 * sqrt(share * (1 - share) / n));
}

void vcpu_clocks_print_table(const struct vcpu_clocks *vcpus, size_t n, FILE *stream)
{
	const struct vcpu_clocks sum = vcpu_clocks_sum(vcpus, n);

	fprintf(stream, "%4s %9s %8s %8s %8s %8s %8s %8s %8s %9s %9s\n", "VCPU", "SECONDS", "%GUEST", "%KERNEL",
	        "%USER", "%VMM", "%HALTED", "%WAITING", "%OFFLINE", "%RESIDUAL", "EXITS/s");
	for (size_t i = 0; i < n; i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);

		print_row(name, &vcpus[i], 1, stream);
	}
	print_row("all", &sum, n, stream);
	print_looks(&sum.modes, stream);
}

void vcpu_clocks_print_raw(const struct vcpu_clocks *vcpus, size_t n, FILE *stream)
{
	fprintf(stream, "version %d\nvcpu", CLOCKS_VERSION);
#define X(name, help) fputs(" " #name, stream);
	VCPU_TIMES(X)
#undef X
	fputs(" exits looks_kernel looks_user\n", stream);
	for (size_t i = 0; i < n; i++) {
		fprintf(stream, "%zu", i);
#define X(name, help) fprintf(stream, " %" PRIu64, vcpus[i].time.name##_ns);
		VCPU_TIMES(X)
#undef X
		fprintf(stream, " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", vcpus[i].exits, vcpus[i].modes.kernel,
		        vcpus[i].modes.user);
	}
}

static void set(json_t *object, const char *name, int64_t ns)
{
	g_autofree char *key = spelled(name);

	json_object_set_new(object, key, json_integer(ns));
}

static json_t *parts_json(const struct vcpu_time_parts *parts)
{
	json_t *object = json_object();

	set(object, "wall", (int64_t)parts->wall_ns);
	set(object, "guest", (int64_t)parts->guest_ns);
	set(object, "guest_kernel", (int64_t)parts->guest_kernel_ns);
	set(object, "guest_user", (int64_t)parts->guest_user_ns);
	set(object, "guest_unknown", (int64_t)parts->guest_unknown_ns);
	set(object, "vmm", (int64_t)parts->vmm_ns);
	set(object, "halted", (int64_t)parts->halted_ns);
	set(object, "waiting", (int64_t)parts->runnable_ns);
	set(object, "offline", (int64_t)parts->offline_ns);
	set(object, "residual", parts->residual_ns);
	return object;
}

static json_t *clocks_json(const struct vcpu_clocks *clocks)
{
	json_t *raw = json_object();

#define X(name, help) set(raw, #name, (int64_t)clocks->time.name##_ns);
	VCPU_TIMES(X)
#undef X
	return json_pack("{s:I, s:o, s:{s:I, s:I}, s:o}", "exits", (json_int_t)clocks->exits, "clocks-ns", raw, "looks",
	                 "kernel", (json_int_t)clocks->modes.kernel, "user", (json_int_t)clocks->modes.user, "parts-ns",
	                 parts_json(&clocks->parts));
}

json_t *vcpu_clocks_json(const struct vcpu_clocks *vcpus, size_t n)
{
	const struct vcpu_clocks sum = vcpu_clocks_sum(vcpus, n);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *vcpu = clocks_json(&vcpus[i]);

		json_object_set_new(vcpu, "vcpu", json_integer((json_int_t)i));
		json_array_append_new(list, vcpu);
	}
	return json_pack("{s:i, s:o, s:o}", "version", CLOCKS_VERSION, "vcpus", list, "total", clocks_json(&sum));
}

/* ---- exits ---- */

static int by_time(gconstpointer a, gconstpointer b)
{
	const struct exit_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static struct exit_row *row_of(GArray *rows, const char *name)
{
	struct exit_row fresh = {.name = name};

	for (guint i = 0; i < rows->len; i++)
		if (strcmp(g_array_index(rows, struct exit_row, i).name, name) == 0)
			return &g_array_index(rows, struct exit_row, i);
	g_array_append_val(rows, fresh);
	return &g_array_index(rows, struct exit_row, rows->len - 1);
}

GArray *exit_rows_sum(const json_t *answers)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct exit_row));
	const json_t *answer, *exit;
	size_t i, j;

	json_array_foreach(answers, i, answer) {
		json_array_foreach(json_object_get(answer, "exits"), j, exit) {
			const char *name = member_text(exit, "name");
			struct exit_row *row = row_of(rows, name ? name : "?");

			row->count += member_number(exit, "count", 0);
			row->ns += member_number(exit, "ns", 0);
		}
	}
	g_array_sort(rows, by_time);
	return rows;
}

static int by_count(gconstpointer a, gconstpointer b)
{
	const struct exit_row *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

GArray *exit_rows_between(const json_t *from, const json_t *to)
{
	g_autoptr(GArray) before = exit_rows_sum(from);
	GArray *rows = exit_rows_sum(to);

	for (guint i = rows->len; i-- > 0;) {
		struct exit_row *row = &g_array_index(rows, struct exit_row, i);
		const struct exit_row *old = row_of(before, row->name);

		/* Less than before: the counts were reset. */
		if (row->count >= old->count && row->ns >= old->ns) {
			row->count -= old->count;
			row->ns -= old->ns;
		}
		if (row->count == 0)
			g_array_remove_index(rows, i);
	}
	g_array_sort(rows, by_count);
	return rows;
}

json_t *exit_rows_json(const GArray *rows)
{
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct exit_row *row = &g_array_index(rows, struct exit_row, i);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", row->name, "count",
		                                      (json_int_t)row->count, "ns", (json_int_t)row->ns));
	}
	return list;
}
