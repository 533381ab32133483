// SPDX-License-Identifier: BSD-2-Clause
#include "ui/interrupt.h"

#include <glib.h>
#include <signal.h>

static volatile sig_atomic_t came;

static void on_signal(int signal)
{
	(void)signal;
	came = 1;
}

void interrupt_watch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
		sigaction(signals[i], &action, NULL);
}

bool interrupted(void)
{
	return came != 0;
}
