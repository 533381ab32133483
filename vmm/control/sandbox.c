// SPDX-License-Identifier: BSD-2-Clause
#include "control/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

G_DEFINE_QUARK(vprof_sandbox_error, sandbox_error)

#define READ_ONLY (O_ACCMODE | O_CREAT | O_TRUNC) /* the flags that open(2) then does not have */
#define HOT_PRIORITY 255 /* checked first: every entry into the guest goes through the filter */

/* Roles, shorter. */
#define C SANDBOX_CONTROL
#define V SANDBOX_VCPU
#define D SANDBOX_DEVICE
#define K SANDBOX_KEEPER
#define A SANDBOX_ATTACH
#define L SANDBOX_ASKER
#define ENGINE (C | V | D)

/* Calls that are allowed with any arguments, beside sandbox_processor_calls. */
static const struct sandbox_call calls[] = {
	/* Guest: devices' threads and the vCPUs' clocks. */
	{SCMP_SYS(read), ENGINE},    /* eventfds, signals, what is typed, counters */
	{SCMP_SYS(write), ENGINE},   /* console, eventfds, messages */
	{SCMP_SYS(writev), ENGINE},  /* messages of the C library before it aborts */
	{SCMP_SYS(pread64), ENGINE}, /* disks, /proc/thread-self/schedstat, KVM's statistics, kernel images */
	{SCMP_SYS(pwrite64), C | D}, /* disks; sealed memory for vprof-parse */
	{SCMP_SYS(preadv), D},       /* disks */
	{SCMP_SYS(pwritev), D},      /* disks */
	{SCMP_SYS(fdatasync), D},    /* disks: the guest's flush */
	{SCMP_SYS(close), ENGINE | K},
	{SCMP_SYS(dup3), C}, /* /dev/null in place of a terminal or a pipe, for an engine that outlives its owner */
	/* Sampling. */
	{SCMP_SYS(rt_sigaction), ENGINE}, /* how overflows arrive, set when a session starts; abort(3) */
	{SCMP_SYS(rt_sigprocmask), ENGINE | K},
	{SCMP_SYS(rt_sigreturn), ENGINE | K},
	{SCMP_SYS(rt_sigtimedwait), C | V}, /* delivery by a blocked signal */
	{SCMP_SYS(timer_create), C | V},    /* the timer backend, the guest's PMU */
	{SCMP_SYS(timer_settime), C | V},
	{SCMP_SYS(timer_getoverrun), C | V},
	{SCMP_SYS(timer_delete), C | V},
	{SCMP_SYS(uname), C | V},    /* what a blocked SIGTRAP does on this host */
	{SCMP_SYS(memfd_create), C}, /* rings, tables, what vprof-parse reads */
	{SCMP_SYS(ftruncate), C},
	{SCMP_SYS(eventfd2), C},
	/* The control socket, vprof-parse and the keeper; there is no call that makes or connects another. */
	{SCMP_SYS(accept4), C},
	{SCMP_SYS(recvmsg), C | V | K}, /* V: an event that the keeper has opened */
	{SCMP_SYS(recvfrom), C},
	{SCMP_SYS(sendmsg), C | V | K}, /* V: an event for the keeper */
	{SCMP_SYS(sendto), C},
	{SCMP_SYS(getsockopt), C | K}, /* SO_PEERCRED */
	{SCMP_SYS(getsockname), C},
	{SCMP_SYS(shutdown), C},
	/* The keeper: the socket's file, perf events of the engine's threads. */
	{SCMP_SYS(newfstatat), K},
	{SCMP_SYS(unlinkat), K},
	{SCMP_SYS(perf_event_open), K},
	{SCMP_SYS(pidfd_open), K},
	/* libvirt's connection, which may be lost and made again; what it asks of itself. */
	{SCMP_SYS(connect), L},
	{SCMP_SYS(getpeername), L},
	{SCMP_SYS(setsockopt), L},
	{SCMP_SYS(pipe2), L},
	{SCMP_SYS(getgid), L},
	{SCMP_SYS(getegid), L},
	/* What /proc and /sys say of the VMM and of the host; what libvirt's library looks for. */
	{SCMP_SYS(newfstatat), A | L},
	{SCMP_SYS(statx), A | L},
	{SCMP_SYS(faccessat), A | L},
	{SCMP_SYS(faccessat2), A | L},
	{SCMP_SYS(readlinkat), A | L},
	{SCMP_SYS(getdents64), A | L},
	{SCMP_SYS(getcwd), A | L},
	/* Files that are open: the kernel image, settings in /proc. */
	{SCMP_SYS(fstat), ENGINE | K},
	{SCMP_SYS(lseek), ENGINE},
	/* Main loop, threads, locks, memory. */
	{SCMP_SYS(ppoll), ENGINE},
	{SCMP_SYS(restart_syscall), ENGINE | K},
	{SCMP_SYS(futex), ENGINE | K},
	{SCMP_SYS(clock_gettime), ENGINE | K}, /* of a thread's CPU time, which the vDSO does not know */
	{SCMP_SYS(gettimeofday), ENGINE | K},  /* where the vDSO cannot read the host's clock source */
	{SCMP_SYS(clock_nanosleep), ENGINE},
	{SCMP_SYS(sched_yield), ENGINE | K},
	{SCMP_SYS(sched_getaffinity), ENGINE | K}, /* malloc, for the number of its arenas */
	{SCMP_SYS(set_robust_list), C},            /* a thread's first calls */
	{SCMP_SYS(rseq), C},
	{SCMP_SYS(sigaltstack), ENGINE | K}, /* the same, with a sanitizer */
	{SCMP_SYS(gettid), ENGINE | K},
	{SCMP_SYS(getpid), ENGINE | K},
	{SCMP_SYS(getuid), C},
	{SCMP_SYS(geteuid), C},
	{SCMP_SYS(getrandom), ENGINE | K}, /* seeds of hash tables */
	{SCMP_SYS(sysinfo), ENGINE},       /* qsort(3): how much it may allocate for what is larger than 1 KiB */
	{SCMP_SYS(brk), ENGINE | K},
	{SCMP_SYS(munmap), ENGINE | K},
	{SCMP_SYS(mremap), ENGINE | K},
	{SCMP_SYS(madvise), ENGINE | K},
	{SCMP_SYS(exit), ENGINE | K},
	{SCMP_SYS(exit_group), ENGINE | K},
};

