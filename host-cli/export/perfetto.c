// SPDX-License-Identifier: BSD-2-Clause
#include "export/perfetto.h"

#include <export/proto/perfetto.pb-c.h>
#include <string.h>
#include <vprof/recording.h>

#include "export/pair_table.h"
#include "export/protobuf.h"
#include "export/text_table.h"
#include "ui/text.h"

/* TracePacket.SequenceFlags, TrackEvent.Type */
enum { SEQUENCE = 1, FLAG_CLEARED = 1, FLAG_NEEDS_INTERNED = 2, SLICE_BEGIN = 1, SLICE_END = 2, COUNTER = 4 };

/* An optional number of a message. */
#define SET(member, value) .has_##member = true, .member = (value)
/* A packet with one element of interned data. */
#define INTERNED(field, element) \
	(&(Perfetto__InternedData){MESSAGE(perfetto__interned_data), .n_##field = 1, .field = ONE(element)})

/* Numbers from 1 on, as 0 is none. */
struct perfetto {
	FILE *to;
	struct text_table names, modules;
	struct pair_table frames; /* name and module */
	struct pair_table stacks; /* frame and the stack of its caller, which is 0 for the outermost */
	GByteArray *bytes;        /* of the packet that is written */
	GHashTable *written;      /* stacks that are, by number */
	GHashTable *processes;    /* pid + 1 -> track */
	GHashTable *threads;      /* tid + 1 -> track */
	uint64_t n_tracks;
};

/* ---- packets ---- */

static void packet_write(struct perfetto *trace, Perfetto__TracePacket *packet)
{
	const Perfetto__Trace part = {MESSAGE(perfetto__trace), .n_packet = 1, .packet = &packet};

	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = true;
	packet->sequence_flags = packet->trace_packet_defaults ? FLAG_CLEARED : FLAG_NEEDS_INTERNED;
	g_byte_array_set_size(trace->bytes, 0);
	protobuf_append(trace->bytes, &part.base);
	fwrite(trace->bytes->data, 1, trace->bytes->len, trace->to);
}

/* The first one, which readers begin with. */
static void begin_put(struct perfetto *trace, const char *counter)
{
	g_autofree char *name = text_printable(counter);
	Perfetto__PerfEvents__Timebase timebase = {MESSAGE(perfetto__perf_events__timebase), SET(period, 1),
	                                           .name = name};
	Perfetto__PerfSampleDefaults sample = {MESSAGE(perfetto__perf_sample_defaults), .timebase = &timebase};
	Perfetto__TracePacketDefaults defaults = {MESSAGE(perfetto__trace_packet_defaults),
	                                          .perf_sample_defaults = &sample};
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), .trace_packet_defaults = &defaults};

	packet_write(trace, &packet);
}

struct perfetto *perfetto_new(FILE *to, const char *counter)
{
	struct perfetto *trace = g_new0(struct perfetto, 1);

	trace->to = to;
	text_table_init(&trace->names);
	text_table_init(&trace->modules);
	pair_table_init(&trace->frames);
	pair_table_init(&trace->stacks);
	trace->bytes = g_byte_array_new();
	trace->written = g_hash_table_new(NULL, NULL);
	trace->processes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	trace->threads = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	begin_put(trace, counter);
	return trace;
}

void perfetto_free(struct perfetto *trace)
{
	text_table_deinit(&trace->names);
	text_table_deinit(&trace->modules);
	pair_table_deinit(&trace->frames);
	pair_table_deinit(&trace->stacks);
	g_byte_array_unref(trace->bytes);
	g_hash_table_unref(trace->written);
	g_hash_table_unref(trace->processes);
	g_hash_table_unref(trace->threads);
	g_free(trace);
}

/* ---- tracks ---- */

/* Under a number that it gets. */
static uint64_t track_put(struct perfetto *trace, Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), .track_descriptor = track};

	track->has_uuid = true;
	track->uuid = ++trace->n_tracks;
	packet_write(trace, &packet);
	return track->uuid;
}

uint64_t perfetto_track(struct perfetto *trace, const char *name)
{
	g_autofree char *printable = text_printable(name);
	Perfetto__TrackDescriptor track = {MESSAGE(perfetto__track_descriptor), .name = printable};

	return track_put(trace, &track);
}

uint64_t perfetto_counter_track(struct perfetto *trace, const char *name, const char *unit)
{
	g_autofree char *printable = text_printable(name);
	Perfetto__CounterDescriptor counter = {MESSAGE(perfetto__counter_descriptor), .unit_name = (char *)unit};
	Perfetto__TrackDescriptor track = {MESSAGE(perfetto__track_descriptor), .name = printable, .counter = &counter};

	return track_put(trace, &track);
}

