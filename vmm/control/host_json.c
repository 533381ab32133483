// SPDX-License-Identifier: BSD-2-Clause
/* What this host can count, and what profiles of a guest can contain with a kernel, judged from its image alone. */
#include "control/host_json.h"

#include <string.h>

#include "control/method_priv.h"
#include "counter/host_pmu.h"
#include "counter/route.h"
#include "guest/os.h"
#include "guest/processor.h"
#include "lib/symbol/symtab.h"

/* ---- a kernel ---- */

/* {"name", "known", "how" or "why"}. */
static json_t *part_json(const char *name, bool known, const char *how, const char *why)
{
	return json_pack("{s:s, s:b, s:s*, s:s*}", "name", name, "known", known, "how", known ? how : NULL, "why",
	                 known ? NULL : why);
}

/* How many serial ports the driver takes, if the command line does not say (8250.nr_uarts). 0: there is none. */
static uint32_t serial_ports(const struct image *image, const struct symtab *symtab)
{
	const uint64_t address = symtab_address(symtab, "nr_uarts");
	uint32_t number = 0;
	size_t n = 0;
	const uint8_t *bytes = address != 0 ? image_at(image, address, &n) : NULL;

	if (bytes && n >= sizeof(number))
		memcpy(&number, bytes, sizeof(number));
	return GUINT32_FROM_LE(number);
}

/* What `run --exec` and the agent talk over, without modules (guest-agent/main.c chooses). */
static json_t *agent_json(const struct image *image, const struct symtab *symtab, const char *no_symbols)
{
	const bool has_console = symtab && symtab_address(symtab, "virtcons_probe") != 0 &&
	                         symtab_address(symtab, "virtio_mmio_probe") != 0;
	const bool has_registers = symtab && symtab_address(symtab, "ksys_ioperm") != 0;
	const bool has_pl011 = symtab && symtab_address(symtab, "pl011_probe") != 0;
	const uint32_t ports = symtab ? serial_ports(image, symtab) : 0;
	const char *how = has_console               ? "virtio_console"
	                  : ports >= 2 || has_pl011 ? "the driver of the second serial port"
	                  : has_registers           ? "the registers of the second serial port"
	                                            : NULL;
	g_autofree char *why = g_strdup_printf(
		"the kernel has drivers for %" G_GUINT32_FORMAT
		" serial ports and not for virtio_console; --exec requires two, or --modules with that driver",
		ports);

	return part_json("agent", how != NULL, how, no_symbols ? no_symbols : why);
}

static json_t *symbols_json(const struct symtab *symtab, const char *why)
{
	return part_json("symbols", symtab != NULL, symtab ? symtab_source(symtab) : NULL, why);
}

static json_t *unwinder_json(const struct guest_os *os, const struct image *image)
{
	const struct os_unwinding *unwinding = os->unwinding;

	if (!unwinding || !unwinding->has_tables[image_arch(image)])
		return part_json("call chains", true, arch_frames_name(image_arch(image)), NULL);
	g_autoptr(GError) error = NULL;
	struct unwind_tables *orc = unwinding->load(image, &error);
	g_autofree char *why = error ? g_strdup_printf("%s; by frame pointers, if it has them", error->message) : NULL;
	json_t *part = part_json("call chains", orc != NULL, unwinding->name, why);

	unwinding->free(orc);
	return part;
}

static json_t *parts_json(const struct guest_os *os, struct image *image)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = symtab_load_keeping(image, &error);
	const char *no_symbols = error ? error->message : NULL;
	struct os_kernel *layout = os->load(image);
	json_t *parts = json_pack("[o, o]", symbols_json(symtab, no_symbols), unwinder_json(os, image));

	for (const struct os_need *need = os->needs; need && need->name; need++) {
		const char *why = need->why(layout);

		json_array_append_new(parts, part_json(need->name, !why, need->how, why));
	}
	json_array_append_new(parts, agent_json(image, symtab, no_symbols));
	symtab_free(symtab);
	os_kernel_free(layout);
	return parts;
}

json_t *control_kernel(const struct guest_os *const *systems, const char *path, GError **error)
{
	struct image *image = image_open(path, error);
	json_t *kernel;

	if (!image)
		return NULL;
	kernel = json_pack("{s:s, s:b, s:s*, s:o}", "path", path, "linux", image_is_linux(image), "release",
	                   image_release(image), "parts", parts_json(os_of_image(systems, image), image));
	image_free(image);
	return kernel;
}

/* ---- the host ---- */

static json_t *event_json(const char *name)
{
	g_autoptr(GError) error = NULL;
	struct counter_event event;
	bool usable = counter_event_parse(name, &event, &error);

	return json_pack("{s:s, s:s*, s:b, s:s*, s:s*}", "name", name, "summary", counter_event_summary(name), "usable",
	                 usable, "backend", usable ? event.backend->name : NULL, "why", usable ? NULL : error->message);
}

json_t *control_host_events(void)
{
	json_t *list = json_array();

	for (const char *const *name = counter_event_names(); *name; name++)
		json_array_append_new(list, event_json(*name));
	return list;
}

