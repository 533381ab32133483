// SPDX-License-Identifier: BSD-2-Clause
/* The probes of one client, and the reader of their events: the client by the rings, or the server for JSON. */
#ifndef VPROF_CONTROL_PROBE_CLIENT_H
#define VPROF_CONTROL_PROBE_CLIENT_H

#include <jansson.h>

#include "probe/probe.h"

/* The reader of the rings. A ring has one reader: the first one since recording began. */
enum probe_reader { PROBE_READER_NONE, PROBE_READER_RINGS, PROBE_READER_JSON };

struct probe_client {
	struct probe_set *set;
	unsigned vcpus;
	enum probe_reader reader;
	struct ring_reader *readers[GUEST_VCPUS_MAX]; /* PROBE_READER_JSON; NULL: not opened yet */
	GHashTable *comms;                            /* tid to name, from COMM records in the rings */
	uint32_t maps_read;                           /* bit i: all of map i has been read since the guest ended */
};

struct probe_client *probe_client_new(struct probe_hub *hub, unsigned vcpus);
void probe_client_free(struct probe_client *client); /* NULL is fine */

bool probe_client_record(struct probe_client *client, size_t ring_bytes, GError **error);
/* Makes `reader` the reader of the rings. Error: PROBE_ERROR_STATE: there is another, or no ring. */
bool probe_client_take(struct probe_client *client, enum probe_reader reader, GError **error);
/* {"events": [...], "more": ...}: at most `max`, and no more than a line holds. */
json_t *probe_client_read(struct probe_client *client, size_t max, GError **error);

#endif
