// SPDX-License-Identifier: BSD-2-Clause
#include "attach/look_pace.h"

#include <string.h>

#define PAUSE_MIN_US INT64_C(1000000)
#define PAUSE_MAX_US (300 * PAUSE_MIN_US)
#define SHARE 20 /* one part of the time is for searches */

static bool was_seen(const struct look_pace *pace, uint64_t mark)
{
	for (size_t i = 0; i < LOOK_PACE_SEEN; i++)
		if (pace->seen[i] == mark)
			return true;
	return false;
}

static bool has_new(const struct look_pace *pace, const uint64_t *marks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!was_seen(pace, marks[i]))
			return true;
	return false;
}

bool look_pace_due(const struct look_pace *pace, int64_t now_us, const uint64_t *marks, size_t n)
{
	const int64_t since_us = now_us - pace->ended_us;

	if (!pace->searched)
		return true;
	if (pace->goes_on)
		return since_us >= PAUSE_MIN_US;
	return since_us >= MIN(SHARE * pace->took_us, PAUSE_MAX_US) &&
	       since_us >= (has_new(pace, marks, n) ? PAUSE_MIN_US : pace->pause_us);
}

void look_pace_failed(struct look_pace *pace, int64_t now_us, int64_t took_us, const uint64_t *marks, size_t n,
                      bool goes_on)
{
	const bool went_on = pace->searched && pace->goes_on;

	if (!pace->searched || has_new(pace, marks, n))
		pace->pause_us = PAUSE_MIN_US;
	else if (!went_on)
		pace->pause_us = MIN(2 * pace->pause_us, PAUSE_MAX_US);
	for (size_t i = 0; i < n; i++)
		if (!was_seen(pace, marks[i]))
			pace->seen[pace->next++ % LOOK_PACE_SEEN] = marks[i];
	pace->took_us = took_us + (went_on ? pace->took_us : 0);
	pace->ended_us = now_us;
	pace->searched = true;
	pace->goes_on = goes_on;
}

void look_pace_news(struct look_pace *pace)
{
	memset(pace->seen, 0, sizeof(pace->seen));
}
