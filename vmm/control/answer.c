// SPDX-License-Identifier: BSD-2-Clause
/* What several methods answer with: waiting, values, and objects with their rows. */
#include <inttypes.h>
#include <string.h>
#include <vprof/recording.h>

#include "control/method_priv.h"
#include "lib/record/hex.h"

bool control_call_wait(struct control_call *call)
{
	return control_call_wait_ms(call, json_integer_value(json_object_get(call->arguments, "timeout-ms")));
}

bool control_call_wait_ms(struct control_call *call, int64_t timeout_ms)
{
	const int64_t timeout_us = timeout_ms * 1000;

	call->wait = !call->last && timeout_us > 0;
	if (call->wait && !call->connection->waiting)
		call->connection->wait_until_us = g_get_monotonic_time() + timeout_us;
	return call->wait;
}

/* ---- values ---- */

json_t *control_text(const char *text, size_t bytes_max)
{
	if (!text)
		return json_null();
	g_autofree char *valid = g_utf8_make_valid(text, (gssize)strnlen(text, bytes_max));
	return json_string(valid);
}

json_t *control_hex_address(uint64_t address)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 + 16], *at = text + sizeof(text);

	/* A look at all tasks has thousands of them, so not json_sprintf. */
	do
		*--at = digits[address & 15];
	while ((address >>= 4) != 0);
	*--at = 'x';
	*--at = '0';
	return json_stringn_nocheck(at, (size_t)(text + sizeof(text) - at));
}

json_t *control_hex(const void *bytes, size_t n)
{
	g_autofree char *text = hex_encode(bytes, n);

	return json_string(text);
}

void control_set_count(json_t *object, const char *name, uint64_t count)
{
	g_autofree char *dashed = g_strdelimit(g_strdup(name), "_", '-');

	json_object_set_new(object, dashed, json_integer((json_int_t)count));
}

/* ---- objects ---- */

const struct method_member control_event_members[] = {
	{"name", "name of the event", MEMBER_STRING},
	{"backend", "backend that counts it", MEMBER_STRING},
	{"attr", "struct perf_event_attr, in hexadecimal digits", MEMBER_STRING},
	{"ids", "for each vCPU, the id that its samples have", MEMBER_INTEGERS},
	{0},
};

json_t *control_event(const struct counter_event *event, const struct perf_event_attr *attr, json_t *ids)
{
	_Static_assert(sizeof(*attr) >= VPROF_ATTR_BYTES, "linux/perf_event.h has PERF_ATTR_SIZE_VER7");
	return json_pack("{s:s, s:s, s:o, s:o}", "name", event->name, "backend", event->backend->name, "attr",
	                 control_hex(attr, VPROF_ATTR_BYTES), "ids", ids);
}

const struct method_member control_statistics_members[] = {
	{"*", "each statistic", MEMBER_INTEGER, .names = "statistics"},
	{0},
};

json_t *control_statistics(const struct session_statistics *statistics)
{
	json_t *object = json_object();

#define X(name, help) control_set_count(object, #name, statistics->name);
	SESSION_STATISTICS(X)
#undef X
	return object;
}

void control_statistics_add(struct session_statistics *sum, const struct session_statistics *one)
{
#define X(name, help) sum->name += one->name;
	SESSION_STATISTICS(X)
#undef X
}

static const struct method_member ring_members[] = {
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"data-bytes", "data bytes of its ring", MEMBER_INTEGER},
	{0},
};

const struct method_member control_rings_members[] = {
	{"vcpus", "for each vCPU", MEMBER_OBJECTS, .members = ring_members},
	{0},
};

json_t *control_ring_json(struct control_call *call, unsigned vcpu, const struct ring *ring)
{
	_Static_assert(G_N_ELEMENTS(call->fds) >= (size_t)2 * GUEST_VCPUS_MAX, "a ring and an eventfd for each vCPU");
	call->fds[call->n_fds++] = ring_memfd(ring);
	call->fds[call->n_fds++] = ring_eventfd(ring);
	return json_pack("{s:i, s:I}", "vcpu", (int)vcpu, "data-bytes", (json_int_t)ring_data_bytes(ring));
}
