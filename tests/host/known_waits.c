// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits for some seconds in known ways, at the same time, and says for how long, by the guest's own clock:
 *
 * - two processes read one terminal. The kernel has the one that waits for input hold a mutex (n_tty_read), so that the
 *   other waits for that; a third one writes a line from time to time, which the first one takes before it becomes the
 *   second;
 * - a process sleeps in vfork(2), in a sleep that nothing interrupts, until its child ends;
 * - a thread waits for a futex, which the other one of its process holds while it sleeps.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LINE_NS 150000000L
#define CHILD_NS 100000000L
#define HELD_NS 80000000L
#define FREE_NS 20000000L

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* `n`: how many naps others took meanwhile, or where what was waited for is. */
static void say(const char *what, double seconds, unsigned long n)
{
	printf("waited %s %d %.3f %lx\n", what, getpid(), seconds, n);
	fflush(stdout);
}

static void read_lines(int terminal, double until)
{
	double first = now(), last = first;
	char line[16];

	while (last < until && read(terminal, line, sizeof(line)) > 0)
		last = now();
	say("terminal", last - first, 0);
}

static void write_lines(int terminal, double until)
{
	/* Both of its readers end. */
	while (now() < until + 4 * LINE_NS / 1e9) {
		nap(LINE_NS);
		if (write(terminal, "x\n", 2) != 2)
			perror("known_waits: write");
	}
}

static void wait_for_child(void)
{
	const pid_t child = vfork();

	if (child == 0) {
		nap(CHILD_NS);
		_exit(0);
	}
}

static void wait_for_children(double until)
{
	unsigned long n = 0;
	double waited = 0;

	for (; now() < until; n++) {
		const double begin = now();

		wait_for_child();
		waited += now() - begin;
		wait(NULL);
	}
	say("child", waited, n);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double futex_until;

static void *hold(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "holder");
	while (now() < futex_until) {
		pthread_mutex_lock(&lock);
		nap(HELD_NS);
		pthread_mutex_unlock(&lock);
		nap(FREE_NS);
	}
	return NULL;
}

static void wait_for_futex(double until)
{
	double waited = 0;
	pthread_t holder;

	futex_until = until;
	pthread_create(&holder, NULL, hold, NULL);
	while (now() < until) {
		const double begin = now();

		pthread_mutex_lock(&lock);
		waited += now() - begin;
		pthread_mutex_unlock(&lock);
		nap(FREE_NS / 4);
	}
	pthread_join(holder, NULL);
	say("futex", waited, (unsigned long)&lock);
}

/* A process of its own that does this to `file`. */
static void begin(const char *name, void (*run)(int file, double until), int file, double until)
{
	if (fork() != 0)
		return;
	prctl(PR_SET_NAME, name);
	run(file, until);
	exit(0);
}

static void run_children(int file, double until)
{
	(void)file;
	wait_for_children(until);
}

static void run_futex(int file, double until)
{
	(void)file;
	wait_for_futex(until);
}

int main(int argc, char **argv)
{
	const double until = now() + (argc > 1 ? atoi(argv[1]) : 1);
	const int writer = posix_openpt(O_RDWR | O_NOCTTY);

	if (writer < 0 || grantpt(writer) != 0 || unlockpt(writer) != 0) {
		perror("known_waits: a terminal");
		return 1;
	}
	const int reader = open(ptsname(writer), O_RDWR | O_NOCTTY);

	if (reader < 0) {
		perror("known_waits: the terminal");
		return 1;
	}
	begin("reader_a", read_lines, reader, until);
	begin("reader_b", read_lines, reader, until);
	begin("writer", write_lines, writer, until);
	begin("vforker", run_children, -1, until);
	begin("futex", run_futex, -1, until);
	while (wait(NULL) > 0)
		continue;
	puts("known_waits: done");
	return 0;
}
