// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_SUPPORT_RUN_SUITE_H
#define VPROF_TEST_SUPPORT_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs a suite, as loud as CK_VERBOSITY says, and frees it; returns the exit status of the test. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);

	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);

	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
