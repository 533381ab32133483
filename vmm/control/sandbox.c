// SPDX-License-Identifier: BSD-2-Clause
#include "control/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

G_DEFINE_QUARK(vprof_sandbox_error, sandbox_error)

#define IOCTL_TYPE_MASK 0xff00u /* include/uapi/asm-generic/ioctl.h */
#define IOCTL_TYPE(number) ((number)&IOCTL_TYPE_MASK)
#define HOT_PRIORITY 255 /* checked first: every entry into the guest goes through the filter */

/* Calls that are allowed with any arguments. */
static const int calls[] = {
	/* Guest: devices' threads and the vCPUs' clocks. */
	SCMP_SYS(read),      /* eventfds, signals, what is typed, KVM's statistics */
	SCMP_SYS(write),     /* console, eventfds, messages */
	SCMP_SYS(writev),    /* messages of the C library before it aborts */
	SCMP_SYS(pread64),   /* disk images, /proc/thread-self/schedstat, kernel images */
	SCMP_SYS(pwrite64),  /* disk images */
	SCMP_SYS(preadv),    /* disk images */
	SCMP_SYS(pwritev),   /* disk images */
	SCMP_SYS(fdatasync), /* disk images: the guest's flush */
	SCMP_SYS(close),
	SCMP_SYS(dup3), /* /dev/null in place of a terminal or a pipe, for an engine that outlives its owner */
	/* Sampling. */
	SCMP_SYS(rt_sigaction), /* how overflows arrive, set when a session starts */
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait), /* delivery by a blocked signal */
	SCMP_SYS(timer_create),    /* the timer backend */
	SCMP_SYS(timer_settime),
	SCMP_SYS(timer_getoverrun),
	SCMP_SYS(timer_delete),
	SCMP_SYS(memfd_create), /* rings */
	SCMP_SYS(ftruncate),
	SCMP_SYS(eventfd2),
	SCMP_SYS(fcntl), /* seals of rings, owner and signal of counters, non-blocking sockets */
	/* The control socket; there is no call that makes or connects another. */
	SCMP_SYS(accept4),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(getsockopt), /* SO_PEERCRED */
	SCMP_SYS(getsockname),
	SCMP_SYS(shutdown),
	SCMP_SYS(unlink), /* its file, at the end */
	/* Files that a session reads: the kernel image, limits in /proc and /sys. Opening them: below. */
	SCMP_SYS(newfstatat),
	SCMP_SYS(fstat),
	SCMP_SYS(lseek),
	SCMP_SYS(statx), /* these five: what libdw and libarchive may ask on the way to a file */
	SCMP_SYS(access),
	SCMP_SYS(readlink),
	SCMP_SYS(getdents64),
	SCMP_SYS(getcwd),
	/* Main loop, threads, locks, memory. */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(futex),
	SCMP_SYS(clock_gettime), /* of a thread's CPU time, which the vDSO does not know */
	SCMP_SYS(gettimeofday),  /* where the vDSO cannot read the host's clock source */
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity), /* malloc, for the number of its arenas */
	SCMP_SYS(set_robust_list),   /* a thread's first calls */
	SCMP_SYS(sigaltstack),       /* the same, with a sanitizer */
	SCMP_SYS(rseq),
	SCMP_SYS(gettid),
	SCMP_SYS(getpid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getrandom), /* seeds of hash tables */
	SCMP_SYS(sysinfo),   /* qsort(3): how much it may allocate for what is larger than 1 KiB */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Calls that are allowed if one argument, under a mask, has this value. */
static const struct {
	int call;
	unsigned argument;
	uint64_t mask, value;
} calls_with[] = {
	{SCMP_SYS(ioctl), 1, IOCTL_TYPE_MASK, IOCTL_TYPE(KVM_RUN)},
	{SCMP_SYS(ioctl), 1, IOCTL_TYPE_MASK, IOCTL_TYPE(PERF_EVENT_IOC_ENABLE)},
	{SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS},      /* the C library asks whether standard output is a terminal */
	{SCMP_SYS(perf_event_open), 1, UINT32_MAX, 0}, /* of the calling thread only */
	/* For reading only: neither O_WRONLY nor O_RDWR, and nothing is made. */
	{SCMP_SYS(openat), 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
	{SCMP_SYS(mmap), 2, PROT_EXEC, 0},
	{SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
	/* GLib's worker names itself when it first runs, which may be in here; and has SIGSYS blocked. */
	{SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME},
	{SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD}, /* the probe of a delivery; no new process */
};

static int allow_with(scmp_filter_ctx filter, int call, unsigned argument, uint64_t mask, uint64_t value)
{
	const struct scmp_arg_cmp compare = {argument, SCMP_CMP_MASKED_EQ, mask, value};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compare);
}

static int fill(scmp_filter_ctx filter)
{
	int failed = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(calls) && failed == 0; i++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	for (size_t i = 0; i < G_N_ELEMENTS(calls_with) && failed == 0; i++)
		failed = allow_with(filter, calls_with[i].call, calls_with[i].argument, calls_with[i].mask,
		                    calls_with[i].value);
	/* Signals to our own threads only: a vCPU is told to leave the guest, and abort(3). */
	if (failed == 0)
		failed = allow_with(filter, SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t)getpid());
	/* Its flags are behind a pointer, where no filter sees them; the C library then uses clone. */
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return failed;
}

static int load(scmp_filter_ctx filter)
{
	int failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (failed == 0)
		failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 1);
	if (failed == 0)
		failed = fill(filter);
	if (failed == 0)
		failed = seccomp_syscall_priority(filter, SCMP_SYS(ioctl), HOT_PRIORITY);
	return failed ? failed : seccomp_load(filter);
}

/* On the thread that made the call. Only what is safe in a signal handler; SA_RESETHAND makes the second one final. */
static void on_forbidden(int signal, siginfo_t *info, void *context)
{
	static const char before[] = "vprof-vmm: ended by its sandbox: system call ";
	static const char after[] = " is not allowed; see SANDBOX in vprof-vmm(8)\n";
	char digits[12], *at = digits + sizeof(digits);
	int number = info->si_syscall;

	(void)context;
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	const struct iovec text[] = {{(char *)before, sizeof(before) - 1},
	                             {at, (size_t)(digits + sizeof(digits) - at)},
	                             {(char *)after, sizeof(after) - 1}};
	ssize_t written = writev(STDERR_FILENO, text, G_N_ELEMENTS(text));
	(void)written; /* whether or not stderr has a reader */
	raise(signal);
}

bool sandbox_enter(GError **error)
{
	struct sigaction report = {.sa_sigaction = on_forbidden,
	                           .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER)};

	sigaction(SIGSYS, &report, NULL);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
	int failed = filter ? load(filter) : -ENOMEM;
	seccomp_release(filter);
	if (failed)
		g_set_error(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE,
		            "cannot enter the sandbox (seccomp): %s; --sandbox off runs the guest without one",
		            g_strerror(-failed));
	return failed == 0;
}
