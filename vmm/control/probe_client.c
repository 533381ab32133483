// SPDX-License-Identifier: BSD-2-Clause
#include "control/probe_client.h"

#include <string.h>
#include <vprof/probe.h>

#include "control/method_priv.h"
#include "lib/record/ring_reader.h"

#define READ_BYTES_MAX (VPROF_CONTROL_LINE_BYTES_MAX / 2)
#define NUMBER_BYTES 22u     /* "0x0123456789abcdef", and a comma */
#define EVENT_BYTES_MIN 256u /* of an event without values and frames */
#define COMMS_MAX 4096u      /* names that are kept; beyond that all are dropped, and learnt again */

struct probe_client *probe_client_new(struct probe_hub *hub, unsigned vcpus)
{
	struct probe_client *client = g_new0(struct probe_client, 1);

	client->set = probe_set_new(hub);
	client->vcpus = vcpus;
	client->comms = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	return client;
}

static void close_readers(struct probe_client *client)
{
	for (unsigned i = 0; i < client->vcpus; i++) {
		ring_reader_free(client->readers[i]);
		client->readers[i] = NULL;
	}
	client->reader = PROBE_READER_NONE;
}

void probe_client_free(struct probe_client *client)
{
	if (!client)
		return;
	close_readers(client);
	g_hash_table_unref(client->comms);
	probe_set_free(client->set);
	g_free(client);
}

bool probe_client_record(struct probe_client *client, size_t ring_bytes, GError **error)
{
	if (!probe_set_record(client->set, ring_bytes, error))
		return false;
	close_readers(client);
	return true;
}

static const char *reader_name(enum probe_reader reader)
{
	return reader == PROBE_READER_RINGS ? "probe-rings" : "probe-read";
}

bool probe_client_take(struct probe_client *client, enum probe_reader reader, GError **error)
{
	if (!probe_set_ring(client->set, 0)) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE,
		            "there are no events: the probes have not recorded yet; execute probe-record first");
		return false;
	}
	if (client->reader != PROBE_READER_NONE && client->reader != reader) {
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_STATE,
			"cannot read the events by %s: %s has begun to read them, and a ring has one reader; execute probe-record again to change that",
			reader_name(reader), reader_name(client->reader));
		return false;
	}
	client->reader = reader;
	return true;
}

static json_t *values_json(const struct record_sample *sample)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i + sizeof(uint64_t) <= sample->raw_bytes; i += sizeof(uint64_t)) {
		uint64_t value;

		memcpy(&value, (const uint8_t *)sample->raw + i, sizeof(value));
		json_array_append_new(list, control_hex_address(value));
	}
	return list;
}

static json_t *stack_json(const struct record_sample *sample)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < sample->n_chain; i++) {
		if (sample->chain[i] < (uint64_t)PERF_CONTEXT_MAX)
			json_array_append_new(list, control_hex_address(sample->chain[i]));
	}
	return list;
}

static json_t *event_json(const struct probe_client *client, const struct record_sample *sample)
{
	const char *comm = g_hash_table_lookup(client->comms, GUINT_TO_POINTER(sample->tid));

	return json_pack("{s:I, s:I, s:i, s:I, s:I, s:o, s:o, s:o, s:o}", "probe", (json_int_t)sample->id, "time-ns",
	                 (json_int_t)sample->time_ns, "vcpu", (int)sample->cpu, "pid", (json_int_t)(int32_t)sample->pid,
	                 "tid", (json_int_t)(int32_t)sample->tid, "comm", control_text(comm, CONTROL_MESSAGE_BYTES_MAX),
	                 "ip", control_hex_address(sample->ip), "values", values_json(sample), "stack",
	                 stack_json(sample));
}

static size_t event_bytes(const struct record_sample *sample)
{
	return EVENT_BYTES_MIN + NUMBER_BYTES * (sample->n_chain + sample->raw_bytes / sizeof(uint64_t));
}

static void learn_comm(struct probe_client *client, const struct perf_event_header *record, size_t bytes)
{
	struct record_comm comm;

	if (!record_comm_decode(record, bytes, &comm))
		return;
	if (g_hash_table_size(client->comms) >= COMMS_MAX)
		g_hash_table_remove_all(client->comms);
	g_hash_table_replace(client->comms, GUINT_TO_POINTER(comm.tid), untrusted_printable(comm.comm));
}

static struct ring_reader *open_reader(struct probe_client *client, unsigned vcpu, GError **error)
{
	if (!client->readers[vcpu])
		client->readers[vcpu] = ring_reader_open(ring_memfd(probe_set_ring(client->set, vcpu)), error);
	return client->readers[vcpu];
}

/* What an answer still has room for. */
struct room {
	size_t events, bytes;
};

static bool has_room(const struct room *room)
{
	return room->events > 0 && room->bytes > 0;
}

static void read_ring(struct probe_client *client, struct ring_reader *reader, struct room *room, json_t *events)
{
	const struct perf_event_header *record;
	struct record_sample sample;
	size_t bytes;

	while (has_room(room) && (record = ring_reader_next(reader, &bytes)) != NULL) {
		if (record_sample_decode(record, bytes, VPROF_PROBE_SAMPLE_TYPE, &sample)) {
			json_array_append_new(events, event_json(client, &sample));
			room->events--;
			room->bytes -= MIN(room->bytes, event_bytes(&sample));
		} else {
			learn_comm(client, record, bytes);
		}
	}
	ring_reader_release(reader);
}

json_t *probe_client_read(struct probe_client *client, size_t max, GError **error)
{
	struct room room = {.events = max, .bytes = READ_BYTES_MAX};

	if (!probe_client_take(client, PROBE_READER_JSON, error))
		return NULL;
	json_t *events = json_array();
	for (unsigned i = 0; i < client->vcpus && has_room(&room); i++) {
		struct ring_reader *reader = open_reader(client, i, error);

		if (!reader) {
			json_decref(events);
			return NULL;
		}
		read_ring(client, reader, &room, events);
	}
	return json_pack("{s:o, s:b}", "events", events, "more", !has_room(&room));
}
