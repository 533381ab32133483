// SPDX-License-Identifier: BSD-2-Clause
/* Events: what the clients are told without a request. */
#include "control/events.h"

#include "control/method_priv.h"
#include "lib/record/clock.h"

#define LOST_INTERVAL_S 1u
/* Registers and the last console lines; \u00XX for each byte, with a message, still fits into a line. */
#define DETAILS_BYTES_MAX 8192u

static json_t *timestamp_now(void)
{
	int64_t now_us = g_get_real_time();

	return json_pack("{s:I, s:I}", "seconds", (json_int_t)(now_us / G_USEC_PER_SEC), "microseconds",
	                 (json_int_t)(now_us % G_USEC_PER_SEC));
}

void control_server_event(struct control_server *server, const char *name, json_t *data)
{
	json_auto_t *event = json_pack("{s:s, s:o, s:o}", "event", name, "data", data, "timestamp", timestamp_now());

	for (guint i = 0; i < server->connections->len; i++) {
		struct connection *connection = g_ptr_array_index(server->connections, i);

		if (connection->negotiated && !connection->broken)
			connection_send(connection, event, NULL, 0, NULL);
	}
}

/* ---- the events ---- */

const struct method_member control_guest_end_members[] = {
	{"reason", "why the guest ended, as power-off or panic", MEMBER_STRING},
	{"code", "exit code of the guest", MEMBER_INTEGER},
	{"message", "the reason in words", MEMBER_STRING, .nullable = true},
	{"details", "registers and the last lines of the console, after a crash", MEMBER_STRING, .optional = true},
	{"console", "the last lines of the console", MEMBER_STRING, .optional = true},
	{0},
};

static const struct method_member kernel_members[] = {
	{"release", "release of the kernel, as `uname -r` prints it", MEMBER_STRING, .nullable = true},
	{"build-id", "build-id of the kernel", MEMBER_STRING, .nullable = true},
	{"slide", "offset to add to the addresses in the image", MEMBER_ADDRESS},
	{0},
};

static const struct method_member pause_members[] = {
	{"pause", "how it stands still, as \"is paused\"; null: it runs again", MEMBER_STRING, .nullable = true},
	{"time-ns", "when this was seen, by CLOCK_MONOTONIC", MEMBER_INTEGER},
	{0},
};

static const struct method_member phase_members[] = {
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"value", "value of the mark, 0 to 255", MEMBER_INTEGER},
	{"time-ns", "time of the mark, by CLOCK_MONOTONIC", MEMBER_INTEGER},
	{"dropped", "number of marks before this one that exceeded the rate limit", MEMBER_INTEGER, .optional = true},
	{0},
};

static const struct method_member marker_members[] = {
	{"name", "name of the phase", MEMBER_STRING},
	{"kind", "begin or end", MEMBER_STRING},
	{"time-ns", "time of the mark, by CLOCK_MONOTONIC", MEMBER_INTEGER},
	{"number", "number of the mark, as marker-add returned it", MEMBER_INTEGER},
	{0},
};

static const struct method_member lost_members[] = {
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"lost", "samples lost since the last such event", MEMBER_INTEGER},
	{0},
};

const struct control_event_type control_events[] = {
	{VPROF_EVENT_GUEST_ENDED, "the guest has ended", control_guest_end_members},
	{VPROF_EVENT_GUEST_KERNEL,
         "an attached guest was reset, and its kernel has another address or is another one; kernel-image returns it",
         kernel_members},
	{VPROF_EVENT_GUEST_PAUSE, "an attached guest was paused, or runs again", pause_members},
	{VPROF_EVENT_GUEST_PHASE, "the guest wrote a phase mark", phase_members},
	{VPROF_EVENT_MARKER, "a client marked a phase", marker_members},
	{VPROF_EVENT_SAMPLES_LOST, "a ring was full; at most one event per second and vCPU", lost_members},
	{0},
};

/* ---- the guest ---- */

