// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_guests.h"

#include <string.h>
#include <unistd.h>

#include "top/top_lines.h"
#include "ui/text.h"

#define NAME_WIDTH 24
#define VMM_WIDTH 16

static void guest_clear(void *data)
{
	struct top_guest *guest = data;

	json_decref(guest->guest);
}

void top_guests_init(struct top_guests *guests)
{
	*guests = (struct top_guests){.rows = g_array_new(FALSE, TRUE, sizeof(struct top_guest))};
	g_array_set_clear_func(guests->rows, guest_clear);
}

void top_guests_clear(struct top_guests *guests)
{
	g_clear_pointer(&guests->rows, g_array_unref);
}

static struct top_guest *guest_at(const struct top_guests *guests, guint i)
{
	return &g_array_index(guests->rows, struct top_guest, i);
}

static const char *name_of(const struct top_guest *guest)
{
	const char *name = member_text(guest->guest, "name");

	return name ? name : "?";
}

static const struct top_guest *guest_named(const struct top_guests *guests, const char *name)
{
	for (guint i = 0; i < guests->rows->len; i++)
		if (strcmp(name_of(guest_at(guests, i)), name) == 0)
			return guest_at(guests, i);
	return NULL;
}

void top_guests_take(struct top_guests *guests, json_t *list)
{
	struct top_guests next;
	json_t *guest;
	size_t i;

	top_guests_init(&next);
	json_array_foreach(list, i, guest) {
		struct top_guest row = {.guest = json_incref(guest), .rate = PROCESS_RATE_UNKNOWN};
		const struct top_guest *before = guest_named(guests, name_of(&row));

		if (before) {
			row.load = before->load;
			row.rate = before->rate;
		}
		g_array_append_val(next.rows, row);
	}
	g_array_unref(guests->rows);
	guests->rows = next.rows;
	json_decref(list);
}

static int compare_guests(const void *one, const void *other)
{
	const struct top_guest *left = one, *right = other;
	int order = (left->rate.cpus < right->rate.cpus) - (left->rate.cpus > right->rate.cpus);

	return order != 0 ? order : strcmp(name_of(left), name_of(right));
}

void top_guests_read(struct top_guests *guests)
{
	const int64_t now_us = g_get_monotonic_time();
	const double ticks_s = (double)sysconf(_SC_CLK_TCK);

	guests->seconds = guests->read_us != 0 ? (double)(now_us - guests->read_us) / G_USEC_PER_SEC : 0;
	guests->read_us = now_us;
	for (guint i = 0; i < guests->rows->len; i++) {
		struct top_guest *guest = guest_at(guests, i);
		const pid_t pid = (pid_t)member_number(guest->guest, "pid", 0);
		const struct process_load load = process_load_read(PROCESS_LOAD_PROC, PROCESS_LOAD_KVM, pid);

		guest->rate = process_load_rate(&guest->load, &load, guests->seconds, ticks_s);
		guest->load = load;
	}
	g_array_sort(guests->rows, compare_guests);
}

/* ---- lines ---- */

void top_guests_title(GArray *lines, const struct top_guests *guests)
{
	double cpus = 0, exits_s = 0;
	bool exits_known = false;
	g_autofree char *exits = NULL;

	for (guint i = 0; i < guests->rows->len; i++) {
		const struct process_rate *rate = &guest_at(guests, i)->rate;

		cpus += MAX(rate->cpus, 0);
		exits_s += MAX(rate->exits_s, 0);
		exits_known = exits_known || rate->exits_s >= 0;
	}
	exits = exits_known ? g_strdup_printf(", %.0f exits/s", exits_s) : g_strdup("");
	terminal_line_add(lines, TERMINAL_TITLE,
	                  g_strdup_printf("vprof top: %u guest%s, %.2f of %ld CPUs%s", guests->rows->len,
	                                  guests->rows->len == 1 ? "" : "s", cpus, sysconf(_SC_NPROCESSORS_ONLN),
	                                  exits));
}

/* What the guest runs, or why that is not known: the first of the reasons. */
static const char *kernel_text(const struct top_guest *guest)
{
	const json_t *kernel = json_object_get(guest->guest, "kernel");
	const char *release = member_text(kernel, "release"), *why = member_text(kernel, "why");

	if (release)
		return release;
	if (!why)
		why = member_text(guest->guest, "why");
	return why ? why : "...";
}

static char *rate_text(double rate, double factor)
{
	return rate < 0 ? g_strdup("-") : g_strdup_printf("%.*f", factor > 1 ? 1 : 0, rate * factor);
}

void top_guests_table(GArray *lines, const struct top_guests *guests, size_t rows_max)
{
	terminal_line_add(lines, TERMINAL_HEAD,
	                  g_strdup_printf("%-*s %-*s %7s %5s %7s %9s  %s", NAME_WIDTH, "GUEST", VMM_WIDTH, "VMM", "PID",
	                                  "VCPUS", "CPU%", "EXITS/S", "KERNEL"));
	for (guint i = 0; i < guests->rows->len && (rows_max == 0 || i < rows_max); i++) {
		const struct top_guest *guest = guest_at(guests, i);
		const char *vmm = member_text(guest->guest, "vmm");
		g_autofree char *cpu = rate_text(guest->rate.cpus, 100), *exits = rate_text(guest->rate.exits_s, 1);

		terminal_line_add(lines, TERMINAL_PLAIN,
		                  g_strdup_printf("%-*s %-*s %7" G_GUINT64_FORMAT " %5" G_GUINT64_FORMAT " %7s %9s  %s",
		                                  NAME_WIDTH, name_of(guest), VMM_WIDTH, vmm ? vmm : "?",
		                                  member_number(guest->guest, "pid", 0),
		                                  member_number(guest->guest, "vcpus", 0), cpu, exits,
		                                  kernel_text(guest)));
	}
}

/* ---- JSON ---- */

static json_t *rate_json(double rate)
{
	return rate < 0 ? json_null() : json_real(rate);
}

json_t *top_guests_json(const struct top_guests *guests, size_t rows_max)
{
	json_t *rows = json_array();

	for (guint i = 0; i < guests->rows->len && (rows_max == 0 || i < rows_max); i++) {
		const struct top_guest *guest = guest_at(guests, i);
		json_t *row = json_deep_copy(guest->guest);

		json_object_set_new(row, "cpus", rate_json(guest->rate.cpus));
		json_object_set_new(row, "exits-per-second", rate_json(guest->rate.exits_s));
		json_array_append_new(rows, row);
	}
	return json_pack("{s:s, s:i, s:f, s:o}", "format", "vprof-top-guests", "version", TOP_GUESTS_JSON_VERSION,
	                 "seconds", guests->seconds, "guests", rows);
}
