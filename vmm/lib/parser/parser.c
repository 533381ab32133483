// SPDX-License-Identifier: BSD-2-Clause
#include "lib/parser/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/process/program_find.h"

#define PROGRAM "vprof-parse"
/* A process that has reached its own limit of time is ended before. */
#define REPLY_TIMEOUT_MS ((int)(VPROF_PARSE_SECONDS + 10) * 1000)
#define REASON_BYTES_MAX 512u

G_DEFINE_QUARK(vprof_parser_error, parser_error)

/* One question at a time holds the lock. */
static struct {
	GMutex lock;
	int socket;      /* [lock, and end_lock to change it] -1: there is none (yet) */
	pid_t pid;       /* [lock] while there is a socket */
	GError *lost;    /* [lock] why there is none and will be none: it could not be started, or gave no answer */
	GMutex end_lock; /* after `lock`: nobody closes the socket meanwhile */
	bool abandoned;  /* [end_lock] */
} parser = {.socket = -1};

static bool unavailable(GError **error, const char *what, int reason)
{
	g_set_error(error, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE, "cannot be read: %s " PROGRAM ": %s", what,
	            g_strerror(reason));
	return false;
}

/* Its output is no one's: it can be made to say anything. A sanitizer's report goes to the test that runs it. */
static int spawn(const char *path, int theirs, pid_t *pid)
{
	char *argv[] = {(char *)PROGRAM, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, theirs, VPROF_PARSE_FD);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
#if !defined(VPROF_SANITIZED)
	posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
#endif
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	int failed = posix_spawn(pid, path, &actions, &attributes, argv, environ);

	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static void socket_set(int socket)
{
	g_mutex_lock(&parser.end_lock);
	if (parser.socket >= 0)
		close(parser.socket);
	parser.socket = socket;
	if (parser.abandoned && socket >= 0)
		shutdown(socket, SHUT_RDWR);
	g_mutex_unlock(&parser.end_lock);
}

void parser_abandon(void)
{
	g_mutex_lock(&parser.end_lock);
	parser.abandoned = true;
	if (parser.socket >= 0)
		shutdown(parser.socket, SHUT_RDWR);
	g_mutex_unlock(&parser.end_lock);
}

static bool begin_locked(GError **error)
{
	int ends[2];
	g_autofree char *path = program_find(PROGRAM, error);

	if (!path) {
		g_prefix_error(error, "cannot be read: ");
		(*error)->domain = PARSER_ERROR, (*error)->code = PARSER_ERROR_UNAVAILABLE;
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return unavailable(error, "cannot make a socket for", errno);
	int failed = spawn(path, ends[1], &parser.pid);

	close(ends[1]);
	if (failed) {
		close(ends[0]);
		return unavailable(error, "cannot start", failed);
	}
	socket_set(ends[0]);
	return true;
}

/* Says the same each time. */
static bool lost_tell(GError **error)
{
	g_propagate_error(error, g_error_copy(parser.lost));
	return false;
}

static bool start_locked(GError **error)
{
	return parser.socket >= 0 || (!parser.lost && begin_locked(&parser.lost)) || lost_tell(error);
}

bool parser_start(GError **error)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&parser.lock);

	(void)locker;
	return start_locked(error);
}

void parser_stop(void)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&parser.lock);

	(void)locker;
	if (parser.socket < 0)
		return;
	shutdown(parser.socket, SHUT_RDWR); /* it waits for the next question */
	socket_set(-1);
	while (waitpid(parser.pid, NULL, 0) < 0 && errno == EINTR)
		;
}

GBytes *parser_ask_mapped(const struct vprof_parse_request *request, int input, GError **error)
{
	const int answer = parser_ask(request, input, error);
	GBytes *mapped = answer >= 0 ? sealed_map(answer) : NULL;

	if (answer < 0)
		return NULL;
	close(answer);
	if (!mapped)
		g_set_error_literal(error, PARSER_ERROR, PARSER_ERROR_UNAVAILABLE,
		                    "cannot be read: the answer cannot be mapped");
	return mapped;
}

bool parser_add_name(struct vprof_parse_request *request, const char *name)
{
	size_t n = strlen(name) + 1;

	if (n > sizeof(request->text) - request->text_bytes)
		return false;
	memcpy(request->text + request->text_bytes, name, n);
	request->text_bytes += (uint32_t)n;
	return true;
}

