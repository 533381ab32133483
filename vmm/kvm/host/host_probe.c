// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host_probe.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "guest/guest.h"
#include "kvm/host/host.h"

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

static json_t *quirks(void)
{
	json_t *list = json_array();
	const char *const *sentences = host_quirk_sentences();

	for (size_t i = 0; sentences && sentences[i]; i++)
		json_array_append_new(list, json_string(sentences[i]));
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
	return json_pack("{s:o, s:o}", "kvm", pmu_kvm(), "emulated", host_probe_emulated_pmu());
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
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "host", host_kind_name(host_kind()), "kvm", kvm(), "quirks",
	                 quirks(), "pmu", pmu(), "perf-event-paranoid", perf_event_paranoid());
}