/* Calls that are allowed if one argument, under a mask, has this value. */
static const struct {
	int call;
	unsigned roles;
	unsigned argument;
	uint64_t mask, value;
} calls_with[] = {
	/* fstat(3); what has a name is not looked at. */
	{SCMP_SYS(newfstatat), ENGINE, 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
	/* Not F_SETOWN and F_SETOWN_EX, by which any process could be sent signals: the keeper sets owners. */
	{SCMP_SYS(fcntl), C | V, 1, UINT32_MAX, F_DUPFD_CLOEXEC},
	{SCMP_SYS(fcntl), C | V, 1, UINT32_MAX, F_GETFD},
	{SCMP_SYS(fcntl), C, 1, UINT32_MAX, F_SETFD},
	{SCMP_SYS(fcntl), C | V, 1, UINT32_MAX, F_GETFL},
	{SCMP_SYS(fcntl), C | V, 1, UINT32_MAX, F_SETFL},
	{SCMP_SYS(fcntl), C, 1, UINT32_MAX, F_ADD_SEALS},
	{SCMP_SYS(fcntl), C, 1, UINT32_MAX, F_GET_SEALS},
	{SCMP_SYS(fcntl), C | V, 1, UINT32_MAX, F_SETSIG},
	{SCMP_SYS(fcntl), K, 1, UINT32_MAX, F_SETOWN_EX},
	{SCMP_SYS(pidfd_send_signal), K, 1, UINT32_MAX, 0}, /* whether a process is there */
	{SCMP_SYS(mmap), ENGINE | K, 2, PROT_EXEC, 0},
	{SCMP_SYS(mprotect), ENGINE | K, 2, PROT_EXEC, 0},
	{SCMP_SYS(openat), A | L, 2, READ_ONLY, O_RDONLY},
	{SCMP_SYS(socket), L, 0, UINT32_MAX, AF_UNIX},
	/* Programs and maps that there are; none is loaded or made. */
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_MAP_LOOKUP_ELEM},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_MAP_UPDATE_ELEM},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_MAP_DELETE_ELEM},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_RAW_TRACEPOINT_OPEN},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_OBJ_GET_INFO_BY_FD},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_LINK_CREATE},
	{SCMP_SYS(bpf), A, 0, UINT32_MAX, BPF_ITER_CREATE},
	/* GLib's worker names itself when it first runs, which may be in here; and has SIGSYS blocked. */
	{SCMP_SYS(prctl), C, 0, UINT32_MAX, PR_SET_NAME},
	{SCMP_SYS(clone), C, 0, CLONE_THREAD, CLONE_THREAD}, /* the probe of a delivery; no new process */
};

