// SPDX-License-Identifier: BSD-2-Clause
#include "engine/guest_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/guest_list.h"
#include "lib/process/program_find.h"
#include "ui/text.h"

#define PROGRAM "vprof-attach"
#define AGAIN_US (1 * (int64_t)G_USEC_PER_SEC)   /* after libvirt went away */
#define ABSENT_US (30 * (int64_t)G_USEC_PER_SEC) /* while it is not there */
#define KEEP_US (60 * (int64_t)G_USEC_PER_SEC)
#define ANSWER_US (5 * (int64_t)G_USEC_PER_SEC)
#define LINE_BYTES_MAX (16u << 20)

/* ---- the process that hears libvirt ---- */

static void follower_end(struct guest_watch *watch)
{
	const int64_t now_us = g_get_monotonic_time();

	if (watch->follower == 0)
		return;
	close(watch->fd);
	kill(watch->follower, SIGTERM);
	waitpid(watch->follower, NULL, 0);
	watch->follower = 0;
	g_string_truncate(watch->partial, 0);
	watch->due_us = now_us + (watch->lost_us == 0 ? AGAIN_US : ABSENT_US);
	if (watch->lost_us == 0)
		watch->lost_us = now_us;
}

/* Its standard input and output are one socket. */
static bool follower_spawn(struct guest_watch *watch, int fd, GError **error)
{
	g_autofree char *path = program_find(PROGRAM, error);
	g_autoptr(GPtrArray) arguments = g_ptr_array_new();

	if (!path)
		return false;
	g_ptr_array_add(arguments, path);
	g_ptr_array_add(arguments, (char *)"--list");
	g_ptr_array_add(arguments, (char *)"--follow");
	if (watch->options.connect) {
		g_ptr_array_add(arguments, (char *)"--connect");
		g_ptr_array_add(arguments, watch->options.connect);
	}
	g_ptr_array_add(arguments, NULL);
	return g_spawn_async_with_fds(NULL, (char **)arguments->pdata, NULL,
	                              G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
	                              &watch->follower, fd, fd, -1, error);
}

static void follower_start(struct guest_watch *watch)
{
	g_autoptr(GError) error = NULL;
	int sockets[2];

	watch->due_us = g_get_monotonic_time() + ABSENT_US;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
		return;
	if (!watch->partial)
		watch->partial = g_string_new(NULL);
	if (follower_spawn(watch, sockets[1], &error)) {
		watch->fd = sockets[0];
	} else {
		g_free(watch->why);
		watch->why = g_strdup(error->message);
		watch->follower = 0;
		close(sockets[0]);
	}
	close(sockets[1]);
}

/* A list of domains, or {"why"}. */
static void line_take(struct guest_watch *watch, const char *text, size_t n)
{
	json_t *line = json_printable(json_loadb(text, n, 0, NULL)), *domain;
	size_t i;

	watch->lines++;
	if (json_is_array(line)) {
		json_array_foreach(line, i, domain)
			json_object_set_new(domain, "vmm", json_string(GUEST_LIST_DOMAINS_VMM));
		json_decref(watch->domains);
		watch->domains = json_incref(line);
		watch->lost_us = 0;
		g_clear_pointer(&watch->why, g_free);
	} else if (member_text(line, "why")) {
		g_free(watch->why);
		watch->why = g_strdup(member_text(line, "why"));
	}
	json_decref(line);
}

/* Takes what there is. */
static void follower_read(struct guest_watch *watch)
{
	char bytes[8192], *end;
	ssize_t n;

	while ((n = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0 || (n < 0 && errno == EINTR)) {
		g_string_append_len(watch->partial, bytes, MAX(n, 0));
		while ((end = memchr(watch->partial->str, '\n', watch->partial->len))) {
			const size_t bytes_of_line = (size_t)(end - watch->partial->str);

			line_take(watch, watch->partial->str, bytes_of_line);
			g_string_erase(watch->partial, 0, (gssize)bytes_of_line + 1);
		}
		if (watch->partial->len > LINE_BYTES_MAX) {
			follower_end(watch);
			return;
		}
	}
	if (n == 0 || errno != EAGAIN)
		follower_end(watch);
}

/* Until it has said something, or has ended. */
static void follower_wait(struct guest_watch *watch)
{
	const int64_t until_us = g_get_monotonic_time() + ANSWER_US;
	const unsigned lines = watch->lines;
	int64_t left_us;

	while (watch->follower != 0 && watch->lines == lines && (left_us = until_us - g_get_monotonic_time()) > 0) {
		struct pollfd entry = {.fd = watch->fd, .events = POLLIN};

		if (poll(&entry, 1, (int)(left_us / 1000) + 1) > 0)
			follower_read(watch);
	}
}

/* ---- the guests ---- */

static void domains_look(struct guest_watch *watch, bool ask)
{
	const int64_t now_us = g_get_monotonic_time();

	if (watch->follower != 0)
		follower_read(watch);
	if (watch->follower == 0 && now_us >= watch->due_us) {
		follower_start(watch);
		follower_wait(watch);
	} else if (watch->follower != 0 && ask) {
		if (send(watch->fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 && errno != EAGAIN)
			follower_end(watch);
		follower_wait(watch);
	}
	if (watch->lost_us != 0 && now_us - watch->lost_us > KEEP_US)
		json_decref(g_steal_pointer(&watch->domains));
}

json_t *guest_watch_look(struct guest_watch *watch)
{
	g_autoptr(GArray) found = guest_list_processes(NULL);
	json_t *processes = guest_list_join(NULL, found);

	domains_look(watch, !json_equal(processes, watch->processes));
	json_decref(watch->processes);
	watch->processes = processes;
	if (watch->options.connect)
		return watch->domains ? json_deep_copy(watch->domains) : json_array();
	return guest_list_join(watch->domains, found);
}

int guest_watch_fd(const struct guest_watch *watch)
{
	return watch->follower != 0 ? watch->fd : -1;
}

void guest_watch_deinit(struct guest_watch *watch)
{
	follower_end(watch);
	if (watch->partial)
		g_string_free(watch->partial, TRUE);
	g_free(watch->why);
	json_decref(watch->processes);
	json_decref(watch->domains);
}