static uint64_t process_track(struct perfetto *trace, uint32_t pid, const char *name)
{
	uint64_t *known = g_hash_table_lookup(trace->processes, GSIZE_TO_POINTER((gsize)pid + 1)), uuid;
	g_autofree char *printable = text_printable(name);
	Perfetto__ProcessDescriptor process = {MESSAGE(perfetto__process_descriptor), SET(pid, (int32_t)pid),
	                                       .process_name = printable};
	Perfetto__TrackDescriptor track = {MESSAGE(perfetto__track_descriptor), .process = &process};

	if (known)
		return *known;
	uuid = track_put(trace, &track);
	g_hash_table_insert(trace->processes, GSIZE_TO_POINTER((gsize)pid + 1), g_memdup2(&uuid, sizeof(uuid)));
	return uuid;
}

uint64_t perfetto_thread_track(struct perfetto *trace, uint32_t pid, uint32_t tid, const char *process,
                               const char *thread)
{
	uint64_t *known = g_hash_table_lookup(trace->threads, GSIZE_TO_POINTER((gsize)tid + 1)), uuid;
	g_autofree char *name = text_printable(thread);
	Perfetto__ThreadDescriptor of = {MESSAGE(perfetto__thread_descriptor), SET(pid, (int32_t)pid), SET(tid, tid),
	                                 .thread_name = name};

	if (known)
		return *known;
	Perfetto__TrackDescriptor track = {
		MESSAGE(perfetto__track_descriptor),
		SET(parent_uuid, process_track(trace, pid, process)),
		.thread = &of,
	};

	uuid = track_put(trace, &track);
	g_hash_table_insert(trace->threads, GSIZE_TO_POINTER((gsize)tid + 1), g_memdup2(&uuid, sizeof(uuid)));
	return uuid;
}

/* ---- texts, frames, stacks ---- */

/* Ahead of the packets that refer to it. */
static void interned_put(struct perfetto *trace, Perfetto__InternedData *interned)
{
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), .interned_data = interned};

	packet_write(trace, &packet);
}

/* Borrows the text. */
static Perfetto__InternedString interned_string(uint64_t iid, char *printable)
{
	return (Perfetto__InternedString){
		MESSAGE(perfetto__interned_string),
		SET(iid, iid),
		SET(str, ((ProtobufCBinaryData){.len = strlen(printable), .data = (uint8_t *)printable})),
	};
}

static int module_number(struct perfetto *trace, const char *module)
{
	const guint n = trace->modules.texts->len;
	const int number = (int)text_table_number(&trace->modules, module);

	if (trace->modules.texts->len > n) {
		uint64_t iid = (uint64_t)number + 1;
		g_autofree char *printable = text_printable(module);
		Perfetto__InternedString path = interned_string(iid, printable);
		Perfetto__Mapping mapping = {
			MESSAGE(perfetto__mapping),
			SET(iid, iid),
			.n_path_string_ids = 1,
			.path_string_ids = &iid,
		};

		interned_put(trace, INTERNED(mapping_paths, &path));
		interned_put(trace, INTERNED(mappings, &mapping));
	}
	return number;
}

static int name_number(struct perfetto *trace, const char *name)
{
	const guint n = trace->names.texts->len;
	const int number = (int)text_table_number(&trace->names, name);

	if (trace->names.texts->len > n) {
		g_autofree char *printable = text_printable(name);
		Perfetto__InternedString string = interned_string((uint64_t)number + 1, printable);

		interned_put(trace, INTERNED(function_names, &string));
	}
	return number;
}

/* A function, at its begin. */
static int frame_number(struct perfetto *trace, const struct export_frame *of)
{
	const int name = name_number(trace, of->place.symbol), module = module_number(trace, of->place.module);
	const guint n = trace->frames.pairs->len;
	const int number = pair_table_number(&trace->frames, name, module);

	if (trace->frames.pairs->len > n) {
		Perfetto__Frame frame = {
			MESSAGE(perfetto__frame),
			SET(iid, (uint64_t)number + 1),
			SET(function_name_id, (uint64_t)name + 1),
			SET(mapping_id, (uint64_t)module + 1),
			SET(rel_pc, of->ip - of->place.offset),
		};

		interned_put(trace, INTERNED(frames, &frame));
	}
	return number;
}

