// SPDX-License-Identifier: BSD-2-Clause
#include "control/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <vprof/recording.h>

#include "control/sandbox.h"
#include "lib/client/socket.h"
#include "lib/process/companion.h"
#include "lib/process/privilege.h"

#define ANSWER_SECONDS 5   /* a keeper that takes longer is gone */
#define OVERFLOW_ID 65534u /* of a user or a group that has no id here (user_namespaces(7)) */

_Static_assert(VPROF_ATTR_BYTES <= KEEPER_ATTR_BYTES, "the keeper takes what counters want");

/* ---- messages, of which either direction's may have a descriptor ---- */

union descriptor_buffer {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr alignment;
};

/* `descriptor` -1: none. */
static bool message_send(int socket, const void *bytes, size_t n, int descriptor)
{
	union descriptor_buffer control = {0};
	struct iovec iov = {(void *)bytes, n};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (descriptor >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)n;
}

/* What recvmsg(2) returns; *descriptor -1: none came. */
static ssize_t message_receive(int socket, void *bytes, size_t n, int *descriptor)
{
	union descriptor_buffer control;
	struct iovec iov = {bytes, n};
	struct msghdr message = {.msg_iov = &iov,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof(control.bytes)};
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	const struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*descriptor = -1;
	if (header && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(descriptor, CMSG_DATA(header), sizeof(int));
	return got;
}

struct keeper_reply {
	int32_t number;   /* 0, minus an errno, or that there is a descriptor */
	struct ucred ids; /* KEEPER_IDENTIFY */
};

static struct ucred identify(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return (struct ucred){.uid = (uid_t)-1, .gid = (gid_t)-1};
	return S_ISSOCK(status.st_mode) ? client_socket_peer(fd)
	                                : (struct ucred){.uid = status.st_uid, .gid = status.st_gid};
}

/* ---- the keeper ---- */

/* What events of another process's threads have beside. */
#define ATTACH_SAMPLE_TYPE (VPROF_SAMPLE_TYPE | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN)

/* Nothing of an event of another process's goes to that process. */
static bool attr_allowed_there(const struct perf_event_attr *attr)
{
	return attr->size <= sizeof(*attr) && !(attr->sample_type & ~(uint64_t)ATTACH_SAMPLE_TYPE) && !attr->sigtrap;
}

static bool attr_allowed_here(const struct perf_event_attr *attr)
{
	return attr->size == VPROF_ATTR_BYTES && !(attr->sample_type & ~(uint64_t)VPROF_SAMPLE_TYPE);
}

/* What a counter of this host may be: no trace point, no probe of the host's kernel, nothing of another thread. */
static bool attr_allowed(const struct perf_event_attr *attr, enum keeper_of of)
{
	static const bool types[] = {[PERF_TYPE_HARDWARE] = true,
	                             [PERF_TYPE_SOFTWARE] = true,
	                             [PERF_TYPE_HW_CACHE] = true,
	                             [PERF_TYPE_RAW] = true};

	return attr->type < G_N_ELEMENTS(types) && types[attr->type] &&
	       (of == KEEPER_OF_ATTACH ? attr_allowed_there(attr) : attr_allowed_here(attr)) && !attr->inherit &&
	       !attr->bpf_event && !attr->ksymbol && !attr->aux_output;
}

static void attr_get(const struct keeper_request *request, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	memcpy(attr, request->attr, MIN(sizeof(*attr), sizeof(request->attr)));
}

/* Whether events may be asked for. */
static bool has_events(enum keeper_of of, bool has_target)
{
	return of == KEEPER_OF_VMM || (of == KEEPER_OF_ATTACH && has_target);
}

int keeper_check(const struct keeper_request *request, enum keeper_of of, bool has_socket, bool has_target)
{
	struct perf_event_attr attr;

	switch (request->kind) {
	case KEEPER_SOCKET:
		return has_socket ? EPERM : memchr(request->path, '\0', sizeof(request->path)) ? 0 : EINVAL;
	case KEEPER_EVENT:
		attr_get(request, &attr);
		if (!has_events(of, has_target))
			return EPERM;
		return request->thread > 0 && attr_allowed(&attr, of) ? 0 : EINVAL;
	case KEEPER_OWNER:
		return of == KEEPER_OF_ATTACH ? EPERM : request->thread > 0 ? 0 : EINVAL;
	case KEEPER_TARGET:
		return of != KEEPER_OF_ATTACH || has_target ? EPERM : request->thread > 0 ? 0 : EINVAL;
	case KEEPER_IDENTIFY:
	case KEEPER_SETTLE:
		return 0;
	default:
		return EINVAL;
	}
}

struct keeper {
	int socket;
	enum keeper_of of;
	pid_t engine;
	pid_t target;               /* 0: none yet; negative: none any more */
	int target_fd;              /* a pidfd of it */
	struct keeper_request file; /* kind 0: none yet; KEEPER_SETTLE: none any more */
};

/* Signal 0 goes to a thread of the engine, or to none. */
static bool is_engines(const struct keeper *keeper, pid_t thread)
{
	return syscall(SYS_tgkill, keeper->engine, thread, 0) == 0;
}

/* What came of signal 0: one that is refused has been there, too. perf_event_open(2) asks for its own right. */
static bool is_there(long result)
{
	return result == 0 || errno == EPERM;
}

/* The number of a target that has ended may be another's. */
static bool is_targets(const struct keeper *keeper, pid_t thread)
{
	return keeper->target > 0 && is_there(syscall(SYS_tgkill, keeper->target, thread, 0)) &&
	       is_there(syscall(SYS_pidfd_send_signal, keeper->target_fd, 0, NULL, 0));
}

static int target_set(struct keeper *keeper, const struct keeper_request *request)
{
	keeper->target_fd = (int)syscall(SYS_pidfd_open, request->thread, 0);
	if (keeper->target_fd < 0)
		return -errno;
	keeper->target = request->thread;
	return 0;
}

/* Returns the descriptor, or minus an errno. */
static int event_open(const struct keeper *keeper, const struct keeper_request *request)
{
	struct perf_event_attr attr;

	attr_get(request, &attr);
	if (!is_engines(keeper, request->thread) && !is_targets(keeper, request->thread))
		return -ESRCH;
	int fd = (int)syscall(SYS_perf_event_open, &attr, request->thread, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int owner_set(const struct keeper *keeper, const struct keeper_request *request, int descriptor)
{
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = request->thread};

	if (!is_engines(keeper, request->thread))
		return -errno;
	return fcntl(descriptor, F_SETOWN_EX, &owner) == 0 ? 0 : -errno;
}

static void settle(struct keeper *keeper)
{
	if (keeper->file.kind == 0)
		keeper->file.kind = KEEPER_SETTLE;
	if (keeper->target == 0)
		keeper->target = -1;
}

/* 0, minus an errno, or the descriptor of an event. `descriptor`: that came with the request, or -1. */
static int do_request(struct keeper *keeper, const struct keeper_request *request, int descriptor)
{
	int refused = keeper_check(request, keeper->of, keeper->file.kind != 0, keeper->target != 0);

	if (refused)
		return -refused;
	if (request->kind == KEEPER_EVENT)
		return event_open(keeper, request);
	if (request->kind == KEEPER_OWNER)
		return owner_set(keeper, request, descriptor);
	if (request->kind == KEEPER_TARGET)
		return target_set(keeper, request);
	if (request->kind == KEEPER_SOCKET)
		keeper->file = *request;
	else if (request->kind == KEEPER_SETTLE)
		settle(keeper);
	return 0;
}

static void serve(struct keeper *keeper, const struct keeper_request *request, int descriptor)
{
	const int number = do_request(keeper, request, descriptor);
	const bool event = request->kind == KEEPER_EVENT && number >= 0;
	struct keeper_reply reply = {.number = number};

	if (request->kind == KEEPER_IDENTIFY)
		reply.ids = identify(descriptor);
	message_send(keeper->socket, &reply, sizeof(reply), event ? number : -1);
	if (event)
		close(number);
}

/* False for the file of an engine that took over the path. */
static bool file_is_ours(const struct keeper_request *file)
{
	struct stat status;

	return file->kind == KEEPER_SOCKET && fstatat(AT_FDCWD, file->path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISSOCK(status.st_mode) && status.st_dev == file->device && status.st_ino == file->inode;
}

static bool events_open(void *data)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = VPROF_ATTR_BYTES, .config = PERF_COUNT_SW_TASK_CLOCK};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	(void)data;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* CAP_KILL: for the check of a thread, and for events that signal one, and their owners. CAP_DAC_OVERRIDE: for the
 * socket's file. */
static void rights_drop(bool events, uid_t user)
{
	/* Where root cannot, the engine stays root, too. */
	if (events)
		(void)privilege_user_stand_for(user);
	const uint64_t for_events = events ? PRIVILEGE(CAP_PERFMON) | PRIVILEGE(CAP_KILL) : 0;

	if (!privilege_drop(for_events | PRIVILEGE(CAP_DAC_OVERRIDE), events_open, NULL) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || !sandbox_enter_alone(SANDBOX_KEEPER))
		_exit(1);
}

/* The end of the engine is that of its end of the socket. */
static G_GNUC_NORETURN void keep(struct keeper *keeper)
{
	const struct keeper_reply ready = {0};
	struct keeper_request request;
	int descriptor;
	ssize_t n;

	message_send(keeper->socket, &ready, sizeof(ready), -1);
	while ((n = message_receive(keeper->socket, &request, sizeof(request), &descriptor)) > 0) {
		if (n == (ssize_t)sizeof(request))
			serve(keeper, &request, descriptor);
		if (descriptor >= 0)
			close(descriptor);
	}
	if (file_is_ours(&keeper->file))
		unlinkat(AT_FDCWD, keeper->file.path, 0);
	_exit(0);
}

/* ---- the engine ---- */

/* One request at a time holds the lock. */
static struct {
	GMutex lock;
	bool runs;  /* [lock] */
	bool ready; /* [lock] it has said so */
	int socket; /* [lock] */
} mine;

bool keeper_start(enum keeper_of of, uid_t user)
{
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	struct keeper keeper = {.of = of, .engine = getpid()};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	keeper.socket = ends[1];
	pid_t child = fork();

	if (child == 0) {
		companion_let_go("vprof-keeper", ends[1], ends[1]);
		rights_drop(of != KEEPER_OF_USER, user);
		keep(&keeper);
	}
	close(ends[1]);
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	mine.runs = child > 0;
	mine.ready = false;
	mine.socket = ends[0];
	if (child < 0)
		close(ends[0]);
	return mine.runs;
}

bool keeper_runs(void)
{
	return mine.runs;
}

static bool receive(struct keeper_reply *reply, int *descriptor)
{
	return message_receive(mine.socket, reply, sizeof(*reply), descriptor) == (ssize_t)sizeof(*reply);
}

/* What comes later would be the answer to another request. */
static void give_up_locked(void)
{
	mine.runs = false;
	close(mine.socket);
}

static bool ready_locked(void)
{
	struct keeper_reply reply;
	int descriptor;

	if (mine.runs && !mine.ready) {
		mine.ready = receive(&reply, &descriptor);
		if (!mine.ready)
			give_up_locked();
	}
	return mine.runs;
}

/* Minus an errno, 0, or a descriptor. */
static int ask_locked(const struct keeper_request *request, int given, struct keeper_reply *reply)
{
	int descriptor;

	if (!ready_locked())
		return -EPIPE;
	if (!message_send(mine.socket, request, sizeof(*request), given) || !receive(reply, &descriptor)) {
		give_up_locked();
		return -EPIPE;
	}
	if (request->kind == KEEPER_EVENT && reply->number >= 0)
		return descriptor >= 0 ? descriptor : -EMFILE;
	return MIN(reply->number, 0);
}

static int ask_for(const struct keeper_request *request, int given, struct keeper_reply *reply)
{
	g_mutex_lock(&mine.lock);
	int number = ask_locked(request, given, reply);
	g_mutex_unlock(&mine.lock);
	return number;
}

/* `given`: a descriptor that goes with it, or -1. */
static int ask(const struct keeper_request *request, int given)
{
	struct keeper_reply reply;

	return ask_for(request, given, &reply);
}

bool keeper_ready(void)
{
	g_mutex_lock(&mine.lock);
	bool ready = ready_locked();
	g_mutex_unlock(&mine.lock);
	return ready;
}

bool keeper_socket(const char *path, dev_t device, ino_t inode)
{
	struct keeper_request request = {.kind = KEEPER_SOCKET, .device = device, .inode = inode};

	return g_strlcpy(request.path, path, sizeof(request.path)) < sizeof(request.path) && ask(&request, -1) == 0;
}

bool keeper_target(pid_t process)
{
	const struct keeper_request request = {.kind = KEEPER_TARGET, .thread = process};
	int number = ask(&request, -1);

	errno = -number;
	return number == 0;
}

bool keeper_settle(void)
{
	const struct keeper_request request = {.kind = KEEPER_SETTLE};

	return ask(&request, -1) == 0;
}

int keeper_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	struct keeper_request request = {.kind = KEEPER_EVENT, .thread = pid ? pid : gettid()};
	int number = -EINVAL;

	if (cpu == -1 && group == -1 && flags == PERF_FLAG_FD_CLOEXEC) {
		memcpy(request.attr, attr, MIN(sizeof(*attr), sizeof(request.attr)));
		number = ask(&request, -1);
	}
	if (number >= 0)
		return number;
	errno = -number;
	return -1;
}

bool keeper_owner(int fd)
{
	const struct keeper_request request = {.kind = KEEPER_OWNER, .thread = gettid()};
	int number = ask(&request, fd);

	errno = -number;
	return number == 0;
}

struct ucred keeper_identify(int fd)
{
	const struct keeper_request request = {.kind = KEEPER_IDENTIFY};
	const struct ucred here = identify(fd);
	struct keeper_reply reply;

	if (here.uid != OVERFLOW_ID && here.gid != OVERFLOW_ID)
		return here;
	return ask_for(&request, fd, &reply) == 0 ? reply.ids : here;
}

void keeper_end(void)
{
	struct keeper_reply reply;
	int descriptor;

	g_mutex_lock(&mine.lock);
	if (ready_locked()) {
		shutdown(mine.socket, SHUT_WR);
		receive(&reply, &descriptor); /* its end */
		close(mine.socket);
	}
	mine.runs = false;
	g_mutex_unlock(&mine.lock);
}
