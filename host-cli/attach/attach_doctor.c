// SPDX-License-Identifier: BSD-2-Clause
/* vprof doctor DOMAIN: what can be found out about a running guest, and what prevents the rest. */
#include "attach/attach.h"

#include <stdio.h>

#include "lib/process/vmm_name.h"
#include "ui/message.h"
#include "ui/text.h"

static bool usable(const json_t *part)
{
	return json_is_true(json_object_get(part, "usable"));
}

static void check_guest(const json_t *probe)
{
	const char *accelerator = member_text(probe, "accelerator");
	g_autofree char *text = g_strdup_printf(
		"%s, %" G_GUINT64_FORMAT " vCPUs, accelerator %s, process %" G_GUINT64_FORMAT " of user %s",
		member_text(probe, "name"), member_number(probe, "vcpus", 0), accelerator ? accelerator : "unknown",
		member_number(probe, "pid", 0), member_text(probe, "user"));

	finding_print(FINDING_GOOD, "guest", text, NULL);
	finding_print(FINDING_GOOD, "vmm", member_text(probe, "vmm"), NULL);
}

/* For monitor and memory: without them less is known, but the guest can still be profiled. */
static void check_part(const json_t *probe, const char *name, const char *good)
{
	const json_t *part = json_object_get(probe, name);
	const char *why = member_text(part, "why");

	finding_print(usable(part) ? FINDING_GOOD : FINDING_NOTE, name, usable(part) ? good : why, NULL);
}

static void check_kernel(const json_t *probe)
{
	const json_t *kernel = json_object_get(probe, "kernel");
	const char *release = member_text(kernel, "release"), *id = member_text(kernel, "build-id");
	g_autofree char *text =
		g_strdup_printf("%s, build-id %s", release ? release : "not Linux", id ? id : "unknown");
	bool known = json_is_true(json_object_get(kernel, "known"));

	finding_print(known ? FINDING_GOOD : FINDING_NOTE, "kernel", known ? text : member_text(kernel, "why"), NULL);
}

/* An older engine does not say. */
static void print_gives(const char *name, const char *gives)
{
	g_autofree char *text = g_strdup_printf("%s gives %s", name, gives);

	if (gives)
		finding_print(FINDING_GOOD, "route", text, NULL);
}

/* True if a route is usable. */
static bool check_routes(const json_t *probe)
{
	const json_t *routes = json_object_get(probe, "routes"), *route;
	const char *best = NULL;
	size_t i;

	json_array_foreach(routes, i, route) {
		const char *name = member_text(route, "name");
		g_autofree char *text =
			g_strdup_printf("%s: %s", name, member_text(route, usable(route) ? "summary" : "why"));

		finding_print(usable(route) ? FINDING_GOOD : FINDING_NOTE, "route", text, NULL);
		if (usable(route))
			print_gives(name, member_text(route, "gives"));
		best = !best && usable(route) ? name : best;
	}
	if (!best)
		finding_print(FINDING_BAD, "route", "no route can sample this guest; see the notes above",
		              "run vprof as root, which may do all of it");
	else
		finding_print(FINDING_GOOD, "default", best, NULL);
	return best != NULL;
}

static int diagnose(const json_t *probe)
{
	check_guest(probe);
	if (g_strcmp0(member_text(probe, "vmm"), "QEMU") == 0)
		check_part(probe, "monitor",
		           "QEMU answers; its commands mark a libvirt domain as tainted (custom-monitor)");
	check_part(probe, "memory", "the guest's RAM can be read");
	check_kernel(probe);
	if (!check_routes(probe)) {
		puts("This guest cannot be profiled.");
		return STATUS_FAILED;
	}
	puts("This guest can be profiled.");
	return STATUS_OK;
}

/* "vmm", by the name of the process's program. */
static void name_vmm(json_t *probe)
{
	struct vmm_name vmm = vmm_name_read("/proc", (pid_t)member_number(probe, "pid", 0));

	json_object_set_new(probe, "vmm", text_json(vmm.vmm));
	vmm_name_clear(&vmm);
}

int attach_doctor(const struct attach_engine_options *options, const char *domain, bool json)
{
	g_autoptr(GError) error = NULL;
	json_t *probe = attach_engine_ask(options, domain, NULL, &error);
	int status = STATUS_OK;

	if (!probe) /* vprof-attach has printed the reason */
		return g_error_matches(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_PROGRAM) ? STATUS_FAILED
		                                                                                : failure(error);
	name_vmm(probe);
	if (json) {
		text_print_json(probe, 0, stdout);
	} else {
		status = diagnose(probe);
	}
	json_decref(probe);
	return status;
}
