// SPDX-License-Identifier: BSD-2-Clause
#include "run/agent_service.h"

#include <errno.h>
#include <unistd.h>

#include "lib/client/socket.h"
#include "lib/record/clock.h"
#include "run/agent_clock.h"
#include "run/agent_link.h"
#include "run/agent_mappings.h"
#include "run/agent_reads.h"
#include "run/agent_vsock.h"
#include "ui/message.h"
#include "ui/text.h"

/* For all processes; costs the guest as much as reading all /proc/PID/maps. */
#define MAPPINGS_INTERVAL_NS UINT64_C(5000000000)
#define FINISH_NS UINT64_C(3000000000)

/* At most two queries are buffered: a guest that greets repeatedly without reading gets no more. */
#define UNREAD_BYTES_MAX 65536u

#define EARLY_MARKS_MAX 256u

G_DEFINE_QUARK(vprof_agent_service_error, agent_service_error)

struct early_mark {
	struct vprof_agent_mark mark;
	char name[VPROF_AGENT_NAME_BYTES_MAX + 1];
};

struct agent_service {
	struct agent_link link; /* closed: not connected yet, the peer has gone, or it is not an agent */
	int listener;           /* of vsock; -1: none, or closed */
	uint32_t port, cid;     /* the port it listens on, and the guest's address */
	unsigned refused;
	struct recorder *recorder;
	struct agent_clock clock;
	GArray *early; /* struct early_mark: that came before its clock was known */
	struct agent_mappings *mappings;
	struct agent_reads reads;
	bool greeted;
	struct message_rate complaints;
};

bool agent_service_check(const char *where, GError **error)
{
	uint32_t port;

	return !g_str_has_prefix(where, AGENT_VSOCK_PREFIX) || agent_vsock_port(where, &port, error);
}

static bool open_vsock(struct agent_service *service, const char *where, const json_t *guest, GError **error)
{
	if (!agent_vsock_port(where, &service->port, error))
		return false;
	service->listener = agent_vsock_listen(service->port, error);
	if (service->listener < 0)
		return false;
	service->cid = (uint32_t)member_number(guest, "vsock-cid", 0);
	if (service->cid == 0)
		g_set_error(
			error, AGENT_SERVICE_ERROR, AGENT_SERVICE_ERROR_CID,
			"the guest's vsock address is unknown: it is not a libvirt domain with <vsock><cid address=.../></vsock> in its XML; use a virtio-serial port");
	return service->cid != 0;
}

static bool open_socket(struct agent_service *service, const char *path, GError **error)
{
	service->link.fd = client_socket_connect(path);
	if (service->link.fd < 0)
		g_set_error(
			error, AGENT_SERVICE_ERROR, AGENT_SERVICE_ERROR_CONNECT,
			"cannot connect to %s: %s; give the source of the guest's <channel type='unix'> with the target org.vprof.agent.0, which serves one client at a time",
			path, g_strerror(errno));
	return service->link.fd >= 0;
}

struct agent_service *agent_service_new(const char *where, const json_t *guest, struct recorder *recorder,
                                        GError **error)
{
	struct agent_service *service = g_new0(struct agent_service, 1);

	service->recorder = recorder;
	service->listener = -1;
	service->early = g_array_new(FALSE, FALSE, sizeof(struct early_mark));
	service->mappings = agent_mappings_new(recorder);
	agent_reads_init(&service->reads, recorder);
	agent_link_init(&service->link, -1);
	if (g_str_has_prefix(where, AGENT_VSOCK_PREFIX) ? open_vsock(service, where, guest, error)
	                                                : open_socket(service, where, error))
		return service;
	agent_service_free(service);
	return NULL;
}

static void stop_listening(struct agent_service *service)
{
	if (service->listener >= 0)
		close(service->listener);
	service->listener = -1;
}

/* The stream is broken; nothing more is read from it. */
static void leave_alone(struct agent_service *service, const char *why)
{
	warn("%s; its reports are ignored from now on", why);
	agent_link_close(&service->link);
	stop_listening(service);
}

void agent_service_free(struct agent_service *service)
{
	if (!service)
		return;
	warn_rate_end(&service->complaints);
	agent_link_clear(&service->link);
	stop_listening(service);
	g_array_unref(service->early);
	agent_mappings_free(service->mappings);
	g_free(service);
}

/* A restarted agent starts a new stream. */
static void accept_agent(struct agent_service *service)
{
	const unsigned refused = service->refused;
	int fd = agent_vsock_accept(service->listener, service->cid, &service->refused);

	if (refused == 0 && service->refused != 0)
		warn("refused a connection from a guest other than %u to vsock port %u", service->cid, service->port);
	if (fd < 0)
		return;
	agent_link_clear(&service->link);
	agent_link_init(&service->link, fd);
}

/* ---- what the agent says ---- */

static void take_mark(struct agent_service *service, const struct vprof_agent_mark *mark, const char *name)
{
	uint64_t time_ns;
	bool begins;

	if (agent_clock_mark(&service->clock, mark, &begins, &time_ns))
		recorder_mark(service->recorder, name, begins, time_ns);
}

/* A restarted agent is asked for its time again; marks that arrive meanwhile are kept until its clock is known. */
static void take_mark_later(struct agent_service *service, const struct vprof_agent_mark *mark, const char *name)
{
	struct early_mark early = {.mark = *mark};

	g_strlcpy(early.name, name, sizeof(early.name));
	if (service->early->len < EARLY_MARKS_MAX)
		g_array_append_val(service->early, early);
	else
		warn_at_rate(&service->complaints,
		             "mark %s of the agent in the guest is lost: %u came before its clock was known", name,
		             EARLY_MARKS_MAX);
}

