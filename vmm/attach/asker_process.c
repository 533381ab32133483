// SPDX-License-Identifier: BSD-2-Clause
/* The process itself. It has one thread, which runs libvirt's events, too. */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/asker.h"
#include "attach/domain.h"
#include "lib/process/companion.h"

struct process {
	int requests, events;
	struct domain *domain; /* NULL: a QMP socket */
	struct monitor *monitor;
	GMainLoop *loop;
};

static bool send_all(int socket, const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n > 0) {
		ssize_t sent = send(socket, from, n, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		from += sent;
		n -= (size_t)sent;
	}
	return true;
}

static bool message_send(const struct process *process, struct asker_header header, const void *bytes, size_t n)
{
	header.bytes = (uint32_t)n;
	return send_all(process->requests, &header, sizeof(header)) && send_all(process->requests, bytes, n);
}

static bool failure_send(const struct process *process, const GError *error)
{
	const struct asker_header header = {
		.kind = ASKER_FAILED, .code = (uint32_t)error->code, .is_domain_error = error->domain == DOMAIN_ERROR};

	return message_send(process, header, error->message, strlen(error->message));
}

/* An engine that does not take its events misses them. */
static void on_domain_event(const char *what, void *data)
{
	const struct process *process = data;
	struct asker_word word = {0};

	g_strlcpy(word.text, what, sizeof(word.text));
	(void)send(process->events, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Before the answer with which it came. */
static void on_monitor_event(const char *name, void *data)
{
	const struct process *process = data;

	message_send(process, (struct asker_header){.kind = ASKER_EVENT}, name, strlen(name));
}

static bool answer(const struct process *process, const struct monitor_request *request)
{
	g_autoptr(GError) error = NULL;

	if (!monitor_request_valid(request)) {
		g_set_error(&error, MONITOR_ERROR, MONITOR_ERROR_COMMAND, "request %u is not allowed",
		            request->command);
		return failure_send(process, error);
	}
	g_autofree char *text = process->monitor->transport->transact(process->monitor, request, &error);

	if (!text)
		return failure_send(process, error);
	if (strlen(text) <= MONITOR_LINE_BYTES_MAX)
		return message_send(process, (struct asker_header){.kind = ASKER_ANSWER}, text, strlen(text));
	g_set_error(&error, MONITOR_ERROR, MONITOR_ERROR_ANSWER, "QEMU's answer has more than %u bytes",
	            MONITOR_LINE_BYTES_MAX);
	return failure_send(process, error);
}

static gboolean on_request(gint fd, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct process *process = data;
	struct monitor_request request;
	ssize_t n = recv(fd, &request, sizeof(request), MSG_WAITALL);

	if (n < 0 && errno == EINTR)
		return G_SOURCE_CONTINUE;
	if (n == (ssize_t)sizeof(request) && answer(process, &request))
		return G_SOURCE_CONTINUE;
	g_main_loop_quit(process->loop);
	return G_SOURCE_REMOVE;
}

static bool open_domain(struct process *process, const struct asker_config *config, struct asker_description *out,
                        GError **error)
{
	process->domain =
		domain_open(config->connect_uri, config->domain, !config->no_monitor, on_domain_event, process, error);
	if (!process->domain)
		return false;
	process->monitor = domain_monitor(process->domain);
	g_strlcpy(out->name, domain_name(process->domain), sizeof(out->name));
	g_strlcpy(out->uuid, domain_uuid(process->domain), sizeof(out->uuid));
	g_strlcpy(out->type, domain_type(process->domain), sizeof(out->type));
	if (domain_security(process->domain))
		g_strlcpy(out->security, domain_security(process->domain), sizeof(out->security));
	out->vsock_cid = domain_vsock_cid(process->domain);
	out->vcpus_max = domain_vcpus_max(process->domain);
	return true;
}

static bool open_socket(struct process *process, const struct asker_config *config, GError **error)
{
	process->monitor = monitor_open_socket(config->qmp_path, error);
	if (process->monitor)
		monitor_listen(process->monitor, on_monitor_event, process);
	return process->monitor != NULL;
}

/* What libvirt's library prints goes nowhere, and not to a socket that it has opened. */
static void streams_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* the lowest that is free */
	while (fd >= 0 && fd < STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Connected, and without what is not needed. */
static bool begin(struct process *process, const struct asker_config *config, struct asker_description *out,
                  GError **error)
{
	if (!(config->domain ? open_domain(process, config, out, error) : open_socket(process, config, error)))
		return false;
	if (!config->confine || config->confine())
		return true;
	g_set_error(
		error, MONITOR_ERROR, MONITOR_ERROR_GONE,
		"the process that asks libvirt and QEMU cannot give up its other rights: %s; --sandbox off goes on with them",
		g_strerror(errno));
	return false;
}

void asker_serve(const struct asker_config *config, int requests, int events)
{
	struct process process = {.requests = requests, .events = events};
	struct asker_description description = {0};
	g_autoptr(GError) error = NULL;

	companion_let_go("vprof-asker", requests, events);
	streams_open();
	if (!begin(&process, config, &description, &error)) {
		failure_send(&process, error);
		_exit(1);
	}
	if (!message_send(&process, (struct asker_header){.kind = ASKER_HELLO}, &description, sizeof(description)))
		_exit(1);
	process.loop = g_main_loop_new(NULL, FALSE);
	g_unix_fd_add(requests, G_IO_IN | G_IO_HUP, on_request, &process);
	g_main_loop_run(process.loop);
	_exit(0);
}
