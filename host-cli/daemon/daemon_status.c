// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "lib/client/socket.h"
#include "ui/text.h"
#include "ui/units.h"

#define ANSWER_S 5
#define ANSWER_BYTES_MAX (64u << 20)

G_DEFINE_QUARK(vprof_daemon_status_error, daemon_status_error)

static bool answer_read(int fd, GString *answer)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	char bytes[8192];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0 && answer->len < ANSWER_BYTES_MAX)
		g_string_append_len(answer, bytes, n);
	return n == 0;
}

json_t *daemon_status_ask(const struct daemon_config *config, GError **error)
{
	g_autoptr(GString) answer = g_string_new(NULL);
	json_t *status = NULL;
	json_error_t why;
	int fd = client_socket_connect(config->socket);

	if (fd < 0) {
		g_set_error(error, DAEMON_STATUS_ERROR, DAEMON_STATUS_ERROR_NONE,
		            "no daemon serves %s: %s; `systemctl start vprofd` or `vprof daemon` starts it",
		            config->socket, g_strerror(errno));
		return NULL;
	}
	if (answer_read(fd, answer))
		status = json_printable(json_loadb(answer->str, answer->len, 0, &why));
	close(fd);
	if (!status)
		g_set_error(error, DAEMON_STATUS_ERROR, DAEMON_STATUS_ERROR_NONE, "%s gave no status", config->socket);
	return status;
}

static const char *text_or(const json_t *object, const char *name, const char *otherwise)
{
	const char *text = member_text(object, name);

	return text ? text : otherwise;
}

static void push_print(const json_t *push, FILE *to)
{
	g_autofree char *waiting = NULL;

	if (!json_is_object(push)) {
		fprintf(to, "# push     off: [push] has no url\n");
		return;
	}
	waiting = units_format_bytes(member_number(push, "spooled-bytes", 0));
	fprintf(to, "# push     %s, %s: %" PRIu64 " profiles sent, %" PRIu64 " waiting (%s)", text_or(push, "api", "?"),
	        text_or(push, "url", "?"), member_number(push, "sent", 0), member_number(push, "spooled", 0), waiting);
	fprintf(to, "; lost: %" PRIu64 " refused, %" PRIu64 " too old, %" PRIu64 " of a full spool\n",
	        member_number(push, "refused", 0), member_number(push, "too-old", 0),
	        member_number(push, "dropped", 0));
	if (member_text(push, "why"))
		fprintf(to, "# server   %s\n", member_text(push, "why"));
}

static uint64_t lost_sum(const json_t *guest)
{
	json_t *lost = json_object_get(guest, "lost"), *value;
	uint64_t sum = 0;
	const char *cause;

	json_object_foreach(lost, cause, value)
		sum += (uint64_t)json_integer_value(value);
	return sum;
}

static void guest_print(const json_t *guest, FILE *to)
{
	const char *what = text_or(guest, "why", text_or(guest, "profiles-why", text_or(guest, "release", "")));

	fprintf(to, "%-24s %8" PRIu64 " %5" PRIu64 " %-9s %-8s %9" PRIu64 " %6" PRIu64 " %8" PRIu64 "  %s\n",
	        text_or(guest, "name", "?"), member_number(guest, "pid", 0), member_number(guest, "vcpus", 0),
	        text_or(guest, "state", "?"), text_or(guest, "route", "-"), member_number(guest, "samples", 0),
	        lost_sum(guest), member_number(guest, "profiles", 0), what);
}

void daemon_status_print(const json_t *status, FILE *to)
{
	const json_t *guests = json_object_get(status, "guests"), *guest;
	size_t i;

	fprintf(to, "# daemon   vprof %s, process %" PRIu64 "\n", text_or(status, "vprof", "?"),
	        member_number(json_object_get(status, "cost"), "pid", 0));
	push_print(json_object_get(status, "push"), to);
	fprintf(to, "# metrics  %s\n", text_or(status, "metrics", "off"));
	if (json_array_size(guests) > 0)
		fprintf(to, "%-24s %8s %5s %-9s %-8s %9s %6s %8s  %s\n", "GUEST", "PID", "VCPUS", "STATE", "ROUTE",
		        "SAMPLES", "LOST", "PROFILES", "KERNEL");
	json_array_foreach(guests, i, guest)
		guest_print(guest, to);
}