static void take_pong(struct agent_service *service, const struct vprof_agent_pong *pong)
{
	if (!agent_clock_take(&service->clock, pong))
		return;
	for (guint i = 0; i < service->early->len; i++) {
		const struct early_mark *early = &g_array_index(service->early, struct early_mark, i);

		take_mark(service, &early->mark, early->name);
	}
	g_array_set_size(service->early, 0);
}

/* Also for a restarted agent, e.g. after a reset. */
static void take_hello(struct agent_service *service, const struct vprof_agent_hello *hello)
{
	if (service->early->len != 0)
		warn_at_rate(&service->complaints,
		             "%u marks of the agent in the guest are lost: it began anew before its clock was known",
		             service->early->len);
	service->greeted = true;
	g_array_set_size(service->early, 0);
	service->clock = (struct agent_clock){0};
	agent_clock_ask(&service->clock, service->link.to_agent);
	agent_mappings_greet(service->mappings, hello);
	agent_reads_greet(&service->reads, hello);
}

static void take_message(struct agent_service *service, const struct agent_message *message)
{
	switch (message->type) {
	case VPROF_AGENT_HELLO:
		take_hello(service, &message->hello);
		break;
	case VPROF_AGENT_PONG:
		take_pong(service, &message->pong);
		break;
	case VPROF_AGENT_MARK:
		if (service->clock.clock.known)
			take_mark(service, &message->mark, message->text);
		else if (service->greeted)
			take_mark_later(service, &message->mark, message->text);
		break;
	case VPROF_AGENT_TASK:
	case VPROF_AGENT_MAPPING:
	case VPROF_AGENT_MAPPINGS_END:
		agent_mappings_take(service->mappings, message);
		break;
	case VPROF_AGENT_READ_DONE:
		agent_reads_take(&service->reads, &message->read_done);
		break;
	case VPROF_AGENT_COMPLAINT:
		warn_at_rate(&service->complaints, "the agent in the guest: %s", message->text);
		break;
	default: /* answers without a query */
		break;
	}
}

static void receive(struct agent_service *service)
{
	ssize_t n = agent_link_receive(&service->link);
	struct agent_message message;
	g_autoptr(GError) error = NULL;

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		agent_link_close(&service->link);
	if (n <= 0)
		return;
	while (agent_stream_next(service->link.stream, &message, &error))
		take_message(service, &message);
	if (error)
		leave_alone(service, error->message);
}

/* ---- the loop's view ---- */

struct pollfd agent_service_poll(const struct agent_service *service)
{
	if (service->link.fd < 0)
		return (struct pollfd){.fd = service->listener, .events = POLLIN};
	return agent_link_poll(&service->link, POLLIN);
}

static void ask(struct agent_service *service)
{
	if (service->clock.pongs != 0 && agent_clock_is_due(&service->clock))
		agent_clock_ask(&service->clock, service->link.to_agent);
	if (service->greeted && agent_mappings_is_due(service->mappings, MAPPINGS_INTERVAL_NS))
		agent_mappings_ask(service->mappings, service->link.to_agent, 0);
	agent_reads_ask(&service->reads, service->link.to_agent);
}

void agent_service_serve(struct agent_service *service, const struct pollfd *entry)
{
	if (service->link.fd < 0 && service->listener >= 0 && entry->revents != 0)
		accept_agent(service);
	else if (service->link.fd >= 0 && entry->revents != 0)
		receive(service);
	if (service->link.fd >= 0 && service->link.to_agent->len > UNREAD_BYTES_MAX)
		leave_alone(service, "the agent in the guest does not read what it is asked");
	if (service->link.fd < 0)
		return;
	ask(service);
	agent_link_transmit(&service->link);
}

/* False: nothing more to wait for. */
static bool finish_turn(struct agent_service *service, int impatience, uint64_t until_ns)
{
	struct pollfd entries[] = {agent_link_poll(&service->link, POLLIN), {.fd = impatience, .events = POLLIN}};
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (service->link.fd < 0 || now_ns >= until_ns)
		return false;
	if (poll(entries, G_N_ELEMENTS(entries), (int)((until_ns - now_ns) / 1000000) + 1) < 0 && errno != EINTR)
		return false;
	if (entries[0].revents != 0)
		receive(service);
	return entries[1].revents == 0;
}

static bool is_asking(const struct agent_service *service)
{
	return service->clock.asking || agent_mappings_is_asking(service->mappings) || service->reads.asking;
}

/*
 * The answer to a question that is open may have passed by what has begun since. The answer about the clock comes
 * behind all marks that were written before the question.
 */
void agent_service_finish(struct agent_service *service, int impatience)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + FINISH_NS;
	bool asked = false;

	if (!service->greeted)
		return;
	recorder_reads_finish(service->recorder);
	do {
		if (!asked && !is_asking(service)) {
			agent_clock_ask(&service->clock, service->link.to_agent);
			if (agent_mappings_names_past(service->mappings))
				agent_mappings_ask(service->mappings, service->link.to_agent, 0);
			asked = true;
		}
		agent_reads_ask(&service->reads, service->link.to_agent);
		if (service->link.fd >= 0)
			agent_link_transmit(&service->link);
	} while ((!asked || is_asking(service)) && finish_turn(service, impatience, until_ns));
}

void agent_service_say_end(const struct agent_service *service)
{
	if (service->greeted)
		return;
	if (service->cid != 0)
		warn("no agent in the guest has said anything; does `vprof-agent --vsock %u` run there?",
		     service->port);
	else
		warn("no agent in the guest has said anything; does `vprof-agent --device /dev/virtio-ports/org.vprof.agent.0` run there?");
}
