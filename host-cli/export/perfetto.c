// SPDX-License-Identifier: BSD-2-Clause
#include "export/perfetto.h"

#include <vprof/recording.h>

#include "export/pair_table.h"
#include "export/protobuf.h"
#include "export/text_table.h"

/* Field numbers of trace.proto, trace_packet.proto and the files that they import. */
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	PACKET_SAMPLE = 66,
	PACKET_TASK_STATE = 117,
	DEFAULTS_SAMPLE = 12,
	SAMPLE_DEFAULTS_TIMEBASE = 1,
	TIMEBASE_PERIOD = 1,
	TIMEBASE_NAME = 10,
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_PATHS = 17,
	INTERNED_MAPPINGS = 19,
	INTERNED_IID = 1,
	STRING_TEXT = 2,
	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_PC = 4,
	STACK_FRAMES = 2,
	MAPPING_PATH = 7,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_STACK = 56,
	SAMPLE_CPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_STACK = 4,
	SAMPLE_MODE = 5,
	SAMPLE_COUNT = 6,
	STATE_CPU = 1,
	STATE_COMM = 2,
	STATE_TID = 3,
	STATE_STATE = 4,
};

enum { SEQUENCE = 1, FLAG_CLEARED = 1, FLAG_NEEDS_INTERNED = 2, SLICE_BEGIN = 1, SLICE_END = 2 };

/* Numbers from 1 on, as 0 is none. */
struct perfetto {
	FILE *to;
	struct text_table names, modules;
	struct pair_table frames; /* name and module */
	struct pair_table stacks; /* frame and the stack of its caller, which is 0 for the outermost */
	GByteArray *interned;     /* what the next packet has to have; NULL: nothing */
	GHashTable *written;      /* stacks that are, by number */
	GHashTable *processes;    /* pid + 1 -> track */
	GHashTable *threads;      /* tid + 1 -> track */
	uint64_t n_tracks;
};

/* ---- packets ---- */

/* Takes the packet's own message. */
static void packet_put(struct perfetto *trace, uint64_t time_ns, unsigned field, GByteArray *message)
{
	g_autoptr(GByteArray) bytes = g_byte_array_new();
	GByteArray *packet = g_byte_array_new();

	if (field != PACKET_TRACK) /* which has none */
		protobuf_number(packet, PACKET_TIMESTAMP, time_ns);
	protobuf_number(packet, PACKET_SEQUENCE, SEQUENCE);
	protobuf_number(packet, PACKET_FLAGS, FLAG_NEEDS_INTERNED);
	if (trace->interned)
		protobuf_message(packet, PACKET_INTERNED, g_steal_pointer(&trace->interned));
	protobuf_message(packet, field, message);
	protobuf_message(bytes, TRACE_PACKET, packet);
	fwrite(bytes->data, 1, bytes->len, trace->to);
}

/* The first one, which readers begin with. */
static void begin_put(struct perfetto *trace, const char *counter)
{
	g_autoptr(GByteArray) bytes = g_byte_array_new();
	GByteArray *packet = g_byte_array_new(), *timebase = g_byte_array_new();
	GByteArray *sample = g_byte_array_new(), *defaults = g_byte_array_new();

	protobuf_number(timebase, TIMEBASE_PERIOD, 1);
	protobuf_string(timebase, TIMEBASE_NAME, counter);
	protobuf_message(sample, SAMPLE_DEFAULTS_TIMEBASE, timebase);
	protobuf_message(defaults, DEFAULTS_SAMPLE, sample);
	protobuf_number(packet, PACKET_SEQUENCE, SEQUENCE);
	protobuf_number(packet, PACKET_FLAGS, FLAG_CLEARED);
	protobuf_message(packet, PACKET_DEFAULTS, defaults);
	protobuf_message(bytes, TRACE_PACKET, packet);
	fwrite(bytes->data, 1, bytes->len, trace->to);
}

struct perfetto *perfetto_new(FILE *to, const char *counter)
{
	struct perfetto *trace = g_new0(struct perfetto, 1);

