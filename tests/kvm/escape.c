// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a guest that has broken out could do: makes a thread of a running engine execute system calls, and prints what
 * became of each ("kill: SIGSYS"). usage: escape THREAD OTHER, a thread to take over and a process that is not its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define BELOW_STACK 4096 /* of the thread's stack, for names and structures */
#define SYSCALL 0x050fu  /* the instruction, as the two bytes read */

static pid_t thread;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(2);
}

static int wait_stop(void)
{
	int status;

	if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
		fprintf(stderr, "escape: the thread has ended: 0x%x\n", (unsigned)status);
		exit(3);
	}
	return WSTOPSIG(status);
}

static void put(uint64_t at, const void *bytes, size_t n)
{
	struct iovec here = {(void *)bytes, n}, there = {(void *)at, n};

	if (process_vm_writev(thread, &here, 1, &there, 1, 0) != (ssize_t)n)
		fail("process_vm_writev");
}

/* Executes it at the instruction by which the thread went into the kernel. True: *result is what it returned. */
static bool execute(const struct user_regs_struct *before, const uint64_t arguments[7], int64_t *result)
{
	struct user_regs_struct regs = *before;

	regs.rip -= 2;
	regs.orig_rax = (uint64_t)-1; /* the call that was interrupted is not begun again */
	regs.rax = arguments[0];
	regs.rdi = arguments[1];
	regs.rsi = arguments[2];
	regs.rdx = arguments[3];
	regs.r10 = arguments[4];
	regs.r8 = arguments[5];
	regs.r9 = arguments[6];
	if (ptrace(PTRACE_SETREGS, thread, NULL, &regs) != 0)
		fail("PTRACE_SETREGS");
	/*
	 * No single step: its trap would take the handler of SIGTRAP away from a process that blocks it. Signals, as
	 * the one for a call that is not allowed, are left out.
	 */
	for (bool entered = false;;) {
		if (ptrace(PTRACE_SYSCALL, thread, NULL, NULL) != 0)
			fail("PTRACE_SYSCALL");
		if (wait_stop() != (SIGTRAP | 0x80)) /* PTRACE_O_TRACESYSGOOD */
			continue;
		if (ptrace(PTRACE_GETREGS, thread, NULL, &regs) != 0)
			fail("PTRACE_GETREGS");
		if (entered)
			break;
		entered = regs.orig_rax == arguments[0] && (int64_t)regs.rax == -ENOSYS;
	}
	*result = (int64_t)regs.rax;
	return regs.rax != arguments[0]; /* the kernel puts back what a call that is not allowed has found */
}

int main(int argc, char **argv)
{
	struct user_regs_struct before;

	if (argc != 3)
		return 1;
	thread = atoi(argv[1]);
	const uint64_t other = (uint64_t)atoi(argv[2]);

	if (ptrace(PTRACE_SEIZE, thread, NULL, PTRACE_O_TRACESYSGOOD) != 0 ||
	    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0)
		fail("PTRACE_SEIZE");
	/* Where it is not in a system call, it soon is. */
	for (wait_stop();; wait_stop()) {
		errno = 0;
		if (ptrace(PTRACE_GETREGS, thread, NULL, &before) != 0)
			fail("PTRACE_GETREGS");
		if (((uint64_t)ptrace(PTRACE_PEEKTEXT, thread, before.rip - 2, NULL) & 0xffff) == SYSCALL && errno == 0)
			break;
		if (ptrace(PTRACE_SYSCALL, thread, NULL, NULL) != 0)
			fail("PTRACE_SYSCALL");
	}
	static const char path[] = "/etc/shadow";
	const uint64_t at = before.rsp - BELOW_STACK, buffer = at + 64;
	const struct iovec iov = {(void *)buffer, 8};

	put(at, path, sizeof(path));
	const struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = (pid_t)other};

	put(at + 32, &iov, sizeof(iov));
	put(at + 96, &owner, sizeof(owner));
	const struct {
		const char *name;
		uint64_t arguments[7];
	} calls[] = {
		{"kill", {SYS_kill, other, 0}},
		{"tgkill", {SYS_tgkill, other, other, 0}},
		{"own", {SYS_fcntl, 0, F_SETOWN, other}},
		{"own_by_type", {SYS_fcntl, 0, F_SETOWN_EX, at + 96}},
		{"open", {SYS_open, at, O_RDONLY}},
		{"openat", {SYS_openat, (uint64_t)AT_FDCWD, at, O_RDONLY}},
		{"create", {SYS_openat, (uint64_t)AT_FDCWD, at, O_RDWR | O_CREAT, 0600}},
		{"unlink", {SYS_unlink, at}},
		{"unlinkat", {SYS_unlinkat, (uint64_t)AT_FDCWD, at, 0}},
		{"ptrace", {SYS_ptrace, PTRACE_ATTACH, other, 0, 0}},
		{"memory", {SYS_process_vm_readv, other, at + 32, 1, at + 32, 1, 0}},
		{"vm", {SYS_ioctl, 0, KVM_CREATE_VM, 0}},
		{"socket", {SYS_socket, AF_INET, SOCK_STREAM, 0}},
		{"local_socket", {SYS_socket, AF_UNIX, SOCK_STREAM, 0}},
		{"execve", {SYS_execve, at, 0, 0}},
		{"filter", {SYS_seccomp, 1, 0, 0}},
		{"count", {SYS_perf_event_open, at, other, (uint64_t)-1, (uint64_t)-1, 0}},
		{"user", {SYS_setresuid, 0, 0, 0}},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int64_t result = 0;
		bool done = execute(&before, calls[i].arguments, &result);

		printf("%s: %s\n", calls[i].name,
		       !done               ? "SIGSYS"
		       : result == -EACCES ? "EACCES"
		       : result == -EPERM  ? "EPERM"
		       : result == -ENOENT ? "ENOENT"
		                           : "done");
	}
	/* One that is allowed takes the signal of the last one. */
	int64_t result;

	if (!execute(&before, (uint64_t[7]){SYS_getpid}, &result))
		return 4;
	/* Goes on as if nothing had been: the kernel begins the call again that was interrupted. */
	if (ptrace(PTRACE_SETREGS, thread, NULL, &before) != 0 || ptrace(PTRACE_DETACH, thread, NULL, NULL) != 0)
		fail("PTRACE_DETACH");
	return 0;
}