uint64_t perfetto_stack(struct perfetto *trace, const struct export_frame *frames, size_t n)
{
	uint64_t ids[CHAIN_FRAMES_MAX];
	int number = 0;

	for (size_t i = n; i-- > 0;) {
		const int frame = frame_number(trace, &frames[i]);

		number = pair_table_number(&trace->stacks, frame, number) + 1;
		ids[n - 1 - i] = (uint64_t)frame + 1;
	}
	Perfetto__Callstack stack = {
		MESSAGE(perfetto__callstack),
		SET(iid, (uint64_t)number),
		.n_frame_ids = n,
		.frame_ids = ids,
	};

	if (g_hash_table_add(trace->written, GINT_TO_POINTER(number)))
		interned_put(trace, INTERNED(callstacks, &stack));
	return (uint64_t)number;
}

size_t perfetto_places(const struct perfetto *trace)
{
	return trace->stacks.pairs->len;
}

/* ---- events ---- */

static void slice_end_put(struct perfetto *trace, uint64_t track, uint64_t time_ns)
{
	Perfetto__TrackEvent end = {MESSAGE(perfetto__track_event), SET(type, SLICE_END), SET(track_uuid, track)};
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), SET(timestamp, time_ns), .track_event = &end};

	packet_write(trace, &packet);
}

void perfetto_slice(struct perfetto *trace, uint64_t track, uint64_t begin_ns, uint64_t end_ns, const char *name,
                    uint64_t stack, const char *waker)
{
	g_autofree char *printable = text_printable(name), *printable_waker = text_printable(waker ? waker : "");
	Perfetto__DebugAnnotation woken = {MESSAGE(perfetto__debug_annotation), .name = (char *)"waker",
	                                   .string_value = printable_waker};
	Perfetto__TrackEvent begin = {
		MESSAGE(perfetto__track_event),
		SET(type, SLICE_BEGIN),
		SET(track_uuid, track),
		.name = printable,
		.has_callstack_iid = stack != 0,
		.callstack_iid = stack,
		.n_debug_annotations = waker ? 1 : 0,
		.debug_annotations = ONE(&woken),
	};
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), SET(timestamp, begin_ns),
	                                .track_event = &begin};

	packet_write(trace, &packet);
	slice_end_put(trace, track, end_ns);
}

void perfetto_counter(struct perfetto *trace, uint64_t track, uint64_t time_ns, uint64_t value)
{
	Perfetto__TrackEvent event = {MESSAGE(perfetto__track_event), SET(type, COUNTER), SET(track_uuid, track),
	                              SET(counter_value, (int64_t)MIN(value, (uint64_t)INT64_MAX))};
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), SET(timestamp, time_ns),
	                                .track_event = &event};

	packet_write(trace, &packet);
}

void perfetto_sample(struct perfetto *trace, const struct record_sample *sample, uint64_t counted, uint64_t stack)
{
	static const uint8_t modes[] = {
		[PROFILE_KERNEL] = 1, [PROFILE_USER] = 2, [PROFILE_HYPERVISOR] = 3, [PROFILE_OTHER] = 0};
	const bool has_task = sample->tid != VPROF_PID_UNKNOWN;
	Perfetto__PerfSample message = {
		MESSAGE(perfetto__perf_sample),
		SET(cpu, sample->cpu),
		.has_pid = has_task,
		.pid = sample->pid,
		.has_tid = has_task,
		.tid = sample->tid,
		SET(callstack_iid, stack),
		SET(cpu_mode, modes[profile_mode_of(sample->misc)]),
		SET(timebase_count, counted),
	};
	Perfetto__TracePacket packet = {MESSAGE(perfetto__trace_packet), SET(timestamp, sample->time_ns),
	                                .perf_sample = &message};

	packet_write(trace, &packet);
}

void perfetto_task_state(struct perfetto *trace, uint64_t time_ns, uint32_t cpu, uint32_t tid, const char *comm,
                         enum perfetto_state state)
{
	g_autofree char *printable = text_printable(comm);
	Perfetto__GenericKernelTaskStateEvent message = {
		MESSAGE(perfetto__generic_kernel_task_state_event),
		SET(cpu, (int32_t)cpu),
		.comm = printable,
		SET(tid, (int32_t)tid), /* -1 where it is not known */
		SET(state, (uint32_t)state),
	};
	Perfetto__TracePacket packet = {
		MESSAGE(perfetto__trace_packet),
		SET(timestamp, time_ns),
		.generic_kernel_task_state_event = &message,
	};

	packet_write(trace, &packet);
}
