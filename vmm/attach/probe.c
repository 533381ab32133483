// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probe.h"

#include <inttypes.h>

#include "counter/route.h"

static json_t *route_json(struct qemu_guest *qemu, const struct counter_route *route)
{
	g_autofree char *why = route->unavailable(&qemu->guest);

	return json_pack("{s:s, s:s, s:b, s:s*}", "name", route->name, "summary", route->summary, "usable", why == NULL,
	                 "why", why);
}

static json_t *routes_json(struct qemu_guest *qemu)
{
	json_t *routes = json_array();

	for (size_t i = 0; qemu->guest.routes[i]; i++)
		json_array_append_new(routes, route_json(qemu, qemu->guest.routes[i]));
	return routes;
}

static json_t *kernel_json(const struct qemu_guest *qemu)
{
	return json_pack("{s:b, s:s*, s:s*, s:s*}", "known", qemu->kernel.image != NULL, "release", qemu->guest.release,
	                 "build-id", qemu->guest.build_id, "why", qemu->guest.kernel_why);
}

json_t *probe_json(struct qemu_guest *qemu)
{
	return json_pack("{s:s, s:i, s:s*, s:i, s:I, s:{s:b, s:s*}, s:o, s:o}", "name", qemu->guest.name, "pid",
	                 (int)qemu->pid, "accelerator", qemu->accelerator, "vcpus", (int)qemu->guest.vcpus,
	                 "memory-bytes", (json_int_t)qemu->guest.memory_bytes, "memory", "usable", qemu->memory != NULL,
	                 "why", qemu->memory_why, "kernel", kernel_json(qemu), "routes", routes_json(qemu));
}

void probe_describe(struct qemu_guest *qemu, FILE *stream)
{
	fprintf(stream, "vprof-attach: %s is process %d, with %u vCPUs by %s\n", qemu->guest.name, (int)qemu->pid,
	        qemu->guest.vcpus, qemu->accelerator ? qemu->accelerator : "an unknown accelerator");
	if (qemu->memory_why)
		fprintf(stream, "vprof-attach: its memory: %s\n", qemu->memory_why);
	if (qemu->kernel.image)
		fprintf(stream, "vprof-attach: it runs %s, build-id %s\n",
		        qemu->guest.release ? qemu->guest.release : "a kernel", qemu->guest.build_id);
	else
		fprintf(stream, "vprof-attach: its kernel: %s\n", qemu->guest.kernel_why);
}
