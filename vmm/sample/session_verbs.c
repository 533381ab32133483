// SPDX-License-Identifier: BSD-2-Clause
/* What can be done to a session while it runs, and its figures. */
#include <string.h>

#include "sample/ring_view.h"
#include "sample/session_priv.h"

static bool require_running(const struct session *session, const char *what, GError **error)
{
	if (session->running)
		return true;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot %s: no session is running; start one first",
	            what);
	return false;
}

static bool on_vcpu(struct session *session, unsigned vcpu, void (*fn)(void *data), void *data)
{
	return session->guest->ops->run_on_vcpu(session->guest, vcpu, fn, data);
}

static void flush_on_vcpu(void *data)
{
	sampler_flush(data);
}

/*
 * After the guest's end there is nothing left to flush: its threads did that. A route has no thread that we could ask;
 * what it lost is put down with its next record.
 */
static void flush_all(struct session *session)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		if (session->route)
			ring_wake(session->rings[i]);
		else
			on_vcpu(session, i, flush_on_vcpu, &session->samplers[i]);
	}
}

bool session_flush(struct session *session, GError **error)
{
	if (!require_running(session, "flush", error))
		return false;
	flush_all(session);
	return true;
}

void session_set_watermark(struct session *session, size_t bytes)
{
	session->config.watermark_bytes = bytes;
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		struct ring *ring = session->rings[i];

		if (ring)
			ring_set_watermark(ring, bytes ? bytes : ring_data_bytes(ring) / 4);
	}
}

static void resume_on_vcpu(void *data)
{
	sampler_resume(data);
}

void session_resume_stalled(struct session *session)
{
	if (!session->running || !session->config.stall)
		return;
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		if (sampler_can_resume(&session->samplers[i], session->rings[i]))
			on_vcpu(session, i, resume_on_vcpu, &session->samplers[i]);
	}
}

struct add_call {
	struct sampler *sampler;
	const struct session_sample *sample;
	bool done;
	GError *error;
};

static void add_on_vcpu(void *data)
{
	struct add_call *call = data;

	call->done = sampler_add(call->sampler, call->sample, &call->error);
}

bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error)
{
	struct add_call call = {.sampler = &session->samplers[sample->vcpu], .sample = sample};

	if (!require_running(session, "add a sample", error))
		return false;
	if (session->route) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot add a sample: those of this guest come by the route %s only", session->route->name);
		return false;
	}
	if (!on_vcpu(session, sample->vcpu, add_on_vcpu, &call)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot add a sample: the guest has ended");
		return false;
	}
	if (!call.done)
		g_propagate_error(error, call.error);
	return call.done;
}

/* Since the start of the session, whatever was reset. */
static void statistics_raw(const struct session *session, unsigned vcpu, struct session_statistics *out)
{
	const struct ring *ring = session->rings[vcpu];

	sampler_statistics_read(&session->samplers[vcpu], out);
#define X(name, help) out->name += session->carried[vcpu].name;
	SESSION_STATISTICS(X)
#undef X
	if (!ring)
		return;
	const struct ring_totals totals = ring_totals(ring);

	out->buf = totals.handed_over;
	out->dropbuf = totals.full_times;
	out->dropevt = totals.dropped;
	uint64_t unread = ring_view_unread(ring);

	out->readevt = totals.records > unread ? totals.records - unread : 0; /* some were written in between */
}

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out)
{
	const struct session_statistics *zero = &session->zero[vcpu];

	statistics_raw(session, vcpu, out);
#define X(name, help) out->name -= MIN(out->name, zero->name);
	SESSION_STATISTICS(X)
#undef X
}

void session_reset_statistics(struct session *session)
{
	if (session->running)
		flush_all(session);
	for (unsigned i = 0; i < session->guest->vcpus; i++)
		statistics_raw(session, i, &session->zero[i]);
}

bool session_forget(struct session *session, GError **error)
{
	if (session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            "cannot reset the session: it is running; stop it first");
		return false;
	}
	session_free_rings(session);
	session->configured = false;
	return true;
}

uint64_t session_number(const struct session *session)
{
	return session->number;
}

void session_free_later(struct session *session, void *data)
{
	g_ptr_array_add(session->later, data);
}
