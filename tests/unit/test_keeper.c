// SPDX-License-Identifier: BSD-2-Clause
/* The process that keeps an engine's rights: what it does for the engine, and for what has taken the engine over. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vprof/recording.h>

#include "control/keeper.h"
#include "lib/process/privilege.h"
#include "run_suite.h"

#define WAIT_US 10000
#define WAITS 2000
#define HOST_REFUSES 77
#define OWN_ID 0x76000001u /* that an engine of root would take */

static char *folder, *path;

static void socket_make(void)
{
	ck_assert_int_eq(mknod(path, S_IFSOCK | 0600, 0), 0);
}

static void setup(void)
{
	folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	path = g_build_filename(folder, "a.sock", NULL);
	socket_make();
}

static void teardown(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
	g_free(path);
	g_free(folder);
}

static bool exists(void)
{
	return access(path, F_OK) == 0;
}

static bool keep_file(void)
{
	struct stat status;

	ck_assert_int_eq(stat(path, &status), 0);
	return keeper_socket(path, status.st_dev, status.st_ino);
}

START_TEST(the_file_is_removed_at_the_end)
{
	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	ck_assert(keep_file());
	ck_assert(exists());
	keeper_end();
	ck_assert(!exists());
	ck_assert(!keeper_runs());
}
END_TEST

START_TEST(the_file_of_an_engine_that_is_killed_is_removed)
{
	int status;
	pid_t engine = fork();

	if (engine == 0) {
		if (keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID) && keep_file())
			raise(SIGKILL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(engine, &status, 0), engine);
	ck_assert(WIFSIGNALED(status));
	for (unsigned i = 0; i < WAITS && exists(); i++)
		g_usleep(WAIT_US);
	ck_assert(!exists());
}
END_TEST

START_TEST(another_file_stays)
{
	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	ck_assert(keep_file());
	/* An engine that took over the path; the old inode is held, so that the new one differs. */
	g_autofree char *moved = g_strconcat(path, ".old", NULL);

	ck_assert_int_eq(rename(path, moved), 0);
	socket_make();
	keeper_end();
	ck_assert(exists());
	ck_assert_int_eq(unlink(moved), 0);
}
END_TEST

/* An engine that has no socket's file, and was taken over, may know of one that is worth removing. */
START_TEST(a_file_that_is_no_socket_stays)
{
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(g_file_set_contents(path, "", 0, NULL));
	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	ck_assert(keep_file());
	keeper_end();
	ck_assert(exists());
}
END_TEST

START_TEST(nothing_is_named_once_it_is_settled)
{
	ck_assert(keeper_start(KEEPER_OF_ATTACH, OWN_ID));
	ck_assert(keeper_settle());
	ck_assert(!keep_file());
	ck_assert(!keeper_target(getppid()));
	ck_assert_int_eq(errno, EPERM);
	keeper_end();
	ck_assert(exists());
	ck_assert(!keeper_settle());
}
END_TEST

START_TEST(only_the_first_file_counts)
{
	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	ck_assert(keeper_socket("/nowhere", 0, 0));
	ck_assert(!keep_file());
	keeper_end();
	ck_assert(exists());
}
END_TEST

START_TEST(without_a_keeper_all_is_refused)
{
	struct perf_event_attr attr = {.size = VPROF_ATTR_BYTES};

	ck_assert(!keep_file());
	ck_assert_int_eq(keeper_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), -1);
	ck_assert_int_eq(errno, EPIPE);
	keeper_end();
	ck_assert(exists());
}
END_TEST

static struct perf_event_attr clock_attr(void)
{
	return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
	                                .size = VPROF_ATTR_BYTES,
	                                .config = PERF_COUNT_SW_TASK_CLOCK,
	                                .sample_type = VPROF_SAMPLE_TYPE};
}

/* The event of the thread that asks: it counts that thread's time. */
static void *count(void *data)
{
	struct perf_event_attr attr = clock_attr();
	uint64_t *ns = data;
	int fd = keeper_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	for (volatile unsigned i = 0; fd >= 0 && i < 1000000; i++)
		;
	if (fd < 0 || read(fd, ns, sizeof(*ns)) != (ssize_t)sizeof(*ns))
		*ns = 0;
	if (fd >= 0)
		close(fd);
	return NULL;
}

START_TEST(events_of_own_threads_are_opened)
{
	pthread_t thread;
	uint64_t ns = 0;

	if (geteuid() != 0)
		return; /* what another user may count is not ours to say */
	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	ck_assert_int_eq(pthread_create(&thread, NULL, count, &ns), 0);
	pthread_join(thread, NULL);
	keeper_end();
	ck_assert_uint_gt(ns, 0);
}
END_TEST

static const struct {
	int cpu, group;
	unsigned long flags;
} others[] = {{0, -1, PERF_FLAG_FD_CLOEXEC}, {-1, 0, PERF_FLAG_FD_CLOEXEC}, {-1, -1, PERF_FLAG_PID_CGROUP}};

