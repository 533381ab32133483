// SPDX-License-Identifier: BSD-2-Clause
/* Giving up what a process does not need any more, before it reads what may be made to do harm. */
#ifndef VPROF_PROCESS_PRIVILEGE_H
#define VPROF_PROCESS_PRIVILEGE_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A capability in a set of them. */
#define PRIVILEGE(capability) (UINT64_C(1) << (capability))

/* Whether what is wanted works with the capabilities now in effect. */
typedef bool (*privilege_works)(void *data);

/*
 * Drops every capability of this thread but those in `keep` (capabilities(7)); without any there is nothing to drop.
 * With CAP_PERFMON among them, CAP_SYS_ADMIN is kept where `works` needs it: Debian's and Ubuntu's kernels ask for it
 * in perf_event_open when kernel.perf_event_paranoid is above 2 or 3, and other kernels never do. Before other threads
 * are started, which inherit the rest. False, with errno, when the kernel refuses.
 */
bool privilege_drop(uint64_t keep, privilege_works works, void *data);

/* Drops all of this thread's, by one system call: where there are other threads, each has to. As privilege_drop. */
bool privilege_drop_all(void);

/*
 * A network, a host name and IPC objects of its own, for this thread and those that it starts; and `more` namespaces of
 * unshare(2). With CLONE_NEWNS, /proc/self/exe of a process in a chroot is no path of its root any more. False: the
 * host refuses the network.
 */
bool privilege_namespaces(int more);

/* What privilege_root_empty and privilege_root_kernel take. */
#define PRIVILEGE_ROOT_EMPTY PRIVILEGE(CAP_SYS_CHROOT)
#define PRIVILEGE_ROOT_KERNEL (PRIVILEGE(CAP_SYS_CHROOT) | PRIVILEGE(CAP_SYS_ADMIN))

/*
 * For a user without capabilities: a user namespace in which there is no id but that user's, of which the rights `keep`
 * are kept, and in it what privilege_namespaces has. While the process has one thread. False where the host does not
 * allow it: nothing has changed, or, without a right to map ids, geteuid(2) has.
 */
bool privilege_user_namespace(uint64_t keep);

/*
 * The root becomes a folder in which there is nothing and nothing can be made, for all threads that share it. False
 * without the right to, or without /proc: it stays.
 */
bool privilege_root_empty(void);

/*
 * The root becomes a folder with /proc and /sys, in which nothing can be made, in a mount namespace of its own. While
 * the process has one thread. False without the right to: the root stays, but /dev may have become empty.
 */
bool privilege_root_kernel(void);

/*
 * All threads become this user and group, without others. By that, root's capabilities are gone. Where the id is not
 * mapped, in a container, 65534 is taken. False, with errno, when neither is possible.
 */
bool privilege_user_take(uid_t id);

/* An id that no account has, and no other process takes: its number is this process's. */
uid_t privilege_own_id(void);

/*
 * The same id as privilege_user_take, as the real user id only: root stays root, and what it makes signal a process of
 * that user may do so, also in a container, where root is no root (fs/fcntl.c, sigio_perm). False where there is none.
 */
bool privilege_user_stand_for(uid_t id);

/* What a host, or a container, may refuse: a set of these. */
enum privilege_lack {
	PRIVILEGE_LACK_NETWORK = 1,
	PRIVILEGE_LACK_ROOT = 2,
	PRIVILEGE_LACK_USER = 4, /* root only */
};

/* "a network of its own, a user of its own"; new string, NULL for none. */
char *privilege_lack_text(unsigned lacks);

/* By trying it in a process that ends then. */
unsigned privilege_lacks(void);

#endif
