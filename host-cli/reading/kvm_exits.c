// SPDX-License-Identifier: BSD-2-Clause
#include "reading/kvm_exits.h"

#include <inttypes.h>
#include <string.h>

#include "reading/vcpu_clocks.h"
#include "ui/text.h"

const char *kvm_exits_untraced(const json_t *answers)
{
	return member_text(json_array_get(answers, 0), "untraced");
}

/* Calls `add` with each object in the list `member` of the answers. */
static void each(const json_t *answers, int vcpu, const char *member, void (*add)(GArray *rows, const json_t *object),
                 GArray *rows)
{
	const json_t *answer, *object;
	size_t i, j;

	json_array_foreach(answers, i, answer)
		if (vcpu < 0 || (size_t)vcpu == i)
			json_array_foreach(json_object_get(answer, member), j, object) {
				if (j == VCPU_EXITS_MAX)
					break;
				add(rows, object);
			}
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- by reason ---- */

/* The numbers of a row that add up, by their names in the answers. */
#define NUMBERS(X)            \
	X(count, "count")     \
	X(ns, "ns")           \
	X(kvm_ns, "kvm-ns")   \
	X(vmm_ns, "vmm-ns")   \
	X(poll_ns, "poll-ns") \
	X(halt_ns, "halt-ns") \
	X(waiting_ns, "waiting-ns")

static struct kvm_exit_row *exit_row_find(const GArray *rows, const char *name)
{
	for (guint i = 0; i < rows->len; i++)
		if (strcmp(g_array_index(rows, struct kvm_exit_row, i).name, name) == 0)
			return &g_array_index(rows, struct kvm_exit_row, i);
	return NULL;
}

static void exit_add(GArray *rows, const json_t *exit)
{
	const char *name = member_text(exit, "name");
	const json_t *histogram = json_object_get(exit, "histogram");
	struct kvm_exit_row *row = exit_row_find(rows, name ? name : "?");

	if (!row) {
		const struct kvm_exit_row fresh = {.name = name ? name : "?"};

		g_array_append_val(rows, fresh);
		row = &g_array_index(rows, struct kvm_exit_row, rows->len - 1);
	}
#define X(member, key) row->member += member_number(exit, key, 0);
	NUMBERS(X)
#undef X
	row->max_ns = MAX(row->max_ns, member_number(exit, "max-ns", 0));
	for (size_t i = 0; i < MIN(json_array_size(histogram), KVM_EXITS_BUCKETS); i++)
		row->histogram[i] += (uint64_t)json_integer_value(json_array_get(histogram, i));
}

static void exit_subtract(struct kvm_exit_row *row, const struct kvm_exit_row *before)
{
	/* Less than before: the counts were reset. */
	if (row->count < before->count || row->ns < before->ns)
		return;
#define X(member, key) row->member = minus(row->member, before->member);
	NUMBERS(X)
#undef X
	for (size_t i = 0; i < KVM_EXITS_BUCKETS; i++)
		row->histogram[i] = minus(row->histogram[i], before->histogram[i]);
}

static int exit_by_time(gconstpointer a, gconstpointer b)
{
	const struct kvm_exit_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

GArray *kvm_exit_rows(const json_t *from, const json_t *to, int vcpu)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct kvm_exit_row));
	g_autoptr(GArray) before = g_array_new(FALSE, FALSE, sizeof(struct kvm_exit_row));

	each(from, vcpu, "kvm-exits", exit_add, before);
	each(to, vcpu, "kvm-exits", exit_add, rows);
	for (guint i = rows->len; i-- > 0;) {
		struct kvm_exit_row *row = &g_array_index(rows, struct kvm_exit_row, i);
		const struct kvm_exit_row *old = exit_row_find(before, row->name);

		if (old)
			exit_subtract(row, old);
		if (row->count == 0 && row->ns == 0)
			g_array_remove_index(rows, i);
	}
	g_array_sort(rows, exit_by_time);
	return rows;
}

/* The end of the bucket that 99 of 100 exits are in or before, but not above the longest. */
static uint64_t percentile_99(const struct kvm_exit_row *row)
{
	uint64_t sum = 0;

	for (size_t i = 0; i + 1 < KVM_EXITS_BUCKETS; i++) {
		sum += row->histogram[i];
		if (sum * 100 >= row->count * 99)
			return MIN(UINT64_C(2) << i, row->max_ns);
	}
	return row->max_ns;
}

void kvm_exit_rows_print(const GArray *rows, uint64_t wall_ns, FILE *stream)
{
	if (rows->len == 0)
		return;
	fprintf(stream, "\n%10s %7s %11s %11s %11s %11s %11s %9s %9s %9s  %s\n", "EXITS", "%TIME", "MS", "MS IN KVM",
	        "MS IN VMM", "MS HALTED", "MS WAITING", "US EACH", "US P99", "US MAX", "REASON");
	for (guint i = 0; i < rows->len; i++) {
		const struct kvm_exit_row *row = &g_array_index(rows, struct kvm_exit_row, i);
		g_autofree char *name = text_printable(row->name);

		fprintf(stream, "%10" PRIu64 " %7.2f %11.3f %11.3f %11.3f %11.3f %11.3f %9.2f %9.2f %9.2f  %s\n",
		        row->count, wall_ns != 0 ? 100.0 * (double)row->ns / (double)wall_ns : 0, (double)row->ns / 1e6,
		        (double)row->kvm_ns / 1e6, (double)row->vmm_ns / 1e6,
		        (double)(row->poll_ns + row->halt_ns) / 1e6, (double)row->waiting_ns / 1e6,
		        row->count != 0 ? (double)row->ns / 1e3 / (double)row->count : 0,
		        (double)percentile_99(row) / 1e3, (double)row->max_ns / 1e3, name);
	}
}