START_TEST(events_of_others_are_not)
{
	struct perf_event_attr attr = clock_attr();

	ck_assert(keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID));
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		ck_assert_int_eq(keeper_event_open(&attr, 0, others[i].cpu, others[i].group, others[i].flags), -1);
		ck_assert_int_eq(errno, EINVAL);
	}
	ck_assert_int_eq(keeper_event_open(&attr, getppid(), -1, -1, PERF_FLAG_FD_CLOEXEC), -1);
	ck_assert_int_eq(errno, geteuid() == 0 ? ESRCH : EPERM);
	keeper_end();
}
END_TEST

/* The thread that asks is signalled, whatever user it has become; a file without an owner is none of a process's. */
START_TEST(signals_go_to_own_threads)
{
	int ends[2], status;
	pid_t engine = fork();

	if (engine == 0) {
		sigset_t set;
		const struct timespec patience = {.tv_sec = 10};

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (!keeper_start(geteuid() == 0 ? KEEPER_OF_VMM : KEEPER_OF_USER, OWN_ID) || !keeper_ready() ||
		    pipe(ends) != 0 || (geteuid() == 0 && setresuid(OWN_ID, OWN_ID, OWN_ID) != 0))
			_exit(1);
		if (!keeper_owner(ends[0]) || fcntl(ends[0], F_SETSIG, SIGUSR1) != 0 ||
		    fcntl(ends[0], F_SETFL, O_ASYNC) != 0)
			_exit(2);
		struct f_owner_ex owner = {0};

		if (fcntl(ends[0], F_GETOWN_EX, &owner) != 0 || owner.type != F_OWNER_TID || owner.pid != getpid())
			_exit(3);
		if (write(ends[1], "x", 1) != 1 || sigtimedwait(&set, NULL, &patience) != SIGUSR1)
			_exit(4);
		_exit(keeper_owner(-1) || keeper_owner(1000) ? 5 : 0);
	}
	ck_assert_int_eq(waitpid(engine, &status, 0), engine);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* In a user namespace there is no id but the own; the keeper, which is outside, knows the others. */
START_TEST(users_are_known_by_their_ids_outside)
{
	const int root = open("/", O_PATH | O_CLOEXEC);
	const uid_t us = geteuid();
	const pid_t pid = getpid();
	int ends[2], status;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* its peers are this process */
	pid_t engine = fork();

	if (engine == 0) {
		const uid_t user = us == 0 ? OWN_ID : us;

		if (us == 0 && (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0 ||
		                prctl(PR_SET_DUMPABLE, 1) != 0))
			_exit(1);
		if (!keeper_start(KEEPER_OF_USER, user))
			_exit(2);
		if (!privilege_user_namespace(PRIVILEGE_ROOT_EMPTY))
			_exit(geteuid() == user ? HOST_REFUSES : 3);
		struct stat seen;
		const struct ucred peer = keeper_identify(ends[0]), file = keeper_identify(root),
				   none = keeper_identify(-1);

		if (geteuid() != user || fstat(root, &seen) != 0 || seen.st_uid == 0)
			_exit(4);
		if (peer.uid != us || peer.pid != pid || file.uid != 0 || file.pid != 0 || none.uid != (uid_t)-1)
			_exit(5);
		keeper_end();
		_exit(privilege_root_empty() && access("/proc", F_OK) != 0 ? 0 : 6);
	}
	ck_assert_int_eq(waitpid(engine, &status, 0), engine);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == HOST_REFUSES)
		fprintf(stderr, "this host has no user namespaces for users\n");
	else
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	close(ends[0]);
	close(ends[1]);
	close(root);
}
END_TEST

static struct keeper_request event_request(struct perf_event_attr attr)
{
	struct keeper_request request = {.kind = KEEPER_EVENT, .thread = 1};

	memcpy(request.attr, &attr, MIN(sizeof(attr), sizeof(request.attr)));
	return request;
}

#define REFUSED(member, value)                                                               \
	do {                                                                                 \
		struct perf_event_attr attr = clock_attr();                                  \
		attr.member = value;                                                         \
		struct keeper_request wrong = event_request(attr);                           \
		ck_assert_int_eq(keeper_check(&wrong, KEEPER_OF_VMM, false, false), EINVAL); \
	} while (0)

START_TEST(requests_are_checked)
{
	struct keeper_request request = event_request(clock_attr());

	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, false, false), 0);
	request.thread = 0;
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, false, false), EINVAL);
	REFUSED(type, PERF_TYPE_TRACEPOINT);
	REFUSED(type, PERF_TYPE_BREAKPOINT);
	REFUSED(type, 6); /* a kprobe, on many hosts */
	REFUSED(type, UINT32_MAX);
	REFUSED(size, VPROF_ATTR_BYTES - 8);
	REFUSED(sample_type, PERF_SAMPLE_CALLCHAIN);
	REFUSED(sample_type, PERF_SAMPLE_REGS_INTR);
	REFUSED(inherit, 1);
	REFUSED(ksymbol, 1);
	REFUSED(bpf_event, 1);

	request = (struct keeper_request){.kind = KEEPER_OWNER, .thread = 1};
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, true, false), 0);
	request.thread = 0;
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, true, false), EINVAL);
	request = (struct keeper_request){.kind = KEEPER_SOCKET};
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, false, false), 0);
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, true, false), EPERM);
	memset(request.path, 'x', sizeof(request.path));
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, false, false), EINVAL);
	request.kind = KEEPER_IDENTIFY;
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_USER, true, true), 0);
	request.kind = 77;
	ck_assert_int_eq(keeper_check(&request, KEEPER_OF_VMM, false, false), EINVAL);
}
END_TEST

