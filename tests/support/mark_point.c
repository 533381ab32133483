// SPDX-License-Identifier: BSD-2-Clause
/*
 * check(3) writes down the place of each assertion that holds, for the report on a test that crashes: most of the time
 * of a test with 100,000 of them. Linked with --wrap=_mark_point, a test writes down its first ones, and every
 * hundredth from then on: so many may have held behind the place in a report. Assertions that fail do not come here.
 */
#define ALL_UNTIL 1000u
#define THEN_EACH 100u

void __wrap__mark_point(const char *file, int line); // NOLINT: the linker's names
void __real__mark_point(const char *file, int line); // NOLINT

void __wrap__mark_point(const char *file, int line)
{
	static _Thread_local unsigned held;

	if (++held <= ALL_UNTIL || held % THEN_EACH == 0)
		__real__mark_point(file, line);
}
