// SPDX-License-Identifier: BSD-2-Clause
/* The overflow signal: its number, its way to the thread, and whose it is. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counter/counter_priv.h"

/* asm-generic/siginfo.h; glibc 2.36 has TRAP_PERF, but not the fields behind it. */
#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

int counter_signal(void)
{
	return SIGRTMIN + 5;
}

bool counter_signal_route(int perf_fd)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = (pid_t)syscall(SYS_gettid)};

	/* A real-time signal queues, so that two events that overflow together give two; and it carries si_fd. */
	return fcntl(perf_fd, F_SETOWN_EX, &owner) == 0 && fcntl(perf_fd, F_SETSIG, counter_signal()) == 0 &&
	       fcntl(perf_fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

static int event_by_fd(const struct counter_set *set, int fd)
{
	for (unsigned i = 0; i < set->n; i++)
		if (set->counters[i].fd == fd)
			return (int)i;
	return -1;
}

int counter_signal_event(const struct counter_set *set, const siginfo_t *info, unsigned *overflows)
{
	*overflows = 1;
	if (info->si_signo == SIGTRAP) {
		/* union __sifields._sigfault._perf: si_addr, then sig_data of the attr. */
		struct {
			void *addr;
			unsigned long data;
		} perf;

		memcpy(&perf, &info->si_addr, sizeof(perf));
		return perf.data < set->n ? (int)perf.data : -1;
	}
	if (info->si_code == SI_TIMER) {
		unsigned index = (unsigned)info->si_value.sival_int;

		*overflows = 1 + (unsigned)info->si_overrun;
		return index < set->n ? (int)index : -1;
	}
	/* fs/fcntl.c, send_sigio_to_task: POLL_IN or POLL_HUP; anything else was not sent by a perf event. */
	return info->si_code == POLL_IN || info->si_code == POLL_HUP ? event_by_fd(set, info->si_fd) : -1;
}

/* Set while a delivery with a handler is attached to this thread. initial-exec: no allocation on first use. */
static _Thread_local struct counter_set *attached __attribute__((tls_model("initial-exec")));

void counter_signal_attach(struct counter_set *set)
{
	attached = set;
	/* From here on the handler on this thread sees all of it. */
	atomic_signal_fence(memory_order_seq_cst);
}

/* A trap that no perf event sent gets what it would have got without us. */
static void trap_by_default(void)
{
	signal(SIGTRAP, SIG_DFL);
	raise(SIGTRAP);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	struct counter_set *set = attached;
	unsigned overflows;

	(void)context;
	if (signo == SIGTRAP && info->si_code != TRAP_PERF) {
		trap_by_default();
		return;
	}
	int event = set ? counter_signal_event(set, info, &overflows) : -1;
	if (event < 0)
		return;
	atomic_fetch_add_explicit(&set->pending[event], overflows, memory_order_relaxed);
	atomic_store_explicit(&set->signalled, true, memory_order_relaxed);
	if (set->port.immediate_exit)
		*set->port.immediate_exit = 1;
}

static void install_once(void)
{
	struct sigaction take = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(counter_signal(), &take, NULL);
	/* Never blocked, not even in its own handler: the kernel forces it, and a forced blocked signal kills. */
	take.sa_flags |= SA_NODEFER;
	sigaction(SIGTRAP, &take, NULL);
	/* What the kernel sends instead when the queue of real-time signals is full; by default it ends the process. */
	sigaction(SIGIO, &ignore, NULL);
}

void counter_signal_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install_once);
}