json_t *control_guest_end(const struct guest *guest)
{
	const struct guest_end *end = &guest->end;
	json_t *object =
		json_pack("{s:s, s:I, s:o}", "reason", guest_end_name(end->reason), "code", (json_int_t)end->code,
	                  "message", control_text(end->message, CONTROL_MESSAGE_BYTES_MAX));

	if (end->details)
		json_object_set_new(object, "details", control_text(end->details, DETAILS_BYTES_MAX));
	else if (end->console)
		json_object_set_new(object, "console", control_text(end->console, DETAILS_BYTES_MAX));
	return object;
}

void control_server_guest_ended(struct control_server *server)
{
	control_server_event(server, VPROF_EVENT_GUEST_ENDED, control_guest_end(server->guest));
}

void control_server_guest_kernel(struct control_server *server)
{
	const struct guest *guest = server->guest;

	control_server_event(server, VPROF_EVENT_GUEST_KERNEL,
	                     json_pack("{s:o, s:o, s:o}", "release",
	                               control_text(guest->release, CONTROL_MESSAGE_BYTES_MAX), "build-id",
	                               control_text(guest->build_id, CONTROL_MESSAGE_BYTES_MAX), "slide",
	                               control_hex_address(image_slide(guest->kernel_image))));
}

void control_server_guest_pause(struct control_server *server)
{
	control_server_event(server, VPROF_EVENT_GUEST_PAUSE,
	                     json_pack("{s:s?, s:I}", "pause", server->guest->pause, "time-ns",
	                               (json_int_t)clock_ns(CLOCK_MONOTONIC)));
}

/* A guest can mark phases as fast as it runs; clients get no more than a limit per second. */
static bool phase_allowed(struct phase_limit *limit)
{
	int64_t second = g_get_monotonic_time() / G_USEC_PER_SEC;

	if (second != limit->second) {
		limit->second = second;
		limit->sent = 0;
	}
	if (limit->sent == CONTROL_PHASES_PER_SECOND) {
		limit->dropped++;
		return false;
	}
	limit->sent++;
	return true;
}

void control_server_guest_phase(struct control_server *server, unsigned vcpu, uint8_t value, uint64_t time_ns)
{
	struct phase_limit *limit = &server->phases;

	if (trace_wants(server->trace, TRACE_PHASES)) {
		g_autofree char *text = g_strdup_printf("phase 0x%02x", value);

		trace_add(server->trace, vcpu, text);
	}
	if (!phase_allowed(limit))
		return;

	json_t *data =
		json_pack("{s:i, s:i, s:I}", "vcpu", (int)vcpu, "value", (int)value, "time-ns", (json_int_t)time_ns);
	if (limit->dropped > 0)
		json_object_set_new(data, "dropped", json_integer((json_int_t)limit->dropped));
	limit->dropped = 0;
	control_server_event(server, VPROF_EVENT_GUEST_PHASE, data);
}

/* ---- lost samples ---- */

static void tell_lost(struct control_server *server, unsigned vcpu)
{
	struct session_statistics now;

	session_statistics_read(server->session, vcpu, &now);

	uint64_t *told = &server->lost_told[vcpu];
	uint64_t lost = now.dropbuf_sample - (now.dropbuf_sample < *told ? 0 : *told); /* less: a new session */
	*told = now.dropbuf_sample;
	if (lost > 0)
		control_server_event(server, VPROF_EVENT_SAMPLES_LOST,
		                     json_pack("{s:i, s:I}", "vcpu", (int)vcpu, "lost", (json_int_t)lost));
}

static gboolean look_for_lost(gpointer data)
{
	struct control_server *server = data;

	if (session_configuration(server->session)) {
		for (unsigned i = 0; i < server->guest->vcpus; i++)
			tell_lost(server, i);
	}
	return G_SOURCE_CONTINUE;
}

void control_server_watch_lost(struct control_server *server)
{
	server->lost_timer = g_timeout_add_seconds(LOST_INTERVAL_S, look_for_lost, server);
}

void control_server_unwatch_lost(struct control_server *server)
{
	g_source_remove(server->lost_timer);
}
