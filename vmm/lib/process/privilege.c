// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OVERFLOW_ID 65534u
#define OWN_IDS 0x76000000u /* a pid has 22 bits */
#define STACK_BYTES 16384u

/* ---- capabilities ---- */

/* Before Linux 5.8, CAP_SYS_ADMIN stood for CAP_PERFMON and CAP_BPF. */
static uint64_t kept_here(uint64_t keep)
{
	bool split =
		prctl(PR_CAPBSET_READ, CAP_PERFMON) >= 0 || !(keep & (PRIVILEGE(CAP_PERFMON) | PRIVILEGE(CAP_BPF)));

	return split ? keep : keep | PRIVILEGE(CAP_SYS_ADMIN);
}

struct capabilities {
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static bool capabilities_read(struct capabilities *capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return syscall(SYS_capget, &header, capabilities->data) == 0;
}

/* Of those that `had` permits, `keep` are in effect; the others can be taken again, or are gone. */
static bool capabilities_limit(const struct capabilities *had, uint64_t keep, bool for_good)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct capabilities limited = *had;

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t part = (uint32_t)(keep >> (32 * i));

		limited.data[i].effective = had->data[i].permitted & part;
		if (for_good)
			limited.data[i].permitted &= part;
		limited.data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, limited.data) == 0;
}

/* A process that may not drop from the bounding set is bounded by its other sets. */
static void bound(uint64_t keep)
{
	for (unsigned i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		if (!(keep & PRIVILEGE(i)))
			prctl(PR_CAPBSET_DROP, i);
}

static bool works_with(const struct capabilities *had, uint64_t keep, privilege_works works, void *data)
{
	return capabilities_limit(had, keep, false) && works(data);
}

bool privilege_drop(uint64_t keep, privilege_works works, void *data)
{
	struct capabilities had;

	keep = kept_here(keep);

	if (!capabilities_read(&had))
		return false;
	bound(keep);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if ((keep & PRIVILEGE(CAP_PERFMON)) && !works_with(&had, keep, works, data) &&
	    works_with(&had, keep | PRIVILEGE(CAP_SYS_ADMIN), works, data))
		keep |= PRIVILEGE(CAP_SYS_ADMIN);
	return capabilities_limit(&had, keep, true);
}

bool privilege_drop_all(void)
{
	const struct capabilities none = {0};

	return capabilities_limit(&none, 0, true);
}

/* ---- namespaces, root and user ---- */

#define OWN_NAMESPACES (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)

bool privilege_namespaces(int more)
{
	const int wanted = OWN_NAMESPACES | more;

	/* At once where the host allows all; else what it allows. The network is the one that counts. */
	return unshare(wanted) == 0 || (!(more & CLONE_NEWUSER) && unshare(CLONE_NEWNET) == 0);
}

static bool file_write(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

static bool has_capabilities(void)
{
	struct capabilities had;

	return !capabilities_read(&had) || had.data[0].effective != 0 || had.data[1].effective != 0;
}

/* user_namespaces(7): without rights outside, the own ids can be mapped, and groups are given up being set. */
bool privilege_user_namespace(uint64_t keep)
{
	g_autofree char *user = g_strdup_printf("%u %u 1", geteuid(), geteuid());
	g_autofree char *group = g_strdup_printf("%u %u 1", getegid(), getegid());

	return !has_capabilities() && access("/proc/self/uid_map", W_OK) == 0 &&
	       unshare(CLONE_NEWUSER | OWN_NAMESPACES) == 0 && file_write("/proc/self/uid_map", user) &&
	       file_write("/proc/self/setgroups", "deny") && file_write("/proc/self/gid_map", group) &&
	       privilege_drop(keep, NULL, NULL);
}

/* Its exit status; negative: none. */
static int status_of(pid_t child)
{
	int status;
	pid_t ended;

	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int enter_own_folder(void *data)
{
	(void)data;
	return chroot("/proc/self/fdinfo") == 0 && chdir("/") == 0 ? 0 : 1;
}

/*
 * A folder of a process that has ended is empty. It is entered by that process, which has the root in common with this
 * one; and the memory, so that none of it is copied.
 */
bool privilege_root_empty(void)
{
	static _Alignas(16) char stack[STACK_BYTES];
	pid_t child = clone(enter_own_folder, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_FS | SIGCHLD, NULL);

	return child > 0 && status_of(child) == 0;
}

/* With what is mounted in it, which a user namespace may not uncover. */
static bool folder_bind(const char *folder, const char *at)
{
	return mkdir(at, 0555) == 0 && mount(folder, at, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* Every host has a folder /dev, which nothing that goes on in here looks into. */
bool privilege_root_kernel(void)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	       mount("vprof", "/dev", "tmpfs", flags, "size=4k,nr_inodes=4,mode=0755") == 0 &&
	       folder_bind("/proc", "/dev/proc") && folder_bind("/sys", "/dev/sys") &&
	       mount(NULL, "/dev", NULL, flags | MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0 && chroot("/dev") == 0 &&
	       chdir("/") == 0;
}

static bool id_take(uid_t id)
{
	return setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

bool privilege_user_take(uid_t id)
{
	bound(0);
	return id_take(id) || id_take(OVERFLOW_ID);
}

uid_t privilege_own_id(void)
{
	return OWN_IDS + (uid_t)getpid();
}

bool privilege_user_stand_for(uid_t id)
{
	return setreuid(id, (uid_t)-1) == 0 || setreuid(OVERFLOW_ID, (uid_t)-1) == 0;
}

/* ---- what is refused ---- */

char *privilege_lack_text(unsigned lacks)
{
	static const char *const names[] = {"a network of its own", "an empty root folder", "a user of its own"};
	g_autoptr(GPtrArray) lacked = g_ptr_array_new();

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (lacks & (1u << i))
			g_ptr_array_add(lacked, (void *)names[i]);
	if (lacked->len == 0)
		return NULL;
	g_ptr_array_add(lacked, NULL);
	return g_strjoinv(", ", (char **)lacked->pdata);
}

unsigned privilege_lacks(void)
{
	const bool root = geteuid() == 0;
	pid_t child = fork();

	if (child == 0) {
		const bool apart = root ? privilege_namespaces(0) : privilege_user_namespace(PRIVILEGE_ROOT_EMPTY);
		unsigned lacks = (apart ? 0 : PRIVILEGE_LACK_NETWORK) |
		                 (privilege_root_empty() ? 0 : PRIVILEGE_LACK_ROOT) |
		                 (!root || privilege_user_take(OVERFLOW_ID) ? 0 : PRIVILEGE_LACK_USER);

		_exit((int)lacks);
	}
	int status = child > 0 ? status_of(child) : -1;

	return status >= 0 ? (unsigned)status
	                   : PRIVILEGE_LACK_NETWORK | PRIVILEGE_LACK_ROOT | (root ? PRIVILEGE_LACK_USER : 0);
}
