// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host_probe.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "kvm/host/host.h"
#include "pmu/host.h"

static json_t *capabilities(int kvm_fd)
{
	json_t *list = json_array();

	for (const struct host_capability *capability = host_capabilities; capability->name; capability++)
		json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:s}", "name", capability->name, "required",
		                                      capability->required, "present", host_has(kvm_fd, capability),
		                                      "purpose", capability->purpose));
	return list;
}

static json_t *kvm(void)
{
	g_autoptr(GError) error = NULL;
	int fd = host_open(&error);

	if (fd < 0)
		return json_pack("{s:b, s:s}", "usable", 0, "error", error->message);
	int vcpus_max = MIN(ioctl(fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS), (int)GUEST_VCPUS_MAX);
	json_t *object = json_pack("{s:b, s:i, s:i, s:o}", "usable", 1, "api-version", KVM_API_VERSION, "vcpus-max",
	                           vcpus_max, "capabilities", capabilities(fd));
	close(fd);
	return object;
}

static json_t *quirks(enum host_kind kind)
{
	json_t *list = json_array();
	const struct host_quirks *table = host_quirks_find(kind);

	for (size_t i = 0; table && table->sentences[i]; i++)
		json_array_append_new(list, json_string(table->sentences[i]));
	return list;
}

static json_t *pmu_kvm(void)
{
	int fd = host_open(NULL);
	const char *why = fd < 0 ? "KVM cannot be used" : host_pmu_unavailable(fd);

	if (fd >= 0)
		close(fd);
	return json_pack("{s:b, s:s*}", "usable", !why, "why", why);
}

/* What a guest can have of a PMU. */
static json_t *pmu(void)
{
	struct pmu_host_events events;
	json_t *hardware = json_array(), *all = json_array();

	pmu_host_probe(&events);
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		json_t *name = json_string(pmu_event_name((enum pmu_event)i));

		if (events.all >> i & 1)
			json_array_append(all, name);
		if (events.hardware >> i & 1)
			json_array_append(hardware, name);
		json_decref(name);
	}
	return json_pack("{s:o, s:{s:o, s:o}}", "kvm", pmu_kvm(), "emulated", "events", all, "by-hardware", hardware);
}

static json_t *perf_event_paranoid(void)
{
	g_autofree char *text = NULL;

	if (!g_file_get_contents("/proc/sys/kernel/perf_event_paranoid", &text, NULL, NULL))
		return json_null();
	return json_integer(g_ascii_strtoll(text, NULL, 10));
}

json_t *host_probe(void)
{
	enum host_kind kind = host_kind();

	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "host", host_kind_name(kind), "kvm", kvm(), "quirks",
	                 quirks(kind), "pmu", pmu(), "perf-event-paranoid", perf_event_paranoid());
}
