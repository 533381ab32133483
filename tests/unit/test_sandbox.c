// SPDX-License-Identifier: BSD-2-Clause
/* The sandbox, entered by a child each time: what it may still do, and how it ends when it does something else. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/sandbox.h"
#include "run_suite.h"

#define OUTSIDE 10 /* exit status: the child is not in the sandbox */

static pid_t other; /* a process that is not the child */

/* Runs fn in a sandboxed child; returns its wait status, with its stderr in `text`. */
static int in_sandbox(int (*fn)(void), char *text, size_t bytes)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		_exit(sandbox_enter(NULL) ? fn() : OUTSIDE);
	}
	close(ends[1]);
	size_t n = 0;
	for (ssize_t got; n < bytes - 1 && (got = read(ends[0], text + n, bytes - 1 - n)) > 0;)
		n += (size_t)got;
	text[n] = '\0';
	close(ends[0]);
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

static int make_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int execute(void)
{
	return execl("/bin/true", "true", NULL);
}

static int write_file(void)
{
	return open("/dev/null", O_WRONLY);
}

static int create_file(void)
{
	return open("/tmp/vprof-test-sandbox", O_RDONLY | O_CREAT, 0600);
}

static int make_process(void)
{
	return fork();
}

static int signal_other(void)
{
	return kill(other, 0);
}

static int signal_other_thread(void)
{
	return (int)syscall(SYS_tgkill, other, other, 0);
}

static int make_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int turn_into_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static int count_other(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

	return (int)syscall(SYS_perf_event_open, &attr, other, -1, -1, 0);
}

static int other_ioctl(void)
{
	return ioctl(STDIN_FILENO, TIOCSTI, "x");
}

static const struct {
	int (*fn)(void);
	int call;
} forbidden[] = {{make_socket, SYS_socket},          {execute, SYS_execve},     {write_file, SYS_openat},
                 {create_file, SYS_openat},          {make_process, SYS_clone}, {signal_other, SYS_kill},
                 {signal_other_thread, SYS_tgkill},  {make_code, SYS_mmap},     {turn_into_code, SYS_mprotect},
                 {count_other, SYS_perf_event_open}, {other_ioctl, SYS_ioctl}};

START_TEST(test_forbidden)
{
	char text[256], expected[64];
	int status = in_sandbox(forbidden[_i].fn, text, sizeof(text));

	snprintf(expected, sizeof(expected), "system call %d is not allowed", forbidden[_i].call);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status 0x%x: %s", (unsigned)status, text);
	ck_assert_msg(strstr(text, expected), "%s", text);
}
END_TEST

static void *thread_calls(void *data)
{
	return data ? NULL : (void *)(intptr_t)socket(AF_INET, SOCK_STREAM, 0);
}

static int call_on_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, thread_calls, NULL) || pthread_join(thread, NULL);
}

static pthread_barrier_t entered;

static void *thread_waits(void *data)
{
	(void)data;
	pthread_barrier_wait(&entered);
	return (void *)(intptr_t)socket(AF_INET, SOCK_STREAM, 0);
}

/* A thread of before the sandbox is in it as well as one of afterwards. */
START_TEST(test_threads)
{
	char text[256];
	int status = in_sandbox(call_on_thread, text, sizeof(text));

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);

	pid_t child = fork();
	if (child == 0) {
		pthread_t thread;

		close(STDERR_FILENO);
		pthread_barrier_init(&entered, NULL, 2);
		pthread_create(&thread, NULL, thread_waits, NULL);
		if (!sandbox_enter(NULL))
			_exit(OUTSIDE);
		pthread_barrier_wait(&entered);
		pthread_join(thread, NULL);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status 0x%x", (unsigned)status);
}
END_TEST

static int compare_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 1);
}

/* As a session does: counters, rings, a timer, a file that is read, memory, a long list, a thread; and the end. */
static int allowed_calls(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};
	pthread_t thread;
	timer_t timer;
	char byte;
	int ring = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (ring < 0 || ftruncate(ring, 4096) != 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0) == MAP_FAILED)
		return 1;
	if (file < 0 || pread(file, &byte, 1, 0) != 1)
		return 2;
	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 && errno != EACCES)
		return 3;
	if (timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer) != 0 ||
	    timer_delete(timer) != 0)
		return 4;
	char *many = g_malloc0(64 << 20);
	qsort(many, 4096, 1, compare_bytes);
	g_free(many);
	if (prctl(PR_SET_NAME, "worker") != 0)
		return 6;
	return pthread_create(&thread, NULL, thread_calls, &byte) || pthread_join(thread, NULL) ? 5 : 0;
}

START_TEST(test_allowed)
{
	char text[256];
	int status = in_sandbox(allowed_calls, text, sizeof(text));

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x: %s", (unsigned)status, text);
}
END_TEST

int main(void)
{
	other = getpid();
	Suite *suite = suite_create("sandbox");
	TCase *tests = tcase_create("sandbox");
	tcase_add_loop_test(tests, test_forbidden, 0, G_N_ELEMENTS(forbidden));
	tcase_add_test(tests, test_threads);
	tcase_add_test(tests, test_allowed);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
