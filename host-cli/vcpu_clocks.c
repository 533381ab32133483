// SPDX-License-Identifier: BSD-2-Clause
#include "vcpu_clocks.h"

#include <inttypes.h>

#include "message.h"
#include "text.h"

#define CLOCKS_VERSION 1

json_t *vcpu_clocks_query(struct client *client, unsigned vcpus, unsigned timeout_ms, GError **error)
{
	json_t *answers = json_array();

	for (unsigned i = 0; i < vcpus; i++) {
		json_t *answer = client_execute(client, "query-vcpu-time", json_pack("{s:i}", "vcpu", (int)i), NULL,
		                                NULL, timeout_ms, error);

		if (answer == NULL) {
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
	struct vcpu_clocks clocks = {.exits = 0};
	size_t i;

#define X(name, help) clocks.time.name##_ns = clock_parse(ns, #name);
	VCPU_TIMES(X)
#undef X
	json_array_foreach(exits, i, exit) clocks.exits += member_number(exit, "count", 0);
	return clocks;
}

struct vcpu_clocks vcpu_clocks_between(const struct vcpu_clocks *from, const struct vcpu_clocks *to)
{
	return (struct vcpu_clocks){
		.time = vcpu_time_between(&from->time, &to->time),
		.exits = to->exits >= from->exits ? to->exits - from->exits : to->exits,
	};
}

struct vcpu_clocks vcpu_clocks_sum(const struct vcpu_clocks *vcpus, size_t n)
{
	struct vcpu_clocks sum = {.exits = 0};

	for (size_t i = 0; i < n; i++) {
		vcpu_time_add(&sum.time, &vcpus[i].time);
		sum.exits += vcpus[i].exits;
	}
	return sum;
}

void vcpu_clocks_say_missing(const json_t *answers)
{
	const char *missing = member_text(json_array_get(answers, 0), "missing");

	if (missing != NULL)
		warn("this host does not tell for how long a vCPU was %s; that time is in the residual", missing);
}

static double percent(int64_t ns, uint64_t wall_ns)
{
	return wall_ns != 0 ? 100.0 * (double)ns / (double)wall_ns : 0;
}

/* An exit rate is that of one vCPU's second, and for all, of a second of the guest: hence `vcpus`. */
static void print_row(const char *name, const struct vcpu_clocks *clocks, size_t vcpus, FILE *stream)
{
	const struct vcpu_time_parts parts = vcpu_time_split(&clocks->time);
	const uint64_t wall_ns = parts.wall_ns;
	const double seconds = (double)wall_ns / 1e9 / (double)vcpus;

	fprintf(stream, "%4s %9.3f %8.2f %8.2f %8.2f %8.2f %8.2f %9.2f %9.0f\n", name, seconds,
	        percent((int64_t)parts.guest_ns, wall_ns), percent((int64_t)parts.vmm_ns, wall_ns),
	        percent((int64_t)parts.halted_ns, wall_ns), percent((int64_t)parts.runnable_ns, wall_ns),
	        percent((int64_t)parts.offline_ns, wall_ns), percent(parts.residual_ns, wall_ns),
	        seconds > 0 ? (double)clocks->exits / seconds : 0);
}

void vcpu_clocks_print_table(const struct vcpu_clocks *vcpus, size_t n, FILE *stream)
{
	const struct vcpu_clocks sum = vcpu_clocks_sum(vcpus, n);

	fprintf(stream, "%4s %9s %8s %8s %8s %8s %8s %9s %9s\n", "VCPU", "SECONDS", "%GUEST", "%VMM", "%HALTED",
	        "%WAITING", "%OFFLINE", "%RESIDUAL", "EXITS/s");
	for (size_t i = 0; i < n; i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);

		print_row(name, &vcpus[i], 1, stream);
	}
	print_row("all", &sum, n, stream);
}

void vcpu_clocks_print_raw(const struct vcpu_clocks *vcpus, size_t n, FILE *stream)
{
	fprintf(stream, "version %d\nvcpu", CLOCKS_VERSION);
#define X(name, help) fputs(" " #name, stream);
	VCPU_TIMES(X)
#undef X
	fputs(" exits\n", stream);
	for (size_t i = 0; i < n; i++) {
		fprintf(stream, "%zu", i);
#define X(name, help) fprintf(stream, " %" PRIu64, vcpus[i].time.name##_ns);
		VCPU_TIMES(X)
#undef X
		fprintf(stream, " %" PRIu64 "\n", vcpus[i].exits);
	}
}

static void set(json_t *object, const char *name, int64_t ns)
{
	g_autofree char *key = spelled(name);

	json_object_set_new(object, key, json_integer(ns));
}

static json_t *clocks_json(const struct vcpu_clocks *clocks)
{
	const struct vcpu_time_parts parts = vcpu_time_split(&clocks->time);
	json_t *raw = json_object();

#define X(name, help) set(raw, #name, (int64_t)clocks->time.name##_ns);
	VCPU_TIMES(X)
#undef X
	return json_pack("{s:I, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I}}", "exits", (json_int_t)clocks->exits,
	                 "clocks-ns", raw, "parts-ns", "wall", (json_int_t)parts.wall_ns, "guest",
	                 (json_int_t)parts.guest_ns, "vmm", (json_int_t)parts.vmm_ns, "halted",
	                 (json_int_t)parts.halted_ns, "waiting", (json_int_t)parts.runnable_ns, "offline",
	                 (json_int_t)parts.offline_ns, "residual", (json_int_t)parts.residual_ns);
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