	trace->to = to;
	text_table_init(&trace->names);
	text_table_init(&trace->modules);
	pair_table_init(&trace->frames);
	pair_table_init(&trace->stacks);
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
	g_clear_pointer(&trace->interned, g_byte_array_unref);
	g_hash_table_unref(trace->written);
	g_hash_table_unref(trace->processes);
	g_hash_table_unref(trace->threads);
	g_free(trace);
}

/* ---- tracks ---- */

static GByteArray *track_new(struct perfetto *trace, uint64_t *uuid)
{
	GByteArray *track = g_byte_array_new();

	*uuid = ++trace->n_tracks;
	protobuf_number(track, TRACK_UUID, *uuid);
	return track;
}

uint64_t perfetto_track(struct perfetto *trace, const char *name)
{
	uint64_t uuid;
	GByteArray *track = track_new(trace, &uuid);

	protobuf_string(track, TRACK_NAME, name);
	packet_put(trace, 0, PACKET_TRACK, track);
	return uuid;
}

static uint64_t process_track(struct perfetto *trace, uint32_t pid, const char *name)
{
	uint64_t *known = g_hash_table_lookup(trace->processes, GSIZE_TO_POINTER((gsize)pid + 1)), uuid;

	if (known)
		return *known;
	GByteArray *track = track_new(trace, &uuid), *process = g_byte_array_new();

	protobuf_number(process, PROCESS_PID, pid);
	protobuf_string(process, PROCESS_NAME, name);
	protobuf_message(track, TRACK_PROCESS, process);
	packet_put(trace, 0, PACKET_TRACK, track);
	g_hash_table_insert(trace->processes, GSIZE_TO_POINTER((gsize)pid + 1), g_memdup2(&uuid, sizeof(uuid)));
	return uuid;
}

uint64_t perfetto_thread_track(struct perfetto *trace, uint32_t pid, uint32_t tid, const char *process,
                               const char *thread)
{
	uint64_t *known = g_hash_table_lookup(trace->threads, GSIZE_TO_POINTER((gsize)tid + 1)), uuid;

	if (known)
		return *known;
	const uint64_t parent = process_track(trace, pid, process);
	GByteArray *track = track_new(trace, &uuid), *of = g_byte_array_new();

	protobuf_number(of, THREAD_PID, pid);
	protobuf_number(of, THREAD_TID, tid);
	protobuf_string(of, THREAD_NAME, thread);
	protobuf_number(track, TRACK_PARENT, parent);
	protobuf_message(track, TRACK_THREAD, of);
	packet_put(trace, 0, PACKET_TRACK, track);
	g_hash_table_insert(trace->threads, GSIZE_TO_POINTER((gsize)tid + 1), g_memdup2(&uuid, sizeof(uuid)));
	return uuid;
}

/* ---- texts, frames, stacks ---- */

/* Takes the rest of the entry. */
static void interned_put(struct perfetto *trace, unsigned field, uint64_t iid, GByteArray *rest)
{
	GByteArray *entry = g_byte_array_new();

	if (!trace->interned)
		trace->interned = g_byte_array_new();
	protobuf_number(entry, INTERNED_IID, iid);
	g_byte_array_append(entry, rest->data, rest->len);
	g_byte_array_unref(rest);
	protobuf_message(trace->interned, field, entry);
}

static void string_put(struct perfetto *trace, unsigned field, uint64_t iid, const char *text)
{
	GByteArray *string = g_byte_array_new();

	protobuf_string(string, STRING_TEXT, text);
	interned_put(trace, field, iid, string);
}

static int module_number(struct perfetto *trace, const char *module)
{
	const guint n = trace->modules.texts->len;
	const int number = (int)text_table_number(&trace->modules, module);

	if (trace->modules.texts->len > n) {
		const uint64_t iid = (uint64_t)number + 1;
		GByteArray *mapping = g_byte_array_new();

		string_put(trace, INTERNED_PATHS, iid, module);
		protobuf_number(mapping, MAPPING_PATH, iid);
		interned_put(trace, INTERNED_MAPPINGS, iid, mapping);
	}
	return number;
}

static int name_number(struct perfetto *trace, const char *name)
{
	const guint n = trace->names.texts->len;
	const int number = (int)text_table_number(&trace->names, name);

	if (trace->names.texts->len > n)
		string_put(trace, INTERNED_FUNCTION_NAMES, (uint64_t)number + 1, name);
	return number;
}

