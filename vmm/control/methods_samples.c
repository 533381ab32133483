// SPDX-License-Identifier: BSD-2-Clause
/* samples-read, and what a client adds to the samples: sample-add, marker-add */
#include <vprof/agent.h>

#include "control/events.h"
#include "control/method_priv.h"
#include "lib/record/clock.h"
#include "probe/probe.h"
#include "stream/ring.h"

#define SAMPLES_READ_BYTES_MAX 45056 /* base64 of it, and the rest of the answer, fit into a line */

static json_int_t integer_or(const json_t *arguments, const char *name, json_int_t otherwise)
{
	const json_t *value = json_object_get(arguments, name);

	return value ? json_integer_value(value) : otherwise;
}

/* An offset belongs to one session: the next session has other rings. */
static bool session_check(const struct session *session, json_int_t wanted, GError **error)
{
	json_int_t number = (json_int_t)session_number(session);

	if (!control_had_session(session, error))
		return false;
	if (wanted == number)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
	            "there are no samples of session %lld: the last session is %lld", (long long)wanted,
	            (long long)number);
	return false;
}

/* A read that a client asks for. */
struct reading {
	struct ring *ring;
	unsigned vcpu;
	uint64_t wanted, offset; /* the offset asked for, and that of the records returned */
	size_t room, min_bytes;
	bool may_wait;
};

static bool offset_check(const struct reading *reading, GError **error)
{
	uint64_t head = ring_head(reading->ring);

	if (reading->wanted <= head && reading->wanted % 8 == 0)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
	            "no record begins at offset %" G_GUINT64_FORMAT " of vCPU %u: the end is %" G_GUINT64_FORMAT
	            "; give \"next\" of the last answer",
	            reading->wanted, reading->vcpu, head);
	return false;
}

/*
 * The client that holds the control role is the reader of the rings, unless they were handed out: records before the
 * offset that it asks for are given back to the ring. Reads of other clients give nothing back.
 */
static bool give_back(const struct control_call *call, const struct reading *reading, GError **error)
{
	const struct control_server *server = call->server;

	if (server->controller != call->connection || server->rings_of == session_number(server->session) ||
	    ring_view_give_back(reading->ring, reading->wanted))
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
	            "no record begins at offset %" G_GUINT64_FORMAT " of vCPU %u; give \"next\" of the last answer",
	            reading->wanted, reading->vcpu);
	return false;
}

static bool reading_prepare(const struct control_call *call, struct reading *reading, GError **error)
{
	const struct session *session = call->server->session;
	const json_t *arguments = call->arguments;
	json_int_t vcpu = integer_or(arguments, "vcpu", 0);

	if (!control_vcpu_check(call->server->guest, vcpu, error) ||
	    !session_check(session, integer_or(arguments, "session", (json_int_t)session_number(session)), error))
		return false;
	reading->vcpu = (unsigned)vcpu;
	reading->ring = session_ring(session, reading->vcpu);
	/* While it waits, another reader may give back what it is to get. */
	if (!call->connection->waiting || call->connection->samples_from_of != session_number(session)) {
		call->connection->samples_from = ring_head(reading->ring) - ring_unread(reading->ring);
		call->connection->samples_from_of = session_number(session);
	}
	reading->wanted = (uint64_t)integer_or(arguments, "offset", (json_int_t)call->connection->samples_from);
	reading->offset = reading->wanted;
	reading->room = (size_t)integer_or(arguments, "max-bytes", SAMPLES_READ_BYTES_MAX) & ~(size_t)7;
	reading->min_bytes = MIN((size_t)integer_or(arguments, "min-bytes", 1), reading->room);
	reading->may_wait = session_running(session);
	return offset_check(reading, error) &&
	       (!json_object_get(arguments, "offset") || give_back(call, reading, error));
}