/* Of KVM, of perf's events and of terminals, by number, beside sandbox_processor_ioctls. */
static const struct sandbox_ioctl ioctls[] = {
	{KVM_RUN, V},
	/* Of the VM. There is none that makes a VM, a vCPU or a device, or changes the guest's memory. */
	{KVM_CHECK_EXTENSION, C}, /* probes, as the next */
	{KVM_ENABLE_CAP, C},
	{KVM_IRQ_LINE, ENGINE}, /* what a device says, and what is typed */
	/* Of a vCPU; C: once its thread has ended. */
	{KVM_GET_MP_STATE, C | V},
	{KVM_SET_GUEST_DEBUG, C | V}, /* breakpoints and steps */
	{KVM_SET_SIGNAL_MASK, C | V}, /* delivery by a blocked signal */
	/* Counters. */
	{PERF_EVENT_IOC_ENABLE, C | V},
	{PERF_EVENT_IOC_DISABLE, C | V},
	{PERF_EVENT_IOC_PERIOD, C | V},
	{PERF_EVENT_IOC_RESET, C | V},
	{PERF_EVENT_IOC_SET_OUTPUT, A},
	{PERF_EVENT_IOC_SET_BPF, A},
	{PERF_EVENT_IOC_ID, A},
	{TCGETS, ENGINE}, /* the C library asks whether standard output is a terminal */
};

/* What the C library tries on its way to files that it can do without: settings of malloc, character sets. */
static const int lookups[] = {SCMP_SYS(openat), SCMP_SYS(faccessat),  SCMP_SYS(faccessat2), SCMP_SYS(readlinkat),
                              SCMP_SYS(statx),  SCMP_SYS(getdents64), SCMP_SYS(getcwd)};

static int allow_with(scmp_filter_ctx filter, int call, unsigned argument, uint64_t mask, uint64_t value)
{
	const struct scmp_arg_cmp compare = {argument, SCMP_CMP_MASKED_EQ, mask, value};

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compare);
}

static int allow_calls(scmp_filter_ctx filter, unsigned roles, const struct sandbox_call *list, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n && failed == 0; i++)
		if (list[i].roles & roles)
			failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, list[i].call, 0);
	return failed;
}

static int allow_ioctls(scmp_filter_ctx filter, unsigned roles, const struct sandbox_ioctl *list, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n && failed == 0; i++)
		if (list[i].roles & roles)
			failed = allow_with(filter, SCMP_SYS(ioctl), 1, UINT32_MAX, list[i].number);
	return failed;
}

static int refuse(scmp_filter_ctx filter, const int *list, size_t n)
{
	int failed = 0;

	for (size_t i = 0; i < n && failed == 0; i++)
		failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), list[i], 0);
	return failed;
}

/* fstat(3) is newfstatat with an empty path on newer C libraries. */
static int refuse_names(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp named = {3, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0};

	return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(newfstatat), 1, &named);
}

static int refuse_lookups(scmp_filter_ctx filter)
{
	int failed = refuse(filter, lookups, G_N_ELEMENTS(lookups));

	return failed ? failed : refuse(filter, sandbox_processor_lookups, sandbox_processor_lookups_n);
}

static int fill(scmp_filter_ctx filter, unsigned roles)
{
	int failed = allow_calls(filter, roles, calls, G_N_ELEMENTS(calls));

	if (failed == 0)
		failed = allow_calls(filter, roles, sandbox_processor_calls, sandbox_processor_calls_n);
	for (size_t i = 0; i < G_N_ELEMENTS(calls_with) && failed == 0; i++)
		if (calls_with[i].roles & roles)
			failed = allow_with(filter, calls_with[i].call, calls_with[i].argument, calls_with[i].mask,
			                    calls_with[i].value);
	if (failed == 0)
		failed = allow_ioctls(filter, roles, ioctls, G_N_ELEMENTS(ioctls));
	if (failed == 0)
		failed = allow_ioctls(filter, roles, sandbox_processor_ioctls, sandbox_processor_ioctls_n);
	if (failed == 0 && !(roles & (A | L)))
		failed = refuse_lookups(filter);
	/* Its flags are behind a pointer, where no filter sees them; the C library then uses clone. */
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return failed;
}

