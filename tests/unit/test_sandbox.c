// SPDX-License-Identifier: BSD-2-Clause
/* The sandbox, entered by a child each time: what it may still do, and how it ends when it does something else. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/sandbox.h"
#include "run_suite.h"

#define OUTSIDE 10 /* exit status: the child is not in the sandbox */

static pid_t other;  /* a process that is not the child */
static int own_stat; /* a file that is open */

#define BASE 0u /* the calls of all threads of an engine */

static bool enter(unsigned role)
{
	return role == SANDBOX_KEEPER
	               ? sandbox_enter_alone(role)
	               : sandbox_enter(true, NULL) && (role == BASE || sandbox_narrow((enum sandbox_role)role, NULL));
}

/* Runs fn in a sandboxed child; returns its wait status, with its stderr in `text`. */
static int in_sandbox(unsigned role, int (*fn)(void), char *text, size_t bytes)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	fflush(NULL);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		_exit(enter(role) ? fn() : OUTSIDE);
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

static int have_other_signalled(void)
{
	return fcntl(STDIN_FILENO, F_SETOWN, other);
}

static int have_other_signalled_by_owner(void)
{
	const struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = other};

	return fcntl(STDIN_FILENO, F_SETOWN_EX, &owner);
}

#if defined(SYS_unlink)
static int remove_file(void)
{
	return unlink("/tmp/vprof-test-sandbox");
}
#endif

static int remove_file_at(void)
{
	return unlinkat(AT_FDCWD, "/tmp/vprof-test-sandbox", 0);
}

static int trace_other(void)
{
	return (int)ptrace(PTRACE_ATTACH, other, NULL, NULL);
}

static int read_other(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {&other, 1};

	return (int)process_vm_readv(other, &here, 1, &there, 1, 0);
}

static int make_vm(void)
{
	return ioctl(STDIN_FILENO, KVM_CREATE_VM, 0);
}

static int change_memory(void)
{
	return ioctl(STDIN_FILENO, KVM_SET_USER_MEMORY_REGION, 0);
}

static int connect_socket(void)
{
	return connect(STDIN_FILENO, NULL, 0);
}

/* ---- what is of other threads ---- */

static int run_vcpu(void)
{
	return ioctl(STDIN_FILENO, KVM_RUN, 0);
}

static int flush_disk(void)
{
	return fdatasync(STDIN_FILENO);
}

static int make_memory(void)
{
	return memfd_create("ring", 0);
}

static int accept_client(void)
{
	return accept4(STDIN_FILENO, NULL, NULL, 0);
}

static int change_vm(void)
{
	return ioctl(STDIN_FILENO, KVM_ENABLE_CAP, NULL);
}

static int count_own(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int start_thread(void)
{
	return (int)syscall(SYS_clone, CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, NULL, NULL, NULL, NULL);
}

static int own_timer(void)
{
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer);
}

static int other_filter(void)
{
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);
}

static int write_byte(void)
{
	return write(STDOUT_FILENO, "", 0) != 0;
}

static int signal_own_thread(void)
{
	return (int)syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1);
}

#define V SANDBOX_VCPU
#define D SANDBOX_DEVICE
#define C SANDBOX_CONTROL
#define K SANDBOX_KEEPER