/* A function, at its begin. */
static int frame_number(struct perfetto *trace, const struct export_frame *of)
{
	const int name = name_number(trace, of->place.symbol), module = module_number(trace, of->place.module);
	const guint n = trace->frames.pairs->len;
	const int number = pair_table_number(&trace->frames, name, module);

	if (trace->frames.pairs->len > n) {
		GByteArray *frame = g_byte_array_new();

		protobuf_number(frame, FRAME_FUNCTION, (uint64_t)name + 1);
		protobuf_number(frame, FRAME_MAPPING, (uint64_t)module + 1);
		protobuf_number(frame, FRAME_PC, of->ip - of->place.offset);
		interned_put(trace, INTERNED_FRAMES, (uint64_t)number + 1, frame);
	}
	return number;
}

uint64_t perfetto_stack(struct perfetto *trace, const struct export_frame *frames, size_t n)
{
	GByteArray *stack = g_byte_array_new();
	int number = 0;

	for (size_t i = n; i-- > 0;) {
		const int frame = frame_number(trace, &frames[i]);

		number = pair_table_number(&trace->stacks, frame, number) + 1;
		protobuf_number(stack, STACK_FRAMES, (uint64_t)frame + 1);
	}
	if (g_hash_table_add(trace->written, GINT_TO_POINTER(number)))
		interned_put(trace, INTERNED_STACKS, (uint64_t)number, stack);
	else
		g_byte_array_unref(stack);
	return (uint64_t)number;
}

size_t perfetto_places(const struct perfetto *trace)
{
	return trace->stacks.pairs->len;
}

/* ---- events ---- */

void perfetto_slice(struct perfetto *trace, uint64_t track, uint64_t begin_ns, uint64_t end_ns, const char *name,
                    uint64_t stack)
{
	GByteArray *begin = g_byte_array_new(), *end = g_byte_array_new();

	protobuf_number(begin, EVENT_TYPE, SLICE_BEGIN);
	protobuf_number(begin, EVENT_TRACK, track);
	protobuf_string(begin, EVENT_NAME, name);
	if (stack != 0)
		protobuf_number(begin, EVENT_STACK, stack);
	packet_put(trace, begin_ns, PACKET_TRACK_EVENT, begin);
	protobuf_number(end, EVENT_TYPE, SLICE_END);
	protobuf_number(end, EVENT_TRACK, track);
	packet_put(trace, end_ns, PACKET_TRACK_EVENT, end);
}

void perfetto_sample(struct perfetto *trace, const struct record_sample *sample, uint64_t counted, uint64_t stack)
{
	static const uint8_t modes[] = {
		[PROFILE_KERNEL] = 1, [PROFILE_USER] = 2, [PROFILE_HYPERVISOR] = 3, [PROFILE_OTHER] = 0};
	GByteArray *message = g_byte_array_new();

	protobuf_number(message, SAMPLE_CPU, sample->cpu);
	if (sample->tid != VPROF_PID_UNKNOWN) {
		protobuf_number(message, SAMPLE_PID, sample->pid);
		protobuf_number(message, SAMPLE_TID, sample->tid);
	}
	protobuf_number(message, SAMPLE_STACK, stack);
	protobuf_number(message, SAMPLE_MODE, modes[profile_mode_of(sample->misc)]);
	protobuf_number(message, SAMPLE_COUNT, counted);
	packet_put(trace, sample->time_ns, PACKET_SAMPLE, message);
}

void perfetto_task_state(struct perfetto *trace, uint64_t time_ns, uint32_t cpu, uint32_t tid, const char *comm,
                         enum perfetto_state state)
{
	GByteArray *message = g_byte_array_new();

	protobuf_number(message, STATE_CPU, cpu);
	protobuf_string(message, STATE_COMM, comm);
	protobuf_number(message, STATE_TID, (uint64_t)(int32_t)tid); /* -1 where it is not known */
	protobuf_number(message, STATE_STATE, (uint64_t)state);
	packet_put(trace, time_ns, PACKET_TASK_STATE, message);
}
