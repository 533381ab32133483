// SPDX-License-Identifier: BSD-2-Clause
/*
 * From exec to the first KVM_RUN, and memory beside the guest's RAM: our VMM against another, in one run.
 *
 *   bench_startup [-n RUNS] VPROF_VMM ARGUMENT... -- OTHER ARGUMENT...
 *
 * A seccomp filter that the commands inherit hands their KVM_RUN ioctls to us (SECCOMP_RET_USER_NOTIF) and lets all
 * else pass at full speed, so that the moment of the first one is exact and neither program needs to cooperate. Runs
 * alternate. Memory is the resident set without mappings as large as the guest's RAM, RESIDENT_AFTER_MS after that
 * moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUNS_MAX 101
#define WAIT_MS 10000
#define RESIDENT_AFTER_MS 200
#define GUEST_RAM_BYTES_MIN (UINT64_C(100) << 20)

struct command {
	char **argv;
	double ms[RUNS_MAX];
	double resident_kib[RUNS_MAX];
};

/* Written by the child just before exec. */
struct start {
	struct timespec at;
	int listener; /* descriptor number in the child */
	int ready;
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_startup: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static double ms_between(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e3 + (double)(to->tv_nsec - from->tv_nsec) / 1e6;
}

static int filter_install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KVM_RUN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("PR_SET_NO_NEW_PRIVS");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void child_run(char **argv, volatile struct start *start, const sigset_t *unblocked)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int listener = filter_install();
	struct timespec now;

	if (listener < 0)
		fail("seccomp");
	if (fcntl(listener, F_SETFD, FD_CLOEXEC) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		fail("dup2");
	sigprocmask(SIG_SETMASK, unblocked, NULL);
	start->listener = listener;
	start->ready = 1;
	while (start->ready == 1) /* until the parent has a copy of the listener, which exec closes here */
		usleep(100);
	clock_gettime(CLOCK_MONOTONIC, &now);
	start->at = now;
	execvp(argv[0], argv);
	fail(argv[0]);
}

/* Waits for a KVM_RUN within timeout_ms and lets it go on. */
static int kvm_run_pass(int listener, int timeout_ms)
{
	struct seccomp_notif request;
	struct seccomp_notif_resp response;
	struct pollfd fd = {.fd = listener, .events = POLLIN};

	if (poll(&fd, 1, timeout_ms) <= 0 || !(fd.revents & POLLIN))
		return 0;
	memset(&request, 0, sizeof(request));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT;
	response = (struct seccomp_notif_resp){.id = request.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	return 1;
}

static double resident_kib_beside_ram(pid_t pid)
{
	char path[64], line[512];
	unsigned long from, to, kib;
	double sum = 0;
	int counts = 0;
	FILE *smaps;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	smaps = fopen(path, "re");
	if (!smaps)
		fail(path);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			counts = to - from < GUEST_RAM_BYTES_MIN;
		else if (counts && sscanf(line, "Rss: %lu", &kib) == 1)
			sum += (double)kib;
	}
	fclose(smaps);
	return sum;
}

static void measure(struct command *command, int run)
{
	struct start *start = mmap(NULL, sizeof(*start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	volatile struct start *shared = start;
	struct timespec now, first;
	sigset_t unblocked;
	int pidfd, listener;
	pid_t pid;

	if (start == MAP_FAILED)
		fail("mmap");
	sigprocmask(SIG_SETMASK, NULL, &unblocked);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0)
		child_run(command->argv, shared, &unblocked);
	while (shared->ready == 0)
		usleep(100);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	listener = (int)syscall(SYS_pidfd_getfd, pidfd, shared->listener, 0);
	if (listener < 0)
		fail("pidfd_getfd");
	shared->ready = 2;
	if (!kvm_run_pass(listener, WAIT_MS)) {
		fprintf(stderr, "bench_startup: %s made no KVM_RUN within %d ms\n", command->argv[0], WAIT_MS);
		kill(pid, SIGKILL);
		exit(EXIT_FAILURE);
	}
	clock_gettime(CLOCK_MONOTONIC, &first);
	command->ms[run] = ms_between(&start->at, &first);
	do {
		kvm_run_pass(listener, 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (ms_between(&first, &now) < RESIDENT_AFTER_MS);
	command->resident_kib[run] = resident_kib_beside_ram(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(listener);
	close(pidfd);
	munmap(start, sizeof(*start));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

int main(int argc, char **argv)
{
	struct command ours = {0}, other = {0};
	int runs = 11, i = 1;

	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		runs = atoi(argv[2]);
		i = 3;
	}
	ours.argv = argv + i;
	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	if (runs < 1 || runs > RUNS_MAX || i + 1 >= argc || !ours.argv[0]) {
		fprintf(stderr, "usage: bench_startup [-n RUNS (1..%d)] VPROF_VMM ARGUMENT... -- OTHER ARGUMENT...\n",
		        RUNS_MAX);
		return 2;
	}
	argv[i] = NULL;
	other.argv = argv + i + 1;
	for (int run = 0; run < runs; run++) {
		measure(&ours, run);
		measure(&other, run);
	}

	double ours_ms = median(ours.ms, runs), other_ms = median(other.ms, runs);
	double ours_kib = median(ours.resident_kib, runs), other_kib = median(other.resident_kib, runs);

	printf("%-24s %12s %12s %8s   (medians of %d)\n", "", "ours", "other", "ratio", runs);
	printf("%-24s %9.2f ms %9.2f ms %7.2fx\n", "exec to first KVM_RUN", ours_ms, other_ms, other_ms / ours_ms);
	printf("%-24s %8.0f KiB %8.0f KiB %7.2fx\n", "memory beside guest RAM", ours_kib, other_kib,
	       other_kib / ours_kib);
	return EXIT_SUCCESS;
}