static bool send_request(const struct vprof_parse_request *request, int input, int answer)
{
	struct vprof_parse_request sent = *request;
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr alignment;
	} control = {0};
	struct iovec iov = {&sent, sizeof(sent)};
	struct msghdr message = {.msg_iov = &iov,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	sent.protocol = VPROF_PARSE_PROTOCOL;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(header), (int[]){input, answer}, 2 * sizeof(int));
	ssize_t n;
	do
		n = sendmsg(parser.socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(sent);
}

static bool receive_reply(struct vprof_parse_reply *reply)
{
	struct pollfd ready = {.fd = parser.socket, .events = POLLIN};
	ssize_t n;

	do
		n = poll(&ready, 1, REPLY_TIMEOUT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ETIMEDOUT;
	if (n <= 0)
		return false;
	do
		n = recv(parser.socket, reply, sizeof(*reply), 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && n != (ssize_t)sizeof(*reply))
		errno = EPIPE;
	return n == (ssize_t)sizeof(*reply);
}

/* Whether a limit ends processes by this signal. */
static const char *limit_of(int signal)
{
	switch (signal) {
	case SIGXCPU:
		return "its limit of " G_STRINGIFY(VPROF_PARSE_CPU_SECONDS) " s of CPU time";
	case SIGALRM:
		return "its limit of " G_STRINGIFY(VPROF_PARSE_SECONDS) " s";
	case SIGKILL:
		return "the end of this host's memory";
	case SIGTRAP: /* so GLib ends a program that gets no memory */
		return "its limit of memory";
	case SIGXFSZ:
		return "the limit of what it may unpack to";
	default:
		return NULL;
	}
}

static void explain_signal(int signal, GError **error)
{
	const char *limit = limit_of(signal);

	if (limit)
		g_set_error(error, PARSER_ERROR, PARSER_ERROR_LIMIT, "cannot be read: " PROGRAM " has reached %s",
		            limit);
	else
		g_set_error(error, PARSER_ERROR, PARSER_ERROR_CRASHED,
		            "cannot be read: " PROGRAM
		            " was ended by signal %d (%s) over it: the file is damaged, or made to do harm",
		            signal, strsignal(signal));
}

/* A sentence of the other side's, as it may be printed. */
static void explain_refusal(int answer, GError **error)
{
	char text[REASON_BYTES_MAX + 1] = "";
	ssize_t n = pread(answer, text, REASON_BYTES_MAX, 0);

	text[MAX(n, 0)] = '\0';
	for (char *at = text; *at; at++)
		if (!g_ascii_isprint(*at))
			*at = '?';
	g_set_error(error, PARSER_ERROR, PARSER_ERROR_REFUSED, PARSER_UNREADABLE "%s", text);
}

static bool end_check(const struct vprof_parse_reply *reply, int answer, GError **error)
{
	switch (reply->end) {
	case VPROF_PARSE_DONE:
		return true;
	case VPROF_PARSE_REFUSED:
		explain_refusal(answer, error);
		return false;
	case VPROF_PARSE_KILLED:
		explain_signal((int)MIN(reply->number, 64u), error);
		return false;
	default:
		return unavailable(error, "cannot make a process in", (int)MIN(reply->number, 4095u));
	}
}

static bool ask_locked(const struct vprof_parse_request *request, int input, int answer, GError **error)
{
	struct vprof_parse_reply reply;

	if (!start_locked(error))
		return false;
	if (send_request(request, input, answer) && receive_reply(&reply))
		return end_check(&reply, answer, error);
	int reason = errno;
	/* What comes later would be the answer to another question. */
	socket_set(-1);
	unavailable(&parser.lost, "there is no answer from", reason);
	return lost_tell(error);
}

int parser_ask(const struct vprof_parse_request *request, int input, GError **error)
{
	int answer = sealed_new("vprof-parsed");
	bool done;

	if (answer < 0) {
		unavailable(error, "cannot make memory for", errno);
		return -1;
	}
	g_mutex_lock(&parser.lock);
	done = ask_locked(request, input, answer, error);
	g_mutex_unlock(&parser.lock);
	if (done && !sealed_finish(answer))
		done = unavailable(error, "cannot seal the answer of", errno);
	if (done)
		return answer;
	close(answer);
	return -1;
}
