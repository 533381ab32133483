// SPDX-License-Identifier: BSD-2-Clause
#include "run/guest_clock.h"

#include <glib.h>

void guest_clock_add(struct guest_clock *clock, uint64_t asked_ns, uint64_t guest_ns, uint64_t answered_ns)
{
	/* The guest may say any number: differences wrap around, and are only ever added to its own times. */
	int64_t least_ns = (int64_t)(asked_ns - guest_ns), most_ns = (int64_t)(answered_ns - guest_ns);

	if (clock->known) {
		least_ns = MAX(least_ns, clock->least_ns);
		most_ns = MIN(most_ns, clock->most_ns);
	}
	/* The clocks have drifted apart: what was known before is too old. */
	if (least_ns > most_ns) {
		least_ns = (int64_t)(asked_ns - guest_ns);
		most_ns = (int64_t)(answered_ns - guest_ns);
	}
	*clock = (struct guest_clock){.known = true, .least_ns = least_ns, .most_ns = most_ns};
}

uint64_t guest_clock_to_host(const struct guest_clock *clock, uint64_t guest_ns)
{
	uint64_t width_ns = (uint64_t)clock->most_ns - (uint64_t)clock->least_ns;

	return clock->known ? guest_ns + (uint64_t)clock->least_ns + width_ns / 2 : 0;
}