static json_t *reading_json(struct control_call *call, const struct reading *reading, const uint8_t *bytes, size_t n)
{
	const struct session *session = call->server->session;
	uint64_t next = reading->offset + n;
	bool end = !session_running(session) && next == ring_head(reading->ring);
	g_autofree char *text = g_base64_encode(bytes, n);

	control_note_samples(call, reading->vcpu, end);
	return json_pack("{s:I, s:i, s:I, s:I, s:I, s:b, s:s}", "session", (json_int_t)session_number(session), "vcpu",
	                 (int)reading->vcpu, "offset", (json_int_t)reading->offset, "next", (json_int_t)next, "missed",
	                 (json_int_t)(reading->offset - reading->wanted), "end", end, "data", text);
}

static json_t *method_samples_read(struct control_call *call, GError **error)
{
	struct reading reading;

	if (!reading_prepare(call, &reading, error))
		return NULL;
	g_autofree uint8_t *bytes = g_malloc(reading.room);
	size_t n = ring_view_read(reading.ring, &reading.offset, bytes, reading.room);
	if (n == 0 && ring_head(reading.ring) != reading.offset) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "no record of at most %zu bytes begins at offset %" G_GUINT64_FORMAT
		            " of vCPU %u; give \"next\" of the last answer, or more \"max-bytes\"",
		            reading.room, reading.offset, reading.vcpu);
		return NULL;
	}
	bool due = call->flushes != call->server->flushes || ring_is_due(reading.ring);
	if (n < reading.min_bytes && reading.may_wait && !(due && n > 0) && control_call_wait(call))
		return NULL;
	return reading_json(call, &reading, bytes, n);
}

static const char *const mode_names[] = {"kernel", "user", "vmm", NULL};

static json_t *method_sample_add(struct control_call *call, GError **error)
{
	static const uint16_t modes[] = {PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_USER, PERF_RECORD_MISC_HYPERVISOR};
	const json_t *arguments = call->arguments, *mode = json_object_get(arguments, "mode");
	json_int_t vcpu = integer_or(arguments, "vcpu", 0), pid = integer_or(arguments, "pid", 0);
	const struct session_sample sample = {
		.vcpu = (unsigned)vcpu,
		.ip = control_address(json_object_get(arguments, "ip")),
		.mode = modes[mode ? argument_choice(mode_names, json_string_value(mode)) : 0],
		.pid = (uint32_t)pid,
		.tid = (uint32_t)integer_or(arguments, "tid", pid),
		.period = (uint64_t)integer_or(arguments, "period", 1),
	};

	if (!control_vcpu_check(call->server->guest, vcpu, error) ||
	    !session_add_sample(call->server->session, &sample, error))
		return NULL;
	return json_object();
}

/* ---- markers: phases that are known outside the guest ---- */

/* The name is printed to terminals and in lists. */
static bool name_check(const char *name, GError **error)
{
	for (const char *at = name; *at; at++) {
		if (!g_ascii_iscntrl(*at))
			continue;
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "argument \"name\" of marker-add contains a control character");
		return false;
	}
	return true;
}

static json_t *method_marker_add(struct control_call *call, GError **error)
{
	const char *name = json_string_value(json_object_get(call->arguments, "name"));
	const char *kind = json_string_value(json_object_get(call->arguments, "kind"));
	json_int_t time_ns = (json_int_t)clock_ns(CLOCK_MONOTONIC), number;

	if (!name_check(name, error))
		return NULL;
	number = (json_int_t)probe_hub_add_marker(call->server->probes, name, g_str_equal(kind, "end"));
	control_server_event(
		call->server, VPROF_EVENT_MARKER,
		json_pack("{s:s, s:s, s:I, s:I}", "name", name, "kind", kind, "time-ns", time_ns, "number", number));
	return json_pack("{s:I, s:I}", "time-ns", time_ns, "number", number);
}

/* ---- the methods ---- */

