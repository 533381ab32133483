// SPDX-License-Identifier: BSD-2-Clause
/* Every method there is. */
#include <vprof/ring.h>

#include "control/control_priv.h"

/* counter_event.name holds one byte more. */
#define EVENT_NAME_BYTES_MAX 63

_Static_assert(sizeof(((struct counter_event *)NULL)->name) == EVENT_NAME_BYTES_MAX + 1,
               "event names as counter.h has them");

static const struct method_argument negotiate_arguments[] = {
	{"protocol", "protocol version that the client speaks", ARGUMENT_INTEGER, .min = 1, .max = INT32_MAX},
	{0},
};

static const struct method_argument session_start_arguments[] = {
	{"events", "what to count, as `vprof run -e` takes it; without it, what this host counts best",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = COUNTER_EVENTS_MAX},
	{"frequency-hz", "samples in a second of vCPU time; without it and a period, 999", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = COUNTER_FREQUENCY_HZ_MAX},
	{"period", "events between two samples, nanoseconds for clocks; not with frequency-hz", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = INT64_MAX},
	{"ring-bytes", "data bytes of each vCPU's ring, a power of two", ARGUMENT_INTEGER, .optional = true,
         .min = VPROF_RING_DATA_BYTES_MIN, .max = VPROF_RING_DATA_BYTES_MAX},
	{"delivery", "how an overflow becomes an exit; without it, the first way that works", ARGUMENT_STRING,
         .optional = true, .choices = control_delivery_names},
	{"route", "how an attached guest is sampled (\"routes\" of query-status); without it, the first that works",
         ARGUMENT_STRING, .optional = true, .min = 1, .max = 32},
	{"call-graph", "call chains with each sample; without it, none", ARGUMENT_STRING, .optional = true,
         .choices = control_call_graph_names},
	{"call-depth", "frames of a call chain; without it, 64", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = UNWIND_DEPTH_MAX},
	{"call-user", "whether call chains go on into user space, by frame pointers; without it, they do",
         ARGUMENT_BOOLEAN, .optional = true},
	{"tasks",
         "whether samples carry pid and tid of the guest's task, if its kernel image says where it has them; without "
         "it, they do",
         ARGUMENT_BOOLEAN, .optional = true},
	{0},
};

static const struct method_argument query_vcpu_time_arguments[] = {
	{"vcpu", "number of the vCPU", ARGUMENT_INTEGER, .min = 0, .max = GUEST_VCPUS_MAX - 1},
	{0},
};

const struct control_method control_methods[] = {
	{
		.name = "negotiate",
		.summary = "agrees on the protocol version; comes first",
		.returns = "{\"protocol\": N}",
		.role = ROLE_OBSERVE,
		.before_negotiate = true,
		.arguments = negotiate_arguments,
		.run = method_negotiate,
	},
	{
		.name = "query-schema",
		.summary = "describes the methods, events, error classes, statistics and clocks",
		.returns = "{\"protocol\": N, \"methods\": [{...}], \"events\": [{...}], \"errors\": [{...}], "
			   "\"statistics\": [{...}], \"vcpu-times\": [{...}]}",
		.role = ROLE_OBSERVE,
		.run = method_query_schema,
	},
	{
		.name = "query-clients",
		.summary = "says who is connected, and who holds the control role",
		.returns =
			"{\"clients\": [{\"pid\": N, \"uid\": N, \"role\": observe, instrument or control, \"owner\": "
			"whether the guest ends with it, \"you\": whether it is this client}]}",
		.role = ROLE_OBSERVE,
		.run = method_query_clients,
	},
	{
		.name = "control-take",
		.summary = "takes the control role; no error for the client that holds it",
		.returns = "{}",
		.role = ROLE_OBSERVE,
		.run = method_control_take,
	},
	{
		.name = "control-release",
		.summary = "gives the control role back, as disconnecting does; a session goes on",
		.returns = "{}",
		.role = ROLE_OBSERVE,
		.run = method_control_release,
	},
	{
		.name = "query-status",
		.summary = "says in which state the guest and the session are",
		.returns =
			"{\"state\": \"created|running|ended\", \"session\": \"idle|running\", \"pid\": N, "
			"\"uptime-ns\": N of the engine, \"end\": {\"reason\", \"code\", \"message\", \"details\"?}?}",
		.role = ROLE_OBSERVE,
		.run = method_query_status,
	},
	{
		.name = "query-guest",
		.summary = "describes the guest; null where the engine does not know",
		.returns = "{\"name\", \"kind\", \"kernel\", \"initrd\", \"command-line\", \"build-id\", \"release\", "
			   "\"pmu\", \"memory-bytes\": N, \"vcpus\": N, \"quirks\": [TEXT]}",
		.role = ROLE_OBSERVE,
		.run = method_query_guest,
	},
	{
		.name = "session-start",
		.summary = "starts sampling every vCPU into new rings",
		.returns = "{\"events\": [{\"name\", \"backend\", \"attr\": hex of struct perf_event_attr, \"ids\": "
			   "[N for each vCPU]}], \"delivery\": TEXT, \"why\": TEXT for an event that was chosen, else "
			   "null, \"ring-bytes\": N, \"call-graph\": none, orc or fp, \"tasks\": true or false, "
			   "\"tasks-why\": TEXT why there are none though asked for, else null}",
		.role = ROLE_CONTROL,
		.arguments = session_start_arguments,
		.run = method_session_start,
	},
	{
		.name = "session-stop",
		.summary = "stops sampling; what is in the rings stays readable",
		.returns = "{\"statistics\": as query-stats}",
		.role = ROLE_CONTROL,
		.run = method_session_stop,
	},
	{
		.name = "query-stats",
		.summary = "says what became of the samples of the last session",
		.returns = "{\"total\": {STATISTIC: N}, \"vcpus\": [{STATISTIC: N}]}",
		.role = ROLE_OBSERVE,
		.run = method_query_stats,
	},
	{
		.name = "rings",
		.summary = "hands over the rings of the last session; each has one reader",
		.returns =
			"{\"vcpus\": [{\"vcpu\": N, \"data-bytes\": N}]}, with descriptors: for each vCPU the ring's "
			"memory and its eventfd",
		.role = ROLE_CONTROL,
		.run = method_rings,
	},
	{
		.name = "query-vcpu-time",
		.summary =
			"says where the time of a vCPU went since its start or the last reset, from independent clocks",
		.returns =
			"{\"version\": 1, \"missing\": clocks that this host does not have, or null, \"ns\": {CLOCK: "
			"N}, \"exits\": [{\"name\", \"reason\": N, \"detail\": N, null for several, \"count\": N, "
			"\"ns\": N in the VMM}], \"counters\": {what KVM counts: N}}",
		.role = ROLE_OBSERVE,
		.arguments = query_vcpu_time_arguments,
		.run = method_query_vcpu_time,
	},
	{
		.name = "vcpu-time-reset",
		.summary = "lets the times, exits and counters of query-vcpu-time start from 0, on every vCPU",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.run = method_vcpu_time_reset,
	},
	{
		.name = "guest-start",
		.summary = "lets the vCPUs of a guest run that was started with --paused",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.run = method_guest_start,
	},
	{
		.name = "guest-stop",
		.summary = "ends the guest; no error when it has ended already",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.run = method_guest_stop,
	},
	{
		.name = "quit",
		.summary = "ends the guest and the engine",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.run = method_quit,
	},
	{0},
};
