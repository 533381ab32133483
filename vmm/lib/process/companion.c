// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/companion.h"

#include <glib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* All descriptors from `first` to before `end`. */
static void close_between(unsigned first, unsigned end)
{
	if (first < end)
		close_range(first, end - 1, 0);
}

void companion_let_go(const char *name, int one, int other)
{
	const unsigned low = (unsigned)MIN(one, other), high = (unsigned)MAX(one, other);
	sigset_t all;

	setsid();
	sigfillset(&all);
	sigdelset(&all, SIGSYS);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_between(0, low);
	close_between(low + 1, high);
	close_range(high + 1, ~0u, 0);
	prctl(PR_SET_NAME, name);
}
