// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest's counters on the host's PMU: one perf event of the vCPU's thread for each, which counts in the guest only
 * and in the modes that the guest selected. Its overflow sends the signal that ends KVM_RUN. An event stays open while
 * its counter is stopped, since a guest's kernel stops and starts all counters in every interrupt.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "counter/counter.h"
#include "pmu/x86/host_priv.h"

static bool same(const struct pmu_counting *a, const struct pmu_counting *b)
{
	return a->event == b->event && a->raw == b->raw && a->user == b->user && a->kernel == b->kernel;
}

static bool event_of(const struct pmu_host *host, const struct pmu_counting *what, struct counter_event *event)
{
	if (what->event == PMU_EVENT_RAW) {
		/* The guest's select register and perf's raw config have these bits at the same places. */
		char name[16];
		snprintf(name, sizeof(name), "r%x", what->raw);
		if (!counter_event_parse(name, event, NULL))
			return false;
	} else {
		*event = host->events->event[what->event];
	}
	event->user = what->user;
	event->kernel = what->kernel;
	return true;
}

static bool route(int fd, int signal)
{
	return fcntl(fd, F_SETSIG, signal) == 0 && counter_perf_owner(fd) &&
	       fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

static bool open_event(struct pmu_host *host, unsigned counter, const struct pmu_counting *what, uint64_t left)
{
	struct pmu_hardware_counter *one = &host->hardware[counter];
	const struct counter_rate rate = {.period = left};
	struct counter_event event;
	struct perf_event_attr attr;

	if (!event_of(host, what, &event))
		return false;
	counter_event_attr(&event, &rate, &attr);
	one->fd = counter_perf_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (one->fd < 0)
		return false;
	one->what = *what;
	if (route(one->fd, host->signal))
		return true;
	pmu_hardware_close(host, counter);
	return false;
}

/* 0 on failure: then the counter stands still. */
static uint64_t read_event(const struct pmu_hardware_counter *one)
{
	uint64_t fields[3]; /* value, time enabled, time running: counter_event_attr's read_format */

	return read(one->fd, fields, sizeof(fields)) == (ssize_t)sizeof(fields) ? fields[0] : one->taken;
}

bool pmu_hardware_start(struct pmu_host *host, unsigned counter, const struct pmu_counting *what, uint64_t left)
{
	struct pmu_hardware_counter *one = &host->hardware[counter];

	if (one->fd >= 0 && !same(&one->what, what))
		pmu_hardware_close(host, counter);
	if (one->fd < 0 && !open_event(host, counter, what, left))
		return false;
	pmu_hardware_aim(host, counter, left);
	one->taken = read_event(one);
	return ioctl(one->fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

void pmu_hardware_stop(struct pmu_host *host, unsigned counter)
{
	ioctl(host->hardware[counter].fd, PERF_EVENT_IOC_DISABLE, 0);
}

uint64_t pmu_hardware_take(struct pmu_host *host, unsigned counter)
{
	struct pmu_hardware_counter *one = &host->hardware[counter];
	uint64_t now = read_event(one), counted = now - one->taken;

	one->taken = now;
	return counted;
}

void pmu_hardware_aim(struct pmu_host *host, unsigned counter, uint64_t left)
{
	ioctl(host->hardware[counter].fd, PERF_EVENT_IOC_PERIOD, &left);
}

void pmu_hardware_close(struct pmu_host *host, unsigned counter)
{
	struct pmu_hardware_counter *one = &host->hardware[counter];

	if (one->fd >= 0)
		close(one->fd);
	one->fd = -1;
}