static const struct {
	unsigned role;
	int (*fn)(void);
	int call;
} forbidden[] = {
	{BASE, make_socket, SYS_socket},
	{BASE, connect_socket, SYS_connect},
	{BASE, execute, SYS_execve},
	{BASE, make_process, SYS_clone},
	{BASE, signal_other, SYS_kill},
	{BASE, signal_other_thread, SYS_tgkill},
	{BASE, have_other_signalled, SYS_fcntl},
	{BASE, have_other_signalled_by_owner, SYS_fcntl},
	{BASE, make_code, SYS_mmap},
	{BASE, turn_into_code, SYS_mprotect},
	{BASE, count_other, SYS_perf_event_open},
	{BASE, other_ioctl, SYS_ioctl},
	{BASE, make_vm, SYS_ioctl},
	{BASE, change_memory, SYS_ioctl},
	{BASE, remove_file_at, SYS_unlinkat},
	{BASE, trace_other, SYS_ptrace},
	{BASE, read_other, SYS_process_vm_readv},
	{C, run_vcpu, SYS_ioctl},
	{C, flush_disk, SYS_fdatasync},
	{C, other_filter, SYS_seccomp},
	{V, make_memory, SYS_memfd_create},
	{V, accept_client, SYS_accept4},
	{V, flush_disk, SYS_fdatasync},
	{V, change_vm, SYS_ioctl},
	{V, start_thread, SYS_clone},
	{V, other_filter, SYS_seccomp},
	{D, run_vcpu, SYS_ioctl},
	{D, make_memory, SYS_memfd_create},
	{D, count_own, SYS_perf_event_open},
	{D, own_timer, SYS_timer_create},
	{D, start_thread, SYS_clone},
	{K, write_byte, SYS_write},
	{K, make_memory, SYS_memfd_create},
	{K, make_socket, SYS_socket},
	{K, signal_own_thread, SYS_tgkill},
	{K, make_process, SYS_clone},
#if defined(SYS_unlink)
	{BASE, remove_file, SYS_unlink},
#endif
};

START_TEST(test_forbidden)
{
	char text[256], expected[64];
	int status = in_sandbox(forbidden[_i].role, forbidden[_i].fn, text, sizeof(text));

	snprintf(expected, sizeof(expected), "system call %d is not allowed", forbidden[_i].call);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "status 0x%x: %s", (unsigned)status, text);
	/* The keeper has no handler, and nothing to say it with. */
	ck_assert_msg(forbidden[_i].role == K || strstr(text, expected), "%s", text);
}
END_TEST

/* Files are not there; a C library that looks for one goes on. */
static int look_for_files(void)
{
	if (open("/dev/null", O_RDONLY) != -1 || errno != EACCES)
		return 1;
	if (open("/dev/null", O_WRONLY) != -1 || errno != EACCES)
		return 2;
	if (open("/tmp/vprof-test-sandbox", O_RDWR | O_CREAT, 0600) != -1 || errno != EACCES)
		return 3;
	return access("/dev/null", R_OK) != -1 || errno != EACCES ? 4 : 0;
}

static int name_file(void)
{
	struct stat status;

	return stat("/dev/null", &status) != -1 || errno != EACCES || fstat(STDIN_FILENO, &status) != 0;
}

static const struct {
	unsigned role;
	int (*fn)(void);
} lookups[] = {{BASE, look_for_files}, {C, look_for_files}, {V, look_for_files}, {D, look_for_files},
               {K, look_for_files},    {BASE, name_file},   {V, name_file}};

START_TEST(test_files)
{
	char text[256];
	int status = in_sandbox(lookups[_i].role, lookups[_i].fn, text, sizeof(text));

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x: %s", (unsigned)status, text);
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
	int status = in_sandbox(BASE, call_on_thread, text, sizeof(text));

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);

	pid_t child = fork();
	if (child == 0) {
		pthread_t thread;

		close(STDERR_FILENO);
		pthread_barrier_init(&entered, NULL, 2);
		pthread_create(&thread, NULL, thread_waits, NULL);
		if (!sandbox_enter(true, NULL))
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

	if (ring < 0 || ftruncate(ring, 4096) != 0 || fcntl(ring, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0) == MAP_FAILED)
		return 1;
	if (pread(own_stat, &byte, 1, 0) != 1)
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
	int status = in_sandbox(_i ? C : BASE, allowed_calls, text, sizeof(text));

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x: %s", (unsigned)status, text);
}
END_TEST

int main(void)
{
	other = getpid();
	own_stat = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	Suite *suite = suite_create("sandbox");
	TCase *tests = tcase_create("sandbox");
	tcase_add_loop_test(tests, test_forbidden, 0, G_N_ELEMENTS(forbidden));
	tcase_add_test(tests, test_threads);
	tcase_add_loop_test(tests, test_allowed, 0, 2);
	tcase_add_loop_test(tests, test_files, 0, G_N_ELEMENTS(lookups));
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