/* Signals to our own threads only: a vCPU is told to leave the guest, and abort(3). */
static int allow_signals(scmp_filter_ctx filter)
{
	return allow_with(filter, SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t)getpid());
}

/* Perf events of the calling thread. */
static int allow_events(scmp_filter_ctx filter)
{
	return allow_with(filter, SCMP_SYS(perf_event_open), 1, UINT32_MAX, 0);
}

static bool own_events; /* set before the threads narrow their lists */

static int fill_engine(scmp_filter_ctx filter, unsigned roles)
{
	int failed = fill(filter, roles);

	if (failed == 0)
		failed = refuse_names(filter);
	if (failed == 0)
		failed = allow_signals(filter);
	if (failed == 0 && own_events && (roles & (C | V)))
		failed = allow_events(filter);
	return failed ? failed : seccomp_syscall_priority(filter, SCMP_SYS(ioctl), HOT_PRIORITY);
}

static int fill_base(scmp_filter_ctx filter, unsigned roles)
{
	int failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (failed == 0)
		failed = fill_engine(filter, roles);
	/* Each thread drops capabilities that it still has. */
	if (failed == 0)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(capset), 0);
	/* Each takes its role's list, which can only be shorter: the kernel takes the strictest answer. */
	return failed ? failed : allow_with(filter, SCMP_SYS(seccomp), 0, UINT32_MAX, SECCOMP_SET_MODE_FILTER);
}

static int fill_attach(scmp_filter_ctx filter, unsigned roles)
{
	int failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (failed == 0)
		failed = fill(filter, roles);
	if (failed == 0)
		failed = allow_signals(filter);
	if (failed == 0 && own_events)
		failed = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 0);
	return failed;
}

static int fill_narrow(scmp_filter_ctx filter, unsigned role)
{
	/* It was set for the base, and the call for it is not allowed any more. */
	int failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);

	return failed ? failed : fill_engine(filter, role);
}

static int fill_alone(scmp_filter_ctx filter, unsigned role)
{
	int failed = fill(filter, role);

	/* Whether a thread is the engine's. */
	return failed ? failed : allow_with(filter, SCMP_SYS(tgkill), 2, UINT32_MAX, 0);
}

/* Minus an errno, or 0. */
static int filter_load(uint32_t otherwise, int (*fill_filter)(scmp_filter_ctx filter, unsigned role), unsigned role)
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
	int failed = filter ? fill_filter(filter, role) : -ENOMEM;

	if (!failed)
		failed = seccomp_load(filter);
	seccomp_release(filter);
	return failed;
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

static bool complain(int failed, GError **error)
{
	if (failed)
		g_set_error(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE, "cannot enter the sandbox (seccomp): %s",
		            g_strerror(-failed));
	return failed == 0;
}

bool sandbox_enter(bool events, GError **error)
{
	struct sigaction report = {.sa_sigaction = on_forbidden,
	                           .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER)};

	sigaction(SIGSYS, &report, NULL);
	own_events = events;
	if (complain(filter_load(SCMP_ACT_TRAP, fill_base, ENGINE), error))
		return true;
	g_prefix_error(error, "--sandbox off runs the guest without a sandbox: ");
	return false;
}

bool sandbox_enter_attach(bool events, GError **error)
{
	own_events = events;
	return complain(filter_load(SCMP_ACT_ERRNO(EPERM), fill_attach, C | A), error);
}

bool sandbox_enter_asker(GError **error)
{
	own_events = false;
	return complain(filter_load(SCMP_ACT_ERRNO(EPERM), fill_attach, C | L), error);
}

bool sandbox_narrow(enum sandbox_role role, GError **error)
{
	return complain(filter_load(SCMP_ACT_TRAP, fill_narrow, role), error);
}

bool sandbox_enter_alone(enum sandbox_role role)
{
	return filter_load(SCMP_ACT_TRAP, fill_alone, role) == 0;
}