static const struct method_argument samples_read_arguments[] = {
	{"vcpu", "number of the vCPU", ARGUMENT_INTEGER, .optional = true, .min = 0, .max = GUEST_VCPUS_MAX - 1,
         .preset = "0"},
	{"session", "session that the offset belongs to; by default, the last session", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = INT64_MAX},
	{"offset",
         "where to read: \"next\" of an earlier answer, on any connection; by default, the oldest record that was not given back",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = INT64_MAX},
	{"max-bytes", "maximum bytes of records to return", ARGUMENT_INTEGER, .optional = true, .min = 64,
         .max = SAMPLES_READ_BYTES_MAX, .preset = G_STRINGIFY(SAMPLES_READ_BYTES_MAX)},
	{"min-bytes",
         "bytes of records to wait for; a flush, a ring that is as full as its watermark or nearly full, the end of the session and the timeout end the wait",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = SAMPLES_READ_BYTES_MAX, .preset = "1"},
	{"timeout-ms", "maximum time to wait, in milliseconds", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = CONTROL_TIMEOUT_MS_MAX, .preset = "0"},
	{0},
};

static const struct method_argument sample_add_arguments[] = {
	{"ip", "address of the sample", ARGUMENT_ADDRESS},
	{"vcpu", "number of the vCPU", ARGUMENT_INTEGER, .optional = true, .min = 0, .max = GUEST_VCPUS_MAX - 1,
         .preset = "0"},
	{"mode", "mode of the vCPU at that address", ARGUMENT_STRING, .optional = true, .choices = mode_names,
         .preset = "\"kernel\""},
	{"pid", "process id of the guest's task", ARGUMENT_INTEGER, .optional = true, .min = 0, .max = UINT32_MAX,
         .preset = "0"},
	{"tid", "thread id of the guest's task; by default, the pid", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = UINT32_MAX},
	{"period", "weight of the sample", ARGUMENT_INTEGER, .optional = true, .min = 1, .max = INT64_MAX,
         .preset = "1"},
	{0},
};

static const char *const marker_kinds[] = {"begin", "end", NULL};

static const struct method_argument marker_add_arguments[] = {
	{"name", "name of the phase", ARGUMENT_STRING, .min = 1, .max = VPROF_AGENT_NAME_BYTES_MAX},
	{"kind", "whether the phase begins or ends", ARGUMENT_STRING, .choices = marker_kinds},
	{0},
};

static const struct method_member samples_members[] = {
	{"session", "number of the session", MEMBER_INTEGER},
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"offset", "offset of the first record", MEMBER_INTEGER},
	{"next", "offset to read on from", MEMBER_INTEGER},
	{"missed", "bytes that were overwritten before they were read", MEMBER_INTEGER},
	{"end", "whether there will be no more records", MEMBER_BOOLEAN},
	{"data", "perf_event records in base64", MEMBER_STRING},
	{0},
};

static const struct method_member marker_members[] = {
	{"time-ns", "time of the mark, by CLOCK_MONOTONIC", MEMBER_INTEGER},
	{"number", "number of the mark, which is the value of marker probes", MEMBER_INTEGER},
	{0},
};

const struct control_method sample_methods[] = {
	{
		.name = "samples-read",
		.summary =
			"reads records of the last session. Records before the offset are given back to the ring if this client holds the control role and no client has the rings",
		.returns = samples_members,
		.role = ROLE_OBSERVE,
		.arguments = samples_read_arguments,
		.run = method_samples_read,
	},
	{
		.name = "sample-add",
		.summary = "writes a sample made by the client into a ring, with bit 13 of its misc set",
		.role = ROLE_CONTROL,
		.arguments = sample_add_arguments,
		.run = method_sample_add,
	},
	{
		.name = "marker-add",
		.summary =
			"marks the begin or the end of a phase at the present time; recorders keep the event marker, and marker probes fire",
		.returns = marker_members,
		.role = ROLE_INSTRUMENT,
		.arguments = marker_add_arguments,
		.run = method_marker_add,
	},
	{0},
};
