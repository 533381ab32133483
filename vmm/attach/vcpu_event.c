// SPDX-License-Identifier: BSD-2-Clause
#include "attach/vcpu_event.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void vcpu_event_attr(const struct counter_event *event, const struct counter_route_config *config,
                     struct perf_event_attr *attr)
{
	counter_event_attr(event, &config->rate, attr);
	if (config->rate.frequency_hz) {
		attr->freq = 1;
		attr->sample_freq = config->rate.frequency_hz;
	}
	if (config->host)
		attr->exclude_host = 0;
}

int vcpu_event_open(struct perf_event_attr *attr, pid_t thread)
{
	return counter_perf_event_open(attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void vcpu_event_error(const char *what, unsigned vcpu, GError **error)
{
	g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE, "cannot count %s on vCPU %u: %s", what, vcpu,
	            g_strerror(errno));
}

/* TCG's vCPU threads run translated code, in which perf sees no guest. */
bool vcpu_event_impossible(struct guest *guest)
{
	return g_strcmp0(((const struct qemu_guest *)guest)->accelerator, "tcg") == 0;
}

char *vcpu_event_unavailable(struct qemu_guest *qemu)
{
	const struct counter_route_config config = {.rate.frequency_hz = 1};
	struct perf_event_attr attr;
	struct counter_event event;
	const char *why;

	if (vcpu_event_impossible(&qemu->guest))
		return g_strdup("the guest runs by TCG, which perf cannot look into");
	counter_event_default(&event, &why);
	vcpu_event_attr(&event, &config, &attr);
	int fd = vcpu_event_open(&attr, qemu->threads[0]);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (errno != EACCES && errno != EPERM)
		return g_strdup_printf("perf_event_open on QEMU's vCPU thread: %s", g_strerror(errno));
	g_autofree char *level = counter_perf_paranoid();

	return g_strdup_printf(
		"not permitted with kernel.perf_event_paranoid=%s; run vprof as root, with CAP_PERFMON and CAP_SYS_PTRACE (with Debian's kernels above 2: and CAP_SYS_ADMIN), or as QEMU's user with `sysctl kernel.perf_event_paranoid=1`",
		level);
}
