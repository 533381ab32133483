// SPDX-License-Identifier: BSD-2-Clause
/* vprof attach --list */
#include "attach/attach.h"

#include <stdio.h>

#include "ui/message.h"
#include "ui/text.h"

/* Merges the probe of a domain into its row; a domain that cannot be probed has "why". */
static void domain_probe(const struct attach_engine_options *options, json_t *domain)
{
	g_autoptr(GError) error = NULL;
	json_t *probe = attach_engine_ask(options, member_text(domain, "uuid"), &error);

	if (probe)
		json_object_update_missing(domain, probe);
	json_decref(probe);
}

/* "bpf, perf, monitor": the routes that work. New string. */
static char *routes_text(const json_t *domain)
{
	const json_t *routes = json_object_get(domain, "routes"), *route;
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

/* Prints the routes that do not work, with their reasons. */
static void reasons_print(const json_t *domain)
{
	const json_t *routes = json_object_get(domain, "routes"), *route;
	size_t i;

	json_array_foreach(routes, i, route) {
		g_autofree char *why = text_printable(member_text(route, "why"));

		if (why[0] != '\0')
			printf("%-20s   not %s: %s\n", "", member_text(route, "name"), why);
	}
}

static void domain_print(const json_t *domain)
{
	g_autofree char *name = text_printable(member_text(domain, "name"));
	g_autofree char *state = text_printable(member_text(domain, "state"));
	g_autofree char *accelerator = text_printable(member_text(domain, "accelerator"));
	g_autofree char *kernel = text_printable(member_text(json_object_get(domain, "kernel"), "release"));
	g_autofree char *routes = routes_text(domain);

	printf("%-20s %-9s %-5s %5" G_GUINT64_FORMAT " %-26s %s\n", name, state, accelerator,
	       member_number(domain, "vcpus", 0), kernel[0] != '\0' ? kernel : "unknown", routes);
	reasons_print(domain);
}

int attach_list(const struct attach_engine_options *options, bool json)
{
	g_autoptr(GError) error = NULL;
	json_t *domains = attach_engine_ask(options, NULL, &error), *domain;
	size_t i;

	if (!domains) /* vprof-attach has printed the reason */
		return g_error_matches(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_PROGRAM) ? STATUS_FAILED
		                                                                                : failure(error);
	json_array_foreach(domains, i, domain)
		domain_probe(options, domain);
	if (json) {
		text_print_json(domains, 0, stdout);
	} else if (json_array_size(domains) != 0) {
		printf("%-20s %-9s %-5s %5s %-26s %s\n", "DOMAIN", "STATE", "ACCEL", "VCPUS", "KERNEL", "ROUTES");
		json_array_foreach(domains, i, domain)
			domain_print(domain);
	}
	json_decref(domains);
	return STATUS_OK;
}
