// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/message.h"
#include "ui/text.h"

#define PAUSE_FIRST_US G_USEC_PER_SEC
#define PAUSE_MAX_US (300 * (int64_t)G_USEC_PER_SEC)
#define STEADY_US (60 * (int64_t)G_USEC_PER_SEC) /* what ran that long begins anew with the first pause */
#define LINE_BYTES_MAX (4u << 20)
#define CHILD_FD 3

/* ---- in the supervisor ---- */

void daemon_child_init(struct daemon_child *child)
{
	*child = (struct daemon_child){.fd = -1, .partial = g_string_new(NULL)};
}

static void child_close(struct daemon_child *child)
{
	if (child->fd >= 0)
		close(child->fd);
	child->fd = -1;
	g_string_truncate(child->partial, 0);
}

void daemon_child_clear(struct daemon_child *child)
{
	if (child->pid != 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	child_close(child);
	g_string_free(child->partial, TRUE);
}

/* Not SIG_IGN, which the engine would inherit. */
static void do_nothing(int number)
{
	(void)number;
}

/* Signals to the process group are for the supervisor; none of its descriptors stays open. */
static void child_settle(const char *name, int fd)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	const struct sigaction nothing = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
	sigset_t none;

	for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
		sigaction(numbers[i], &nothing, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, name);
	/* A duplicate has no FD_CLOEXEC, and the engine would keep the socket open. */
	if (fd != CHILD_FD)
		dup3(fd, CHILD_FD, O_CLOEXEC);
	close_range(CHILD_FD + 1, ~0u, 0);
}

void daemon_child_start(struct daemon_child *child, const char *name, daemon_child_main *main, void *data)
{
	int sockets[2] = {-1, -1};

	child->started_us = g_get_monotonic_time();
	child->stop_us = 0;
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0)
		child->pid = fork();
	if (child->pid == 0 && sockets[0] >= 0) {
		child_settle(name, sockets[1]);
		exit(main(CHILD_FD, data));
	}
	if (sockets[1] >= 0)
		close(sockets[1]);
	if (child->pid > 0) {
		child->fd = sockets[0];
		return;
	}
	warn("cannot start a process for %s: %s", name, g_strerror(errno));
	if (sockets[0] >= 0)
		close(sockets[0]);
	child->pid = 0;
	daemon_child_ended(child, child->started_us);
}

static void lines_take(struct daemon_child *child, daemon_child_line *take, void *data)
{
	char *end;

	while ((end = memchr(child->partial->str, '\n', child->partial->len))) {
		const size_t n = (size_t)(end - child->partial->str);
		json_t *line = json_loadb(child->partial->str, n, 0, NULL);

		g_string_erase(child->partial, 0, (gssize)n + 1);
		if (json_is_object(line))
			take(line, data);
		json_decref(line);
	}
}

void daemon_child_read(struct daemon_child *child, daemon_child_line *take, void *data)
{
	char bytes[8192];
	ssize_t n;

	while (child->fd >= 0 && (n = recv(child->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break;
		g_string_append_len(child->partial, bytes, n);
		lines_take(child, take, data);
		if (child->partial->len > LINE_BYTES_MAX)
			break;
	}
	child_close(child);
}

void daemon_child_stop(struct daemon_child *child)
{
	if (child->pid == 0 || child->stop_us != 0)
		return;
	child->stop_us = g_get_monotonic_time();
	if (child->fd >= 0)
		shutdown(child->fd, SHUT_WR);
}

bool daemon_child_reap(struct daemon_child *child)
{
	const int64_t now_us = g_get_monotonic_time();

	if (child->pid == 0)
		return false;
	if (child->stop_us != 0 && now_us - child->stop_us > DAEMON_CHILD_STOP_US)
		kill(child->pid, SIGKILL);
	if (waitpid(child->pid, NULL, WNOHANG) != child->pid)
		return false;
	child->pid = 0;
	child_close(child);
	if (child->stop_us != 0) {
		child->pause_us = child->due_us = 0;
	} else {
		child->restarts++;
		daemon_child_ended(child, now_us);
	}
	return true;
}

void daemon_child_ended(struct daemon_child *child, int64_t now_us)
{
	if (now_us - child->started_us >= STEADY_US)
		child->pause_us = 0;
	child->pause_us = child->pause_us == 0 ? PAUSE_FIRST_US : MIN(child->pause_us * 2, PAUSE_MAX_US);
	child->due_us = now_us + child->pause_us;
}

/* ---- in the child ---- */

bool daemon_child_say(int fd, json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);
	g_autoptr(GString) bytes = g_string_new(text);
	size_t sent = 0;

	free(text);
	json_decref(line);
	g_string_append_c(bytes, '\n');
	while (sent < bytes->len) {
		const ssize_t n = send(fd, bytes->str + sent, bytes->len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return false;
		sent += n > 0 ? (size_t)n : 0;
	}
	return true;
}

bool daemon_child_wait(int fd, int timeout_ms)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};

	return poll(&end, 1, timeout_ms) > 0;
}