static json_t *backend_json(const struct counter_backend *backend)
{
	json_t *events = json_array();

	for (const char *const *name = counter_event_names(); *name; name++) {
		struct counter_event event;

		if (counter_event_parse(*name, &event, NULL) && event.backend == backend)
			json_array_append_new(events, json_string(*name));
	}
	bool usable = json_array_size(events) > 0;

	return json_pack("{s:s, s:b, s:b, s:b, s:o, s:s*}", "name", backend->name, "usable", usable, "counts-time",
	                 backend->counts_time, "guest-only", backend->guest_only, "events", events, "why",
	                 usable ? NULL : "none of its events can be counted here");
}

json_t *control_host_backends(void)
{
	json_t *list = json_array();

	for (size_t i = 0; counter_backends[i]; i++)
		json_array_append_new(list, backend_json(counter_backends[i]));
	return list;
}

static json_t *pmu_counters_json(const struct host_pmu_counters *counters)
{
	return json_pack("{s:i, s:i}", "counters", (int)counters->counters, "width", (int)counters->width);
}

json_t *control_host_pmu(void)
{
	struct host_pmu pmu;

	if (!host_pmu_read(&pmu))
		return json_null();
	return json_pack("{s:s, s:i, s:o, s:o}", "name", pmu.name, "version", (int)pmu.version, "general",
	                 pmu_counters_json(&pmu.general), "fixed", pmu_counters_json(&pmu.fixed));
}

static json_t *route_json(struct guest *guest, const struct counter_route *route)
{
	g_autofree char *why = route->unavailable(guest);

	return json_pack("{s:s, s:s, s:s, s:b, s:s*}", "name", route->name, "summary", route->summary, "gives",
	                 route->gives(guest), "usable", !why, "why", why);
}

json_t *control_host_routes(struct guest *guest)
{
	json_t *list = guest->routes ? json_array() : NULL;

	for (size_t i = 0; guest->routes && guest->routes[i]; i++)
		json_array_append_new(list, route_json(guest, guest->routes[i]));
	return list;
}

static json_t *method_query_host(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	return json_pack("{s:o, s:o, s:o, s:o*, s:i}", "pmu", control_host_pmu(), "events", control_host_events(),
	                 "backends", control_host_backends(), "routes", control_host_routes(call->server->guest),
	                 "counters", (int)COUNTERS_MAX);
}

/* ---- the methods ---- */

static const struct method_member pmu_counters_members[] = {
	{"counters", "number of counters", MEMBER_INTEGER},
	{"width", "bits of each", MEMBER_INTEGER},
	{0},
};

static const struct method_member pmu_members[] = {
	{"name", "name of the PMU", MEMBER_STRING},
	{"version", "version of the architectural PMU", MEMBER_INTEGER},
	{"general", "general-purpose counters", MEMBER_OBJECT, .members = pmu_counters_members},
	{"fixed", "counters of one event each", MEMBER_OBJECT, .members = pmu_counters_members},
	{0},
};

static const struct method_member event_members[] = {
	{"name", "name of the event", MEMBER_STRING},
	{"summary", "what it counts", MEMBER_STRING, .optional = true},
	{"usable", "whether this host can count it", MEMBER_BOOLEAN},
	{"backend", "backend that counts the event", MEMBER_STRING, .optional = true},
	{"why", "why it cannot be counted", MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member backend_members[] = {
	{"name", "name of the backend", MEMBER_STRING},
	{"usable", "whether it can count any event here", MEMBER_BOOLEAN},
	{"counts-time", "whether its events are clocks", MEMBER_BOOLEAN},
	{"guest-only", "whether it counts only while the guest runs", MEMBER_BOOLEAN},
	{"events", "events that it counts on this host", MEMBER_STRINGS},
	{"why", "why it is not usable", MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member route_members[] = {
	{"name", "name of the route", MEMBER_STRING},
	{"summary", "how the route samples", MEMBER_STRING},
	{"gives", "what its samples of the guest tell on this host: tasks, chains of the kernel and of user space",
         MEMBER_STRING},
	{"usable", "whether it works with this guest", MEMBER_BOOLEAN},
	{"why", "why it does not work", MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member host_members[] = {
	{"pmu", "the host's PMU; null: none", MEMBER_OBJECT, .nullable = true, .members = pmu_members},
	{"events", "the events that have a name", MEMBER_OBJECTS, .members = event_members},
	{"backends", "the backends that count events", MEMBER_OBJECTS, .members = backend_members},
	{"routes", "ways to sample an attached guest", MEMBER_OBJECTS, .optional = true, .members = route_members},
	{"counters", "number of counters for clients", MEMBER_INTEGER},
	{0},
};

const struct control_method host_methods[] = {
	{
		.name = "query-host",
		.summary = "lists what can be counted on this host, and by what",
		.returns = host_members,
		.role = ROLE_OBSERVE,
		.run = method_query_host,
	},
	{0},
};
