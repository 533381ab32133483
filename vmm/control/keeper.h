// SPDX-License-Identifier: BSD-2-Clause
/*
 * A small process beside an engine, which keeps rights that the engine gives up: to open perf events, of the engine's
 * own threads, and of those of one process that it attaches to; to say which of them an event's overflows signal; to
 * know users by their ids; and to remove the file of the control socket, when the engine has ended or is done with it.
 * It is made before the engine reads anything of a guest. Afterwards it takes requests of one fixed size, which it
 * checks as coming from an enemy; its list of system calls is in sandbox.c.
 */
#ifndef VPROF_CONTROL_KEEPER_H
#define VPROF_CONTROL_KEEPER_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum keeper_of {
	KEEPER_OF_USER,   /* an engine that opens its events itself */
	KEEPER_OF_VMM,    /* of root: opens events of the engine's threads */
	KEEPER_OF_ATTACH, /* the same, and those of one other process; a user's, by that user's rights */
};

/*
 * While the process has one thread. `user`: root's engine will take it by privilege_user_take. False: there is no
 * keeper.
 */
bool keeper_start(enum keeper_of of, uid_t user);
bool keeper_runs(void);

/* Waits until it has given up what it does not need. False: it could not, and has ended. */
bool keeper_ready(void);

/*
 * Has the socket's file removed at the end, if it is the one of this device and inode then. Once: a later request is
 * refused, as the engine may be another's by then. False: refused, or there is no keeper.
 */
bool keeper_socket(const char *path, dev_t device, ino_t inode);

/* KEEPER_OF_ATTACH, once, and before it is asked for events: of which other process they may be. */
bool keeper_target(pid_t process);

/*
 * Before a guest is let run or its memory is read: no file or other process is taken from now on that has not been
 * named. False: there is no keeper.
 */
bool keeper_settle(void);

/* perf_event_open(2); `pid` is 0, the calling thread, or a thread of keeper_target. `cpu` and `group` are -1. */
int keeper_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);

/* Overflows of this event signal the calling thread: fcntl(2), F_SETOWN_EX. False, with errno. */
bool keeper_owner(int fd);

/*
 * The process and user at the other end of a socket (SO_PEERCRED), or the owner of a file, with pid 0. By their ids
 * outside of an engine's user namespace, in which there are only its own. uid -1: not known.
 */
struct ucred keeper_identify(int fd);

/* Ends the keeper, and waits until it has removed the file. */
void keeper_end(void);

/* ---- the other side, for tests ---- */

#define KEEPER_PATH_BYTES 108u /* sun_path */
#define KEEPER_ATTR_BYTES 136u

enum keeper_kind { KEEPER_SOCKET = 1, KEEPER_EVENT, KEEPER_OWNER, KEEPER_TARGET, KEEPER_IDENTIFY, KEEPER_SETTLE };

struct keeper_request {
	uint32_t kind;
	/* KEEPER_EVENT: that it counts; KEEPER_OWNER: that is signalled for the descriptor; KEEPER_TARGET: a process */
	int32_t thread;
	uint64_t device, inode; /* KEEPER_SOCKET */
	union {
		char path[KEEPER_PATH_BYTES];
		uint8_t attr[KEEPER_ATTR_BYTES];
	};
};
_Static_assert(sizeof(struct keeper_request) == 160, "what goes from the engine to its keeper");

/* Why a request is refused, an errno; 0: it is not. Whether there was a KEEPER_SOCKET, and a KEEPER_TARGET before. */
int keeper_check(const struct keeper_request *request, enum keeper_of of, bool has_socket, bool has_target);

#endif
