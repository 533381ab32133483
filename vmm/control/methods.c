// SPDX-License-Identifier: BSD-2-Clause
/* Every method there is. */
#include "control/method_priv.h"

_Static_assert(sizeof(((struct counter_event *)NULL)->name) == CONTROL_EVENT_NAME_BYTES_MAX + 1,
               "event names as counter.h has them");

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
		.returns = "{\"state\": \"created|running|ended\", \"session\": \"idle|running\", \"pid\": N, "
			   "\"uptime-ns\": N of the engine, \"delivery\" or \"route\": NAME of what the last session "
			   "samples by?, \"end\": {\"reason\", \"code\", \"message\", \"details\"?, "
			   "\"console\"?}?}",
		.role = ROLE_OBSERVE,
		.run = method_query_status,
	},
	{
		.name = "query-guest",
		.summary = "describes the guest; null where the engine does not know",
		.returns = "{\"name\", \"kind\", \"kernel\", \"initrd\", \"command-line\", \"build-id\", \"release\", "
			   "\"pmu\", \"memory-bytes\": N, \"vcpus\": N, \"vsock-cid\": N, \"quirks\": [TEXT]}",
		.role = ROLE_OBSERVE,
		.run = method_query_guest,
	},
	{
		.name = "kernel-image",
		.summary = "hands over the kernel of a guest that was running already, once it is known",
		.returns =
			"{\"path\": TEXT, \"slide\": hexadecimal TEXT, to be added to the image's addresses}, with a "
			"descriptor of the image, an ELF or a bzImage",
		.role = ROLE_OBSERVE,
		.run = method_kernel_image,
	},
	{
		.name = "session-start",
		.summary = "starts sampling every vCPU into new rings",
		.returns = "{\"session\": N, \"events\": [{\"name\", \"backend\", \"attr\": hex of struct "
			   "perf_event_attr, \"ids\": "
			   "[N for each vCPU]}], \"delivery\": TEXT (or the route), \"frequency-hz\": N or \"period\": "
			   "N, \"why\": TEXT for an event that was chosen, else "
			   "null, \"ring-bytes\": N, \"call-graph\": none, orc or fp, \"tasks\": true or false, "
			   "\"tasks-why\": TEXT why there are none though asked for, else null, \"mappings-why\": the "
			   "same "
			   "of what processes have mapped, \"cgroups-why\": the same of the tasks' cgroups, "
			   "\"modules-why\": the same of the kernel's modules, "
			   "\"unwinder\": orc or fp, how call chains are found in the kernel, null without them, "
			   "\"unwinder-why\": TEXT why it is fp though that was left open, else null, \"host\": pid of "
			   "the process whose addresses samples outside the guest may have, null without them}",
		.role = ROLE_CONTROL,
		.arguments = control_session_keys,
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
		.name = "session-flush",
		.summary = "tells the rings' readers of all that was sampled until now, without stopping",
		.returns = "{\"session\": N, \"ends\": [OFFSET for each vCPU, up to which its ring can be read]}",
		.role = ROLE_CONTROL,
		.run = method_session_flush,
	},
	{
		.name = "query-session",
		.summary = "describes the last session, for who did not start it: what its records hold",
		.returns = "as session-start",
		.role = ROLE_OBSERVE,
		.run = method_query_session,
	},
	{
		.name = "session-configure",
		.summary = "sets configuration keys: what sessions are started with, where session-start says nothing",
		.returns = "as query-configuration",
		.role = ROLE_CONTROL,
		.arguments = control_session_keys,
		.run = method_session_configure,
	},
	{
		.name = "query-configuration",
		.summary = "lists the configuration keys, with their types and ranges",
		.returns = "{KEY: {\"type\", \"min\" and \"max\" or \"choices\", \"value\", \"default\", \"set\": "
			   "whether somebody set it}}; null: what the host does best",
		.role = ROLE_OBSERVE,
		.run = method_query_configuration,
	},
	{
		.name = "reset",
		.summary = "lets the session's figures, the session, the configuration or the trace begin afresh",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.arguments = reset_arguments,
		.run = method_reset,
	},
	{
		.name = "samples-read",
		.summary = "reads records of the last session in place of, or beside, the reader of its rings. What is "
			   "before "
			   "the offset is given back if this client has the control role and nobody the rings",
		.returns = "{\"session\": N, \"vcpu\": N, \"offset\": of the first record, \"next\": offset to read on "
			   "from, "
			   "\"missed\": bytes that were overwritten before they were read, \"end\": whether nothing "
			   "will come "
			   "any more, \"data\": base64 of perf_event records}",
		.role = ROLE_OBSERVE,
		.arguments = samples_read_arguments,
		.run = method_samples_read,
	},
	{
		.name = "marker-add",
		.summary = "marks the begin or the end of a phase, now, with an event that a recorder keeps, and for "
			   "marker probes",
		.returns = "{\"time-ns\": N of CLOCK_MONOTONIC, \"number\": of the mark, what marker probes have as "
			   "its value}",
		.role = ROLE_INSTRUMENT,
		.arguments = marker_add_arguments,
		.run = method_marker_add,
	},
	{
		.name = "sample-add",
		.summary = "writes a sample made by hand into a ring, flagged with bit 13 of its misc",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.arguments = sample_add_arguments,
		.run = method_sample_add,
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
		.name = "query-host",
		.summary = "says what can be counted on this host, and by what",
		.returns =
			"{\"pmu\": {\"name\", \"version\": N, \"general\": {\"counters\": N, \"width\": bits}, "
			"\"fixed\": likewise} or null, \"events\": [{\"name\", \"summary\", \"usable\", \"backend\"?, "
			"\"why\"?}], \"backends\": [{\"name\", \"usable\", \"counts-time\", \"guest-only\": whether it "
			"counts only while the guest runs, \"events\": [TEXT], \"why\"?}], \"routes\": [{\"name\", "
			"\"summary\", \"usable\", "
			"\"why\"?}] of an attached guest?, \"counters\": N for clients}",
		.role = ROLE_OBSERVE,
		.run = method_query_host,
	},
	{
		.name = "query-counters",
		.summary = "says who holds which counters; those that are free are not named",
		.returns =
			"{\"total\": N, \"counters\": [{\"counter\": N, \"state\": allocated, running, stopped or "
			"disabled, \"disposition\": standalone, task or unavailable, \"pid\", \"uid\", \"yours\", "
			"\"mode\", \"event\", \"backend\", \"frequency-hz\": N or 0, \"period\": N or 0, \"estimate\", "
			"\"descendants\", \"targets\": [{\"pid\"?, \"comm\"?, \"cr3\"?}]}]}",
		.role = ROLE_OBSERVE,
		.run = method_query_counters,
	},
	{
		.name = "counter-allocate",
		.summary = "allocates a counter beside the session's; it is the client's until he releases it or goes",
		.returns = "{\"counter\": N}, in a sampling mode with \"events\", \"tasks\" and \"frequency-hz\" or "
			   "\"period\" as "
			   "session-start",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_allocate_arguments,
		.run = method_counter_allocate,
	},
	{
		.name = "counter-release",
		.summary = "gives a counter back, running or not",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_release,
	},
	{
		.name = "counter-attach",
		.summary = "attaches a counter in a task mode to tasks of the guest; several times: to any of them",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_target_arguments,
		.run = method_counter_attach,
	},
	{
		.name = "counter-detach",
		.summary = "takes back what counter-attach with the same arguments did",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_target_arguments,
		.run = method_counter_detach,
	},
	{
		.name = "counter-start",
		.summary = "lets a counter count, on every vCPU",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_start,
	},
	{
		.name = "counter-stop",
		.summary = "stops a counter; its value stays, and counter-start goes on from there",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_stop,
	},
	{
		.name = "counter-read",
		.summary = "says what a counter has counted until now",
		.returns = "{\"value\": N, \"enabled-ns\": N for which threads ran with it, \"running-ns\": N for "
			   "which it "
			   "had a counter of the PMU, \"vcpus\": [the same for each]}; with samples {\"value\": N, "
			   "\"modes\": "
			   "{\"kernel\", \"user\", \"hypervisor\"}, \"statistics\": as query-stats, since its start, "
			   "\"vcpus\"}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_read,
	},
	{
		.name = "counter-write",
		.summary = "sets what an exact counter that does not run counts up from",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_write_arguments,
		.run = method_counter_write,
	},
	{
		.name = "counter-set-period",
		.summary = "sets how often a counter that does not run takes samples",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_set_period_arguments,
		.run = method_counter_set_period,
	},
	{
		.name = "counter-rings",
		.summary = "hands over the rings of a counter in a sampling mode; each has one reader",
		.returns = "{\"vcpus\": [{\"vcpu\": N, \"data-bytes\": N}]}, with descriptors as rings",
		.role = ROLE_INSTRUMENT,
		.arguments = counter_arguments,
		.run = method_counter_rings,
	},
	{
		.name = "counter-disable",
		.summary = "keeps a counter that is free from being allocated",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.arguments = counter_arguments,
		.run = method_counter_disable,
	},
	{
		.name = "counter-enable",
		.summary = "takes counter-disable back",
		.returns = "{}",
		.role = ROLE_CONTROL,
		.arguments = counter_arguments,
		.run = method_counter_enable,
	},
	{
		.name = "trace-read",
		.summary = "reads lines of the engine's trace, a ring in which the newest displace the oldest",
		.returns =
			"{\"offset\": of the text, \"next\": offset to read on from, \"missed\": bytes that were "
			"displaced "
			"before they were read, \"dropped\": lines so far that met another thread's, \"text\": lines "
			"\"[seconds.nanoseconds]:vcpuN: TEXT\", \"vmm\" for the engine}",
		.role = ROLE_OBSERVE,
		.arguments = trace_read_arguments,
		.run = method_trace_read,
	},
	{
		.name = "trace-write",
		.summary = "adds a line to the trace",
		.returns = "{\"next\": offset behind it}",
		.role = ROLE_INSTRUMENT,
		.arguments = trace_write_arguments,
		.run = method_trace_write,
	},
	{
		.name = "trace-set",
		.summary = "switches kinds of trace lines on and off, and says which are on",
		.returns = "{KIND: true or false}",
		.role = ROLE_INSTRUMENT,
		.arguments = trace_set_arguments,
		.run = method_trace_set,
	},
	{
		.name = "query-vcpu-time",
		.summary =
			"says where the time of a vCPU went since its start or the last reset, from independent clocks",
		.returns = "{\"version\": 2, \"missing\": clocks that this host does not have, or null, \"ns\": "
			   "{CLOCK: N}, \"looks\": {\"kernel\": N, \"user\": N} that found the guest running there, "
			   "\"exits\": [{\"name\", \"reason\": N, \"detail\": N, null for several, \"count\": N, "
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
		.name = "probe-list",
		.summary = "says what there is to probe",
		.returns = "{\"providers\": [{\"name\", \"syntax\", \"summary\", \"arguments\": [NAME]}], \"probes\": "
			   "[NAME] "
			   "of exit, syscall and function that match, \"next\": N if there are more, else null}",
		.role = ROLE_OBSERVE,
		.arguments = probe_list_arguments,
		.run = method_probe_list,
	},
	{
		.name = "probe-args",
		.summary = "says what an event of a probe has as arguments",
		.returns = "{\"name\": the probe's in full, \"arguments\": [NAME]}",
		.role = ROLE_OBSERVE,
		.arguments = probe_args_arguments,
		.run = method_probe_args,
	},
	{
		.name = "probe-add",
		.summary = "adds a probe to the client's own, of each one at most; not while they record",
		.returns =
			"{\"id\": N, \"name\", \"arguments\": [NAME], \"registers\": [NAME], \"stack\": true or false, "
			"\"events\": 0, \"breakpoint\": processor, patch or null, \"intact\": false once the guest "
			"has written over a patch}",
		.role = ROLE_INSTRUMENT,
		.arguments = probe_add_arguments,
		.run = method_probe_add,
	},
	{
		.name = "probe-remove",
		.summary = "removes one of the client's probes, as disconnecting does with all; not while they record",
		.returns = "{}",
		.role = ROLE_INSTRUMENT,
		.arguments = probe_remove_arguments,
		.run = method_probe_remove,
	},
	{
		.name = "probe-record",
		.summary = "starts or stops recording the events of the client's probes",
		.returns = "{\"tasks\": whether events carry pid and tid of the guest's task}",
		.role = ROLE_INSTRUMENT,
		.arguments = probe_record_arguments,
		.run = method_probe_record,
	},
	{
		.name = "query-probes",
		.summary = "describes the client's probes, and says what became of their events",
		.returns = "{\"recording\": true or false, \"probes\": [as probe-add, \"events\": N], \"statistics\": "
			   "{STATISTIC: N}}",
		.role = ROLE_OBSERVE,
		.run = method_query_probes,
	},
	{
		.name = "probe-rings",
		.summary = "hands over the rings of the client's probes (vprof/probe.h); each has one reader",
		.returns = "{\"vcpus\": [{\"vcpu\": N, \"data-bytes\": N}]}, with descriptors as those of `rings`",
		.role = ROLE_INSTRUMENT,
		.run = method_probe_rings,
	},
	{
		.name = "probe-read",
		.summary = "takes events of the client's probes out of their rings",
		.returns = "{\"events\": [{\"probe\": id, \"time-ns\": N, \"vcpu\": N, \"pid\": N, \"tid\": N, -1 for "
			   "unknown ones, \"comm\": TEXT or null, \"ip\": HEX, \"values\": [HEX], arguments and then "
			   "registers, \"stack\": [HEX]}], in order for each vCPU, \"more\": true or false}",
		.role = ROLE_INSTRUMENT,
		.arguments = probe_read_arguments,
		.run = method_probe_read,
	},
	{
		.name = "mapping-read",
		.summary = "hands over the file behind a guest address, or the bytes there",
		.returns =
			"{\"path\", \"build-id\", \"start\": HEX, \"length\": N, \"offset\": N in the (unpacked) file, "
			"\"compression\": TEXT or null}, with the file's descriptor; or {\"bytes\": hex}",
		.role = ROLE_INSTRUMENT,
		.arguments = mapping_read_arguments,
		.run = method_mapping_read,
	},
	{
		.name = "module-symbols",
		.summary =
			"looks addresses up among the symbols that the guest's kernel has of its loadable modules, as "
			"they are now; a session must have taken a sample",
		.returns =
			"{\"symbols\": [{\"address\": HEX, \"module\": TEXT, \"symbol\": TEXT, \"offset\": N of the "
			"symbol in the module's code, as its mapping has it, \"bytes\": N}]}, without those that are "
			"in no module",
		.role = ROLE_INSTRUMENT,
		.arguments = module_symbols_arguments,
		.run = method_module_symbols,
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
