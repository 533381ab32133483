// SPDX-License-Identifier: BSD-2-Clause
#include "pmu/x86/host.h"

#include <cpuid.h>

#include "pmu/x86/host_priv.h"

#define CLOCK_EVENTS (1u << PMU_EVENT_CYCLES | 1u << PMU_EVENT_REF_CYCLES)
#define VENDOR_EBX_INTEL 0x756e6547u /* "Genu", of GenuineIntel */

const char *pmu_event_name(enum pmu_event event)
{
	static const char *const names[PMU_EVENTS] = {
		[PMU_EVENT_CYCLES] = "cycles",
		[PMU_EVENT_INSTRUCTIONS] = "instructions",
		[PMU_EVENT_REF_CYCLES] = "ref-cycles",
		[PMU_EVENT_LLC_REFERENCES] = "cache-references",
		[PMU_EVENT_LLC_MISSES] = "cache-misses",
		[PMU_EVENT_BRANCHES] = "branches",
		[PMU_EVENT_BRANCH_MISSES] = "branch-misses",
	};

	return names[event];
}

static bool processor_is_intel(void)
{
	unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

	return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == VENDOR_EBX_INTEL;
}

void pmu_host_probe(struct pmu_host_events *events)
{
	*events = (struct pmu_host_events){.all = CLOCK_EVENTS};
	for (unsigned i = 0; i < PMU_EVENTS; i++) {
		struct counter_event *event = &events->event[i];

		if (counter_event_parse(pmu_event_name((enum pmu_event)i), event, NULL) && event->backend->guest_only)
			events->hardware |= 1u << i;
	}
	events->all |= events->hardware;
	events->raw = events->hardware != 0 && processor_is_intel();
}

static struct pmu_host *host_of(struct pmu_source *source)
{
	return (struct pmu_host *)source;
}

static bool has_hardware(const struct pmu_host *host, const struct pmu_counting *what)
{
	return what->event == PMU_EVENT_RAW ? host->events->raw : (host->events->hardware >> what->event & 1) != 0;
}

static bool on_hardware(const struct pmu_host *host, unsigned counter)
{
	return (host->by_hardware >> counter & 1) != 0;
}

static bool start(struct pmu_source *source, unsigned counter, const struct pmu_counting *what, uint64_t left)
{
	struct pmu_host *host = host_of(source);

	host->by_hardware &= ~(1u << counter);
	if (!has_hardware(host, what))
		return what->event != PMU_EVENT_RAW && (CLOCK_EVENTS >> what->event & 1) != 0 &&
		       pmu_clock_start(&host->clock, counter, what, left);
	host->by_hardware |= 1u << counter;
	return pmu_hardware_start(host, counter, what, left);
}

static void stop(struct pmu_source *source, unsigned counter)
{
	struct pmu_host *host = host_of(source);

	if (on_hardware(host, counter))
		pmu_hardware_stop(host, counter);
	else
		pmu_clock_stop(&host->clock, counter);
}

static uint64_t take(struct pmu_source *source, unsigned counter)
{
	struct pmu_host *host = host_of(source);

	return on_hardware(host, counter) ? pmu_hardware_take(host, counter) : pmu_clock_take(&host->clock, counter);
}

static void aim(struct pmu_source *source, unsigned counter, uint64_t left)
{
	struct pmu_host *host = host_of(source);

	if (on_hardware(host, counter))
		pmu_hardware_aim(host, counter, left);
	else
		pmu_clock_aim(&host->clock, counter, left);
}

static const struct pmu_source_ops ops = {.start = start, .stop = stop, .take = take, .aim = aim};

void pmu_host_init(struct pmu_host *host, const struct pmu_host_events *events, uint64_t tsc_khz)
{
	*host = (struct pmu_host){.source.ops = &ops, .events = events};
	pmu_clock_init(&host->clock, tsc_khz);
	for (unsigned i = 0; i < PMU_COUNTERS; i++)
		host->hardware[i].fd = -1;
}

bool pmu_host_attach(struct pmu_host *host, int signal, GError **error)
{
	host->signal = signal;
	return pmu_clock_attach(&host->clock, signal, error);
}

void pmu_host_detach(struct pmu_host *host)
{
	for (unsigned i = 0; i < PMU_COUNTERS; i++)
		pmu_hardware_close(host, i);
	pmu_clock_detach(&host->clock);
}

void pmu_host_left(struct pmu_host *host, bool interrupted, bool user)
{
	pmu_clock_left(&host->clock, interrupted, user);
}

bool pmu_host_due(const struct pmu_host *host, bool interrupted)
{
	return (interrupted && host->by_hardware != 0) || pmu_clock_due(&host->clock);
}

void pmu_host_enter(struct pmu_host *host, uint64_t in_ns)
{
	pmu_clock_enter(&host->clock, in_ns);
}
