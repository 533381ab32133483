// SPDX-License-Identifier: BSD-2-Clause
/* vprof attach --list */
#include "attach/attach.h"

#include <stdio.h>

#include "engine/guest_list.h"
#include "ui/message.h"
#include "ui/text.h"

#define PROBES_AT_ONCE 8u

/* "bpf, perf, monitor": the routes that work. New string. */
static char *routes_text(const json_t *guest)
{
	const json_t *routes = json_object_get(guest, "routes"), *route;
	GString *text = g_string_new(NULL);
	size_t i;

	json_array_foreach(routes, i, route) {
		if (json_is_true(json_object_get(route, "usable")))
			g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", member_text(route, "name"));
	}
	if (text->len == 0)
		g_string_append(text, "none");
	return g_string_free(text, FALSE);
}

/* Prints why the guest cannot be attached to, or why routes do not work and its kernel is not known. */
static void reasons_print(const json_t *guest)
{
	const json_t *routes = json_object_get(guest, "routes"), *route;
	g_autofree char *refused = text_printable(member_text(guest, "why"));
	g_autofree char *unknown = text_printable(member_text(json_object_get(guest, "kernel"), "why"));
	size_t i;

	if (refused[0] != '\0')
		printf("%-20s   %s\n", "", refused);
	json_array_foreach(routes, i, route) {
		g_autofree char *why = text_printable(member_text(route, "why"));

		if (why[0] != '\0')
			printf("%-20s   not %s: %s\n", "", member_text(route, "name"), why);
	}
	if (unknown[0] != '\0')
		printf("%-20s   no kernel: %s\n", "", unknown);
}

static void guest_print(const json_t *guest)
{
	g_autofree char *name = text_printable(member_text(guest, "name"));
	g_autofree char *vmm = text_printable(member_text(guest, "vmm"));
	g_autofree char *state = text_printable(member_text(guest, "state"));
	g_autofree char *accelerator = text_printable(member_text(guest, "accelerator"));
	g_autofree char *kernel = text_printable(member_text(json_object_get(guest, "kernel"), "release"));
	g_autofree char *routes = routes_text(guest);

	printf("%-20s %-16s %7" G_GUINT64_FORMAT " %-9s %-5s %5" G_GUINT64_FORMAT " %-26s %s\n", name, vmm,
	       member_number(guest, "pid", 0), state[0] != '\0' ? state : "-",
	       accelerator[0] != '\0' ? accelerator : "?", member_number(guest, "vcpus", 0),
	       kernel[0] != '\0' ? kernel : "unknown", routes);
	reasons_print(guest);
}

static void probe_one(void *guest, void *options)
{
	guest_probe(options, guest);
}

/* Each waits for a process of its own, which loads a BPF program and decodes symbols: several at once. */
static void probe_all(const struct attach_engine_options *options, json_t *guests)
{
	struct attach_engine_options same = *options;
	GThreadPool *pool =
		g_thread_pool_new(probe_one, &same, (gint)MIN(g_get_num_processors(), PROBES_AT_ONCE), FALSE, NULL);
	json_t *guest;
	size_t i;

	json_array_foreach(guests, i, guest)
		g_thread_pool_push(pool, guest, NULL);
	g_thread_pool_free(pool, FALSE, TRUE);
}

int attach_list(const struct attach_engine_options *options, bool json)
{
	g_autoptr(GError) error = NULL;
	unsigned denied;
	json_t *guests = guest_list(options, &denied, &error), *guest;
	size_t i;

	if (!guests)
		return failure(error);
	probe_all(options, guests);
	if (json) {
		text_print_json(guests, 0, stdout);
	} else if (json_array_size(guests) != 0) {
		printf("%-20s %-16s %7s %-9s %-5s %5s %-26s %s\n", "GUEST", "VMM", "PID", "STATE", "ACCEL", "VCPUS",
		       "KERNEL", "ROUTES");
		json_array_foreach(guests, i, guest)
			guest_print(guest);
	}
	if (denied > 0)
		say("%u processes of other users are not looked into; as root, vprof lists every guest of this host",
		    denied);
	json_decref(guests);
	return STATUS_OK;
}
