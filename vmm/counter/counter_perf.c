// SPDX-License-Identifier: BSD-2-Clause
/* perf_event_open(2): hardware events and clocks on the calling thread. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vprof/ring.h>

#include "counter/counter_priv.h"
#include "counter/host_pmu.h"

static int perf_event_open_syscall(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

int (*counter_perf_event_open)(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
                               unsigned long flags) = perf_event_open_syscall;

static bool owner_syscall(int fd)
{
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};

	return fcntl(fd, F_SETOWN_EX, &owner) == 0;
}

bool (*counter_perf_owner)(int fd) = owner_syscall;

static const char *const setting_paths[COUNTER_SETTINGS] = {
	[COUNTER_PARANOID] = "/proc/sys/kernel/perf_event_paranoid",
	[COUNTER_SAMPLE_RATE_MAX] = "/proc/sys/kernel/perf_event_max_sample_rate",
};

/* Kept open once they were: an engine in its sandbox opens nothing. */
static int setting_file(enum counter_setting setting)
{
	static int files[COUNTER_SETTINGS]; /* and 1; 0: not opened yet */
	int file = g_atomic_int_get(&files[setting]) - 1;

	if (file >= 0)
		return file;
	file = open(setting_paths[setting], O_RDONLY | O_CLOEXEC);
	if (file >= 0 && !g_atomic_int_compare_and_exchange(&files[setting], 0, file + 1)) {
		close(file);
		file = g_atomic_int_get(&files[setting]) - 1;
	}
	return file;
}

void counter_settings_open(void)
{
	struct host_pmu pmu;

	host_pmu_read(&pmu);
	for (unsigned i = 0; i < COUNTER_SETTINGS; i++)
		setting_file((enum counter_setting)i);
}

char *counter_setting_read(enum counter_setting setting)
{
	char text[32];
	int file = setting_file(setting);
	ssize_t n = file < 0 ? -1 : pread(file, text, sizeof(text), 0);

	return n < 0 ? NULL : g_strchomp(g_strndup(text, (size_t)n));
}

char *counter_perf_paranoid(void)
{
	char *level = counter_setting_read(COUNTER_PARANOID);

	return level ? level : g_strdup("unknown");
}

static char *paranoid_reason(void)
{
	g_autofree char *level = counter_perf_paranoid();

	return g_strdup_printf(
		"not permitted with kernel.perf_event_paranoid=%s; run `sysctl kernel.perf_event_paranoid=1`, or give this program CAP_PERFMON (with Debian's kernels above 2: CAP_SYS_ADMIN)",
		level);
}

const char *counter_perf_reason(int errnum)
{
	g_autofree char *text = NULL;

	switch (errnum) {
	case ENOENT:
	case ENODEV:
		return "this host has no PMU that counts it; take task-clock";
	case EOPNOTSUPP:
		/* kernel/events/core.c: no PMU interrupt; exclude_host without support; a mediated vPMU owns it. */
		return "the host's PMU does not count it for guests: it has no overflow interrupt, or a virtual machine holds it as its own (kvm's enable_mediated_pmu); end that machine, or take task-clock or timer";
	case EACCES:
	case EPERM:
		text = paranoid_reason();
		return g_intern_string(text);
	case EBUSY:
		return "the PMU is in exclusive use by another program; end that, or take task-clock";
	case EMFILE:
	case ENFILE:
		return "too many open files; raise `ulimit -n`";
	case EINVAL:
		return "the kernel refuses it: the PMU has no such event, or the kernel is older than Linux 5.13";
	case ENOSYS:
		return "this kernel has no perf events; take timer";
	default:
		text = g_strdup_printf("perf_event_open: %s", g_strerror(errnum));
		return g_intern_string(text);
	}
}

static const char *perf_unavailable(const struct counter_event *event)
{
	const struct counter_rate rate = {.frequency_hz = 1};
	struct perf_event_attr attr;

	counter_event_attr(event, &rate, &attr);
	int fd = counter_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return counter_perf_reason(errno);
	close(fd);
	return NULL;
}

/*
 * Its ring is for what the kernel says of throttling alone. Samples in it have no fields, and none wakes a reader. The
 * kernel signals an overflow whether or not there is room for a record.
 */
static void ring_prepare(struct perf_event_attr *attr)
{
	attr->sample_type = 0;
	attr->sample_id_all = 0;
	attr->watermark = 1;
	attr->wakeup_watermark = UINT32_MAX;
}

static bool perf_open(struct counter *counter, const struct counter_delivery *delivery,
                      const struct perf_event_attr *attr, GError **error)
{
	struct perf_event_attr with_signal = *attr;

	if (delivery) {
		delivery->ops->prepare(&with_signal, counter->cookie);
		ring_prepare(&with_signal);
	}
	int fd = counter_perf_event_open(&with_signal, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;

		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE, "cannot count %s: %s", counter->event.name,
		            counter_perf_reason(errnum));
		return false;
	}
	if (delivery && !delivery->ops->route(fd, &with_signal)) {
		int errnum = errno;

		close(fd);
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_SYSTEM,
		            "cannot send overflows of %s to the vCPU thread by %s: %s; try another delivery",
		            counter->event.name, delivery->name, g_strerror(errnum));
		return false;
	}
	if (delivery)
		counter->ring = ring_reader_open_perf(fd, VPROF_RING_DATA_BYTES_MIN, NULL);
	counter->fd = fd;
	return true;
}

static void perf_close(struct counter *counter)
{
	ioctl(counter->fd, PERF_EVENT_IOC_DISABLE, 0);
	ring_reader_free(g_steal_pointer(&counter->ring));
	close(counter->fd);
	counter->fd = -1;
}

static void perf_enable(struct counter *counter)
{
	ioctl(counter->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void perf_pause(struct counter *counter)
{
	ioctl(counter->fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void perf_set_period(struct counter *counter, uint64_t period)
{
	ioctl(counter->fd, PERF_EVENT_IOC_PERIOD, &period);
}

static bool perf_read(struct counter *counter, struct counter_reading *reading)
{
	/* perf_event_attr.read_format: value, time enabled, time running. */
	uint64_t fields[3];

	if (read(counter->fd, fields, sizeof(fields)) != (ssize_t)sizeof(fields))
		return false;
	reading->value = fields[0];
	reading->enabled_ns = fields[1];
	reading->running_ns = fields[2];
	return true;
}

static const struct counter_backend_ops perf_ops = {
	.open = perf_open,
	.close = perf_close,
	.enable = perf_enable,
	.pause = perf_pause,
	.resume = perf_enable,
	.set_period = perf_set_period,
	.read = perf_read,
};

const struct counter_backend counter_backend_hardware = {
	.name = "perf-hardware",
	.guest_only = true,
	.unavailable = perf_unavailable,
	.ops = &perf_ops,
};

const struct counter_backend counter_backend_clock = {
	.name = "perf-clock",
	.counts_time = true,
	.unavailable = perf_unavailable,
	.ops = &perf_ops,
};
