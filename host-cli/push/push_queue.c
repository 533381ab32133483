// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_queue.h"

#include "ui/message.h"

#define REQUEST_MS_MAX 30000
#define WAIT_FIRST_US (G_USEC_PER_SEC / 4)
#define WAIT_MAX_US (30 * G_USEC_PER_SEC)

/* Whether the server will never accept the profile. */
static bool is_final(const GError *why)
{
	return g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_REFUSED) ||
	       g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD);
}

/* False: it has to wait. */
static bool profile_send(struct push_queue *queue, const struct push_profile *profile, int64_t deadline_us,
                         uint64_t *asked_s, GError **error)
{
	const int64_t left_ms = (deadline_us - g_get_monotonic_time()) / 1000;
	g_autoptr(GError) why = NULL;

	if (push_sender_send(queue->sender, profile, CLAMP(left_ms, 1, REQUEST_MS_MAX), asked_s, &why)) {
		queue->sent++;
		queue->bytes += g_bytes_get_size(profile->bytes);
		return true;
	}
	if (!is_final(why)) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	say("%s; %s is discarded", why->message, profile->name);
	queue->refused++;
	if (g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD))
		queue->too_old++;
	return true;
}

/* False: the remaining files have to wait as well. */
static bool file_send(struct push_queue *queue, const char *name, int64_t deadline_us, uint64_t *asked_s,
                      GError **error)
{
	struct push_profile profile;
	g_autoptr(GError) why = NULL;
	bool done;

	if (!push_spool_read(queue->spool, name, &profile, &why)) {
		if (push_spool_complain(queue->spool, name))
			warn("%s; it is skipped", why->message);
		return true;
	}
	if (profile.format != queue->format) {
		queue->other++;
		push_profile_clear(&profile);
		return true;
	}
	done = profile_send(queue, &profile, deadline_us, asked_s, error);
	push_profile_clear(&profile);
	if (done)
		push_spool_remove(queue->spool, name);
	return done;
}

bool push_queue_pass(struct push_queue *queue, int64_t deadline_us, uint64_t *asked_s, GError **error)
{
	g_autoptr(GPtrArray) names = push_spool_list(queue->spool);

	queue->other = 0;
	*asked_s = 0;
	for (guint i = 0; i < names->len; i++)
		if (!file_send(queue, g_ptr_array_index(names, i), deadline_us, asked_s, error))
			return false;
	return true;
}

/* Between half and all of the time, so that clients that failed together do not retry together. */
int64_t push_queue_pause_us(int64_t *wait_us, uint64_t asked_s)
{
	*wait_us = *wait_us == 0 ? WAIT_FIRST_US : MIN(*wait_us * 2, WAIT_MAX_US);
	const int64_t spread_us = *wait_us / 2 + (int64_t)(g_random_double() * (double)*wait_us / 2);

	return MAX(spread_us, (int64_t)MIN(asked_s, INT32_MAX) * G_USEC_PER_SEC);
}

bool push_queue_send(struct push_queue *queue, int64_t deadline_us, GError **error)
{
	int64_t wait_us = 0;

	if (!push_spool_lock(queue->spool, deadline_us, error))
		return false;
	for (;;) {
		const unsigned done = queue->sent + queue->refused;
		g_autoptr(GError) why = NULL;
		uint64_t asked_s;

		if (push_queue_pass(queue, deadline_us, &asked_s, &why))
			return true;
		if (queue->sent + queue->refused > done)
			wait_us = 0;
		const int64_t pause_us = push_queue_pause_us(&wait_us, asked_s);

		if (!g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_LATER) ||
		    pause_us >= deadline_us - g_get_monotonic_time()) {
			g_propagate_error(error, g_steal_pointer(&why));
			return false;
		}
		say("%s; retrying in %.1f s", why->message, (double)pause_us / G_USEC_PER_SEC);
		g_usleep((gulong)pause_us);
	}
}
