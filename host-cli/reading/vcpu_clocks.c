// SPDX-License-Identifier: BSD-2-Clause
#include "reading/vcpu_clocks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reading/kvm_exits.h"
#include "ui/message.h"
#include "ui/text.h"

#define CLOCKS_VERSION 3

json_t *vcpu_clocks_query(struct client *client, unsigned vcpus, unsigned timeout_ms, GError **error)
{
	json_t *answers = json_array();

	for (unsigned i = 0; i < vcpus; i++) {
		json_t *answer = json_printable(client_execute(
			client, "query-vcpu-time", json_pack("{s:i}", "vcpu", (int)i), NULL, NULL, timeout_ms, error));

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
	const json_t *looks = json_object_get(answer, "looks"), *kvm_exits = json_object_get(answer, "kvm-exits");
	struct vcpu_clocks clocks = {.exits = 0};
	size_t i;

#define X(name, help) clocks.time.name##_ns = clock_parse(ns, #name);
	VCPU_TIMES(X)
#undef X
	/* All, where KVM's trace points can be read; else those that came to the VMM. */
	json_array_foreach(json_array_size(kvm_exits) != 0 ? kvm_exits : exits, i, exit)
		clocks.exits += member_number(exit, "count", 0);
	/* Only KVM sees the exits of an attached guest. */
	if (json_array_size(exits) == 0 && json_array_size(kvm_exits) == 0)
		clocks.exits = member_number(json_object_get(answer, "counters"), "exits", 0);
	clocks.lost = member_number(answer, "lost", 0);
	clocks.untraced = member_text(answer, "untraced");
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
		.lost = since(from->lost, to->lost),
		.untraced = to->untraced,
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
		sum.lost += vcpus[i].lost;
	}
	return sum;
}

char *vcpu_clocks_sentence(const json_t *answers)
{
	const size_t n = MIN(json_array_size(answers), VCPU_CLOCKS_MAX);
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];
	struct vcpu_time_parts parts;

	for (size_t i = 0; i < n; i++)
		vcpus[i] = vcpu_clocks_parse(json_array_get(answers, i));
	parts = vcpu_clocks_sum(vcpus, n).parts;
	if (parts.wall_ns == 0)
		return NULL;
	return g_strdup_printf(
		"of %.2f s, the %zu vCPU%s halted for %.2f s, in the guest for %.2f s, waiting for a host CPU for %.2f s",
		(double)parts.wall_ns / 1e9, n, n == 1 ? " was" : "s were",
		(double)(parts.halted_ns + parts.offline_ns) / 1e9, (double)parts.guest_ns / 1e9,
		(double)parts.runnable_ns / 1e9);
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

static void print_kvm(const struct vcpu_clocks *clocks, FILE *stream)
{
	if (vcpu_time_is_traced(&clocks->time))
		fprintf(stream, " %8.2f", percent((int64_t)clocks->parts.kvm_ns, clocks->parts.wall_ns));
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
	print_kvm(clocks, stream);
	fprintf(stream, " %8.2f %8.2f %8.2f %8.2f %8.2f %9.2f %9.0f\n", percent((int64_t)parts->vmm_ns, wall_ns),
	        percent((int64_t)(parts->halted_ns - parts->polling_ns), wall_ns),
	        percent((int64_t)parts->polling_ns, wall_ns), percent((int64_t)parts->runnable_ns, wall_ns),
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

	if (n > 0 && vcpus[0].untraced) {
		g_autofree char *why = text_printable(vcpus[0].untraced);

		fprintf(stream, "# %%GUEST includes the exits that KVM handles by itself: %s\n", why);
	}
	fprintf(stream, "%4s %9s %8s %8s %8s %8s %8s %8s %8s %8s %8s %9s %9s\n", "VCPU", "SECONDS", "%GUEST", "%KERNEL",
	        "%USER", "%KVM", "%VMM", "%HALTED", "%POLLING", "%WAITING", "%OFFLINE", "%RESIDUAL", "EXITS/s");
	for (size_t i = 0; i < n; i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);

		print_row(name, &vcpus[i], 1, stream);
	}
	print_row("all", &sum, n, stream);
	print_looks(&sum.modes, stream);
	if (sum.lost != 0)
		fprintf(stream,
		        "# %" PRIu64
		        " records of KVM's trace points were lost: exits are missing, and their time is in the residual\n",
		        sum.lost);
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
	set(object, "kvm", (int64_t)parts->kvm_ns);
	set(object, "vmm", (int64_t)parts->vmm_ns);
	set(object, "halted", (int64_t)parts->halted_ns);
	set(object, "polling", (int64_t)parts->polling_ns);
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
	return json_pack("{s:I, s:I, s:o, s:{s:I, s:I}, s:o}", "exits", (json_int_t)clocks->exits, "lost",
	                 (json_int_t)clocks->lost, "clocks-ns", raw, "looks", "kernel",
	                 (json_int_t)clocks->modes.kernel, "user", (json_int_t)clocks->modes.user, "parts-ns",
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
	return json_pack("{s:i, s:s?, s:o, s:o}", "version", CLOCKS_VERSION, "untraced",
	                 n > 0 ? vcpus[0].untraced : NULL, "vcpus", list, "total", clocks_json(&sum));
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

			if (j == VCPU_EXITS_MAX)
				break;
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

/* ---- a window of time ---- */

static json_t *clocks_ns(const struct vcpu_time *time)
{
	json_t *ns = json_object();

#define X(name, help) set(ns, #name, (int64_t)time->name##_ns);
	VCPU_TIMES(X)
#undef X
	return ns;
}

/* `from` NULL: a vCPU that is new. */
static json_t *answer_between(json_t *from, json_t *to)
{
	const struct vcpu_clocks before = vcpu_clocks_parse(from), after = vcpu_clocks_parse(to);
	const struct vcpu_clocks between = vcpu_clocks_between(&before, &after);
	json_t *froms = from ? json_pack("[O]", from) : json_array(), *tos = json_pack("[O]", to);
	g_autoptr(GArray) returns = exit_rows_between(froms, tos), exits = kvm_exit_rows(froms, tos, -1);
	json_t *answer = json_pack("{s:o, s:{s:I, s:I}, s:o, s:o, s:{s:I}}", "ns", clocks_ns(&between.time), "looks",
	                           "kernel", (json_int_t)between.modes.kernel, "user", (json_int_t)between.modes.user,
	                           "exits", exit_rows_json(returns), "kvm-exits", kvm_exit_rows_json(exits), "counters",
	                           "exits", (json_int_t)between.exits);

	json_object_set_new(answer, "lost", json_integer((json_int_t)between.lost));
	member_set(answer, "missing", json_object_get(to, "missing"));
	member_set(answer, "untraced", json_object_get(to, "untraced"));
	json_decref(froms);
	json_decref(tos);
	return answer;
}

json_t *vcpu_clocks_window(const json_t *from, const json_t *to)
{
	json_t *window = json_array(), *answer;
	size_t i;

	json_array_foreach(to, i, answer)
		json_array_append_new(window, answer_between(json_array_get(from, i), answer));
	return window;
}
