// SPDX-License-Identifier: BSD-2-Clause
/* The overflow signal: its number, its way to the thread, and its set. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
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
	/* A real-time signal queues, so that two events that overflow together give two; and it carries si_fd. */
	return counter_perf_owner(perf_fd) && fcntl(perf_fd, F_SETSIG, counter_signal()) == 0 &&
	       fcntl(perf_fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

/* The sets of this thread, the newest first. initial-exec: no allocation on first use. */
static _Thread_local struct counter_set *attached __attribute__((tls_model("initial-exec")));

static unsigned free_tag(void)
{
	unsigned tag = 0;

	for (const struct counter_set *set = attached; set; set = set->next)
		if (set->tag >= tag)
			tag = set->tag + 1;
	return tag;
}

void counter_signal_attach(struct counter_set *set)
{
	set->tag = free_tag();
	set->next = attached;
	/* The handler on this thread sees all of the set once it sees the set. */
	atomic_signal_fence(memory_order_seq_cst);
	attached = set;
	atomic_signal_fence(memory_order_seq_cst);
}

void counter_signal_detach(struct counter_set *set)
{
	struct counter_set **at = &attached;

	while (*at && *at != set)
		at = &(*at)->next;
	if (*at)
		*at = set->next;
	atomic_signal_fence(memory_order_seq_cst);
}

bool counter_signal_pending(void)
{
	for (const struct counter_set *set = attached; set; set = set->next)
		if (atomic_load_explicit(&set->signalled, memory_order_relaxed))
			return true;
	return false;
}

bool counter_signal_shared(const struct counter_set *set)
{
	for (const struct counter_set *other = attached; other; other = other->next)
		if (other != set && other->delivery == set->delivery)
			return true;
	return false;
}

static void note(struct counter_set *set, unsigned event, unsigned overflows)
{
	atomic_fetch_add_explicit(&set->pending[event], overflows, memory_order_relaxed);
	atomic_store_explicit(&set->signalled, true, memory_order_relaxed);
}

static bool note_cookie(uint64_t cookie, unsigned overflows)
{
	for (struct counter_set *set = attached; set; set = set->next) {
		if (cookie < COUNTER_COOKIE(set->tag, 0) || cookie >= COUNTER_COOKIE(set->tag, set->n))
			continue;
		note(set, (unsigned)(cookie - COUNTER_COOKIE(set->tag, 0)), overflows);
		return true;
	}
	return false;
}

static bool note_fd(int fd)
{
	for (struct counter_set *set = attached; set; set = set->next) {
		for (unsigned i = 0; i < set->n; i++) {
			if (set->counters[i].fd != fd)
				continue;
			note(set, i, 1);
			return true;
		}
	}
	return false;
}

/* False for a signal that is not ours: it came late, for an event that is closed, or from another process. */
static bool note_signal(const siginfo_t *info)
{
	if (info->si_signo == SIGTRAP) {
		/* union __sifields._sigfault._perf: si_addr, then sig_data of the attr. */
		struct {
			void *addr;
			unsigned long data;
		} perf;

		memcpy(&perf, &info->si_addr, sizeof(perf));
		return note_cookie(perf.data, 1);
	}
	if (info->si_code == SI_TIMER)
		return note_cookie((unsigned)info->si_value.sival_int, 1 + (unsigned)info->si_overrun);
	/* fs/fcntl.c, send_sigio_to_task; anything else was not sent by a perf event. */
	return (info->si_code == POLL_IN || info->si_code == POLL_HUP) && note_fd(info->si_fd);
}

static _Thread_local _Atomic uint64_t ignored __attribute__((tls_model("initial-exec")));

void counter_signal_note(const siginfo_t *info)
{
	if (!note_signal(info))
		atomic_fetch_add_explicit(&ignored, 1, memory_order_relaxed);
}

uint64_t counter_signal_ignored(void)
{
	return atomic_load_explicit(&ignored, memory_order_relaxed);
}

bool counter_signal_take(struct counter_set *set, unsigned taken[COUNTER_EVENTS_MAX])
{
	/* Before pending[] is taken: a handler that runs in between sets both again. */
	if (!atomic_exchange_explicit(&set->signalled, false, memory_order_relaxed))
		return false;
	for (size_t i = 0; i < set->n; i++)
		taken[i] += atomic_exchange_explicit(&set->pending[i], 0, memory_order_relaxed);
	return true;
}

/* A trap that no perf event sent gets what it would have got without us. */
static void trap_by_default(void)
{
	signal(SIGTRAP, SIG_DFL);
	raise(SIGTRAP);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (signo == SIGTRAP && info->si_code != TRAP_PERF) {
		trap_by_default();
		return;
	}
	counter_signal_note(info);
	/* All sets of a thread have the port of its vCPU. */
	if (counter_signal_pending() && attached->port.immediate_exit)
		*attached->port.immediate_exit = 1;
}

/*
 * In Linux before 5.19, an overflow kills a thread that has blocked SIGTRAP, even by running its handler; since then,
 * the signal waits (kernel/signal.c, send_sig_perf). There it is blocked in its handler: handlers that interrupt each
 * other fill the stack of the thread on a host where overflows come faster than they return.
 */
static bool sigtrap_waits(void)
{
	struct utsname host;
	unsigned major, minor;

	return uname(&host) == 0 && sscanf(host.release, "%u.%u.", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 19));
}

static void install_once(void)
{
	struct sigaction take = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(counter_signal(), &take, NULL);
	if (!sigtrap_waits())
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