json_t *kvm_exit_rows_json(const GArray *rows)
{
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct kvm_exit_row *row = &g_array_index(rows, struct kvm_exit_row, i);
		json_t *object = json_pack("{s:s}", "name", row->name), *histogram = json_array();

#define X(member, key) json_object_set_new(object, key, json_integer((json_int_t)row->member));
		NUMBERS(X)
#undef X
		for (size_t j = 0; j < KVM_EXITS_BUCKETS; j++)
			json_array_append_new(histogram, json_integer((json_int_t)row->histogram[j]));
		json_object_set_new(object, "max-ns", json_integer((json_int_t)row->max_ns));
		json_object_set_new(object, "histogram", histogram);
		json_array_append_new(list, object);
	}
	return list;
}

/* ---- by port and address ---- */

static void access_name(const json_t *access, char *name, size_t bytes)
{
	const char *space = member_text(access, "space");
	const bool write = json_is_true(json_object_get(access, "write"));
	const uint64_t address = member_number(access, "address", 0);

	if (!space)
		g_strlcpy(name, "other", bytes);
	else if (strcmp(space, "ioport") == 0)
		g_snprintf(name, (gulong)bytes, "%#" PRIx64 ":%s", address, write ? "POUT" : "PIN");
	else
		g_snprintf(name, (gulong)bytes, "%#" PRIx64 ":%s", address, write ? "W" : "R");
}

static struct kvm_access_row *access_row_find(const GArray *rows, const char *name)
{
	for (guint i = 0; i < rows->len; i++)
		if (strcmp(g_array_index(rows, struct kvm_access_row, i).name, name) == 0)
			return &g_array_index(rows, struct kvm_access_row, i);
	return NULL;
}

static void access_add(GArray *rows, const json_t *access)
{
	struct kvm_access_row fresh = {.count = 0}, *row;

	access_name(access, fresh.name, sizeof(fresh.name));
	row = access_row_find(rows, fresh.name);
	if (!row) {
		g_array_append_val(rows, fresh);
		row = &g_array_index(rows, struct kvm_access_row, rows->len - 1);
	}
	row->count += member_number(access, "count", 0);
	row->ns += member_number(access, "ns", 0);
}

static void port_add(GArray *rows, const json_t *access)
{
	if (g_strcmp0(member_text(access, "space"), "mmio") != 0)
		access_add(rows, access);
}

static void address_add(GArray *rows, const json_t *access)
{
	if (g_strcmp0(member_text(access, "space"), "ioport") != 0)
		access_add(rows, access);
}

static int access_by_time(gconstpointer a, gconstpointer b)
{
	const struct kvm_access_row *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

GArray *kvm_access_rows(const json_t *from, const json_t *to, int vcpu, const char *space)
{
	GArray *rows = g_array_new(FALSE, FALSE, sizeof(struct kvm_access_row));
	g_autoptr(GArray) before = g_array_new(FALSE, FALSE, sizeof(struct kvm_access_row));
	void (*add)(GArray *, const json_t *) = strcmp(space, "ioport") == 0 ? port_add : address_add;

	each(from, vcpu, "accesses", add, before);
	each(to, vcpu, "accesses", add, rows);
	for (guint i = rows->len; i-- > 0;) {
		struct kvm_access_row *row = &g_array_index(rows, struct kvm_access_row, i);
		const struct kvm_access_row *old = access_row_find(before, row->name);

		if (old && row->count >= old->count) {
			row->count -= old->count;
			row->ns = minus(row->ns, old->ns);
		}
		if (row->count == 0)
			g_array_remove_index(rows, i);
	}
	g_array_sort(rows, access_by_time);
	return rows;
}

void kvm_access_rows_print(const GArray *rows, const char *space, FILE *stream)
{
	fprintf(stream, "\n%10s %11s %9s  %s\n", "ACCESSES", "MS", "US EACH",
	        strcmp(space, "ioport") == 0 ? "PORT" : "ADDRESS");
	for (guint i = 0; i < rows->len; i++) {
		const struct kvm_access_row *row = &g_array_index(rows, struct kvm_access_row, i);

		fprintf(stream, "%10" PRIu64 " %11.3f %9.2f  %s\n", row->count, (double)row->ns / 1e6,
		        (double)row->ns / 1e3 / (double)row->count, row->name);
	}
}

json_t *kvm_access_rows_json(const GArray *rows)
{
	json_t *list = json_array();

	for (guint i = 0; i < rows->len; i++) {
		const struct kvm_access_row *row = &g_array_index(rows, struct kvm_access_row, i);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", row->name, "count",
		                                      (json_int_t)row->count, "ns", (json_int_t)row->ns));
	}
	return list;
}
