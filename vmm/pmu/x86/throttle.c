// SPDX-License-Identifier: BSD-2-Clause
#include "pmu/x86/throttle.h"

#include <glib.h>

#define LOOK_NS_MIN UINT64_C(20000)     /* an exit costs about as much */
#define LOOK_NS_FIRST UINT64_C(1000000) /* of a guest that does not say that it is nearly done */
#define LOOK_PART 4u

static uint64_t look_after(const struct pmu_throttle *throttle, uint64_t now_ns)
{
	return now_ns + MAX((now_ns - throttle->began_ns) / LOOK_PART, LOOK_NS_MIN);
}

void pmu_throttle_delivered(struct pmu_throttle *throttle, uint64_t now_ns)
{
	*throttle = (struct pmu_throttle){.handling = true, .began_ns = now_ns, .look_ns = now_ns + LOOK_NS_FIRST};
}

void pmu_throttle_nearly(struct pmu_throttle *throttle, uint64_t now_ns)
{
	if (throttle->handling)
		throttle->look_ns = MIN(throttle->look_ns, look_after(throttle, now_ns));
}

bool pmu_throttle_looks(const struct pmu_throttle *throttle, uint64_t now_ns)
{
	return throttle->handling && now_ns >= throttle->look_ns;
}

void pmu_throttle_found(struct pmu_throttle *throttle, uint64_t now_ns, bool handling)
{
	throttle->handling = handling;
	throttle->look_ns = look_after(throttle, now_ns);
	throttle->open_ns = now_ns + (now_ns - throttle->began_ns);
}

bool pmu_throttle_open(const struct pmu_throttle *throttle, uint64_t now_ns)
{
	return !throttle->handling && now_ns >= throttle->open_ns;
}

uint64_t pmu_throttle_in_ns(const struct pmu_throttle *throttle, uint64_t now_ns, bool waits)
{
	if (!throttle->handling && !waits)
		return UINT64_MAX;
	uint64_t at = throttle->handling ? throttle->look_ns : throttle->open_ns;
	return at > now_ns ? at - now_ns : 0;
}