/* ---- of an engine that attaches ---- */

static int check_attach(const struct keeper_request *request, bool has_target)
{
	return keeper_check(request, KEEPER_OF_ATTACH, false, has_target);
}

START_TEST(requests_of_attach_are_checked)
{
	struct perf_event_attr attr = clock_attr();

	attr.size = sizeof(attr);
	attr.sample_type |= PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN;
	struct keeper_request event = event_request(attr);

	ck_assert_int_eq(check_attach(&event, false), EPERM);
	ck_assert_int_eq(check_attach(&event, true), 0);
	attr.sigtrap = 1;
	event = event_request(attr);
	ck_assert_int_eq(check_attach(&event, true), EINVAL);
	struct keeper_request target = {.kind = KEEPER_TARGET, .thread = 1};

	ck_assert_int_eq(check_attach(&target, false), 0);
	ck_assert_int_eq(check_attach(&target, true), EPERM);
	ck_assert_int_eq(keeper_check(&target, KEEPER_OF_VMM, false, false), EPERM);
	ck_assert_int_eq(keeper_check(&target, KEEPER_OF_USER, false, false), EPERM);
	target.kind = KEEPER_OWNER;
	ck_assert_int_eq(check_attach(&target, true), EPERM);
}
END_TEST

/* A process that waits until it is told to end; returns its pid. */
static pid_t wait_for_end(int *end)
{
	int ends[2];
	char byte;

	ck_assert_int_eq(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) < 0);
	}
	close(ends[0]);
	*end = ends[1];
	return child;
}

/* Of one process, until it ends, and of our own; not of a third. */
START_TEST(events_of_one_other_process_are_opened)
{
	struct perf_event_attr attr = clock_attr();
	int end;

	if (geteuid() != 0)
		return;
	attr.size = sizeof(attr);
	ck_assert(keeper_start(KEEPER_OF_ATTACH, OWN_ID));
	pid_t other = wait_for_end(&end);

	ck_assert_int_eq(keeper_event_open(&attr, other, -1, -1, PERF_FLAG_FD_CLOEXEC), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert(keeper_target(other));
	ck_assert(!keeper_target(getpid()));
	int fd = keeper_event_open(&attr, other, -1, -1, PERF_FLAG_FD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = keeper_event_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(keeper_event_open(&attr, getppid(), -1, -1, PERF_FLAG_FD_CLOEXEC), -1);
	ck_assert_int_eq(errno, ESRCH);
	ck_assert(!keeper_owner(end));
	close(end);
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
	ck_assert_int_eq(keeper_event_open(&attr, other, -1, -1, PERF_FLAG_FD_CLOEXEC), -1);
	keeper_end();
}
END_TEST

/* Of a process that is another user's, the answer is that it may not be counted. */
START_TEST(events_of_another_users_process_are_not_allowed)
{
	struct perf_event_attr attr = clock_attr();
	int status;
	pid_t engine = fork();

	attr.size = sizeof(attr);
	if (engine == 0) {
		if (geteuid() == 0 &&
		    (setresgid(OWN_ID, OWN_ID, OWN_ID) != 0 || setresuid(OWN_ID, OWN_ID, OWN_ID) != 0))
			_exit(1);
		if (!keeper_start(KEEPER_OF_ATTACH, OWN_ID) || !keeper_target(1))
			_exit(2);
		if (keeper_event_open(&attr, 1, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0 ||
		    (errno != EACCES && errno != EPERM))
			_exit(3);
		_exit(keeper_event_open(&attr, getppid(), -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0 || errno != ESRCH ? 4 : 0);
	}
	ck_assert_int_eq(waitpid(engine, &status, 0), engine);
	ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("keeper");
	TCase *tests = tcase_create("keeper");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, the_file_is_removed_at_the_end);
	tcase_add_test(tests, the_file_of_an_engine_that_is_killed_is_removed);
	tcase_add_test(tests, another_file_stays);
	tcase_add_test(tests, a_file_that_is_no_socket_stays);
	tcase_add_test(tests, nothing_is_named_once_it_is_settled);
	tcase_add_test(tests, only_the_first_file_counts);
	tcase_add_test(tests, without_a_keeper_all_is_refused);
	tcase_add_test(tests, events_of_own_threads_are_opened);
	tcase_add_test(tests, events_of_others_are_not);
	tcase_add_test(tests, signals_go_to_own_threads);
	tcase_add_test(tests, users_are_known_by_their_ids_outside);
	tcase_add_test(tests, requests_are_checked);
	tcase_add_test(tests, requests_of_attach_are_checked);
	tcase_add_test(tests, events_of_one_other_process_are_opened);
	tcase_add_test(tests, events_of_another_users_process_are_not_allowed);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
