// SPDX-License-Identifier: BSD-2-Clause
#include "parse/confine.h"

#include <elf.h>
#include <errno.h>
#include <glib.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vprof/parse.h>

#include "confine_calls.h" /* of x86/ or arm64/ */
#include "lib/process/privilege.h"

/* No account has it ("vpar"): an id that is shared could be signalled by what else has it. */
#define OWN_ID 0x76706172u

/* ---- the server ---- */

bool confine_server(void)
{
	const bool root = geteuid() == 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return false;
	(void)privilege_namespaces(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER));
	(void)privilege_root_empty();
	if (root)
		(void)privilege_user_take(OWN_ID);
	return privilege_drop(0, NULL, NULL) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* ---- a child ---- */

static const unsigned allowed[] = {
	/* The answer. */
	SYS_write,
	SYS_fstat,
	SYS_newfstatat, /* the C library's fstat; there is no path to give it */
	SYS_lseek,
	SYS_ftruncate,
	SYS_read, /* of what is open: nothing but the input, the answer and /dev/null */
	SYS_close,
	/* Memory and locks. */
	SYS_brk,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_futex,
	SYS_sched_yield,
	SYS_sched_getaffinity, /* malloc, for the number of its arenas */
	SYS_getrandom,         /* seeds of hash tables */
	SYS_sysinfo,           /* qsort(3): how much it may allocate */
	SYS_clock_gettime,     /* where the vDSO cannot read the host's clock source */
	SYS_gettimeofday,
	SYS_getpid,
	SYS_gettid,
	/* The end. */
	SYS_rt_sigprocmask,
	SYS_rt_sigaction,
	SYS_rt_sigreturn,
	SYS_exit,
	SYS_exit_group,
#if defined(VPROF_SANITIZED)
	SYS_sigaltstack,
	SYS_prctl,
	SYS_writev,
#endif
};

/*
 * What libraries try and can do without: character sets, other files with debug information; GLib, where its messages
 * go.
 */
static const unsigned refused[] = {SYS_openat, SYS_readlinkat,  SYS_faccessat,  SYS_uname,
                                   SYS_ioctl,  SYS_getpeername, CONFINE_REFUSED};

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define HEAD 4
#define FILTER_LENGTH (HEAD + 2 * (N(allowed) + N(refused)) + 1)

static bool filter_load(void)
{
	struct sock_filter code[FILTER_LENGTH] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	size_t n = HEAD;

	for (size_t i = 0; i < N(allowed) + N(refused); i++) {
		bool allow = i < N(allowed);
		unsigned number = allow ? allowed[i] : refused[i - N(allowed)];

		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
		                                         allow ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	const struct sock_fprog program = {.len = (unsigned short)n, .filter = code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A lower limit, which was inherited, stays. */
static bool limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)resource, &now) != 0)
		return false;
	const struct rlimit wanted = {.rlim_cur = MIN(soft, now.rlim_max), .rlim_max = MIN(hard, now.rlim_max)};

	return setrlimit((__rlimit_resource_t)resource, &wanted) == 0;
}

bool confine_child(uint64_t input_bytes, uint64_t answer_bytes)
{
	/* A second later, a process that ignores SIGXCPU is killed. */
	bool limited = limit(RLIMIT_CPU, VPROF_PARSE_CPU_SECONDS, VPROF_PARSE_CPU_SECONDS + 1) &&
	               limit(RLIMIT_FSIZE, answer_bytes, answer_bytes) && limit(RLIMIT_CORE, 0, 0);

#if defined(VPROF_SANITIZED)
	(void)input_bytes; /* a sanitizer's shadow memory has terabytes */
#else
	limited = limited &&
	          limit(RLIMIT_AS, VPROF_PARSE_MEMORY_BYTES + input_bytes, VPROF_PARSE_MEMORY_BYTES + input_bytes);
#endif
	alarm(VPROF_PARSE_SECONDS);
	return limited && filter_load();
}
