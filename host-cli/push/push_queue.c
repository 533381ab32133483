// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_queue.h"

#include "ui/message.h"

#define REQUEST_MS_MAX 30000
/* Under way at once when many files wait: some servers answer after half a second, when the profile is on their disk.
 */
#define REQUESTS_MAX 8u
#define FILES_OF_REQUEST 8u
#define WAIT_FIRST_US (G_USEC_PER_SEC / 4)
#define WAIT_MAX_US (30 * G_USEC_PER_SEC)

/* One pass; what follows the lock, and the counts of the queue, are read and written under it. */
struct pass {
	struct push_queue *queue;
	GPtrArray *names;
	int64_t deadline_us, until_us;
	GMutex lock;
	guint next;
	uint64_t asked_s;
	GError *error; /* why the remaining files have to wait; NULL */
};

/* Whether the server will never accept the profile. */
static bool is_final(const GError *why)
{
	return g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_REFUSED) ||
	       g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD);
}

/* What became of it; `why` is taken. False: it has to wait. */
static bool profile_count(struct pass *pass, const struct push_profile *profile, uint64_t asked_s, GError *why)
{
	struct push_queue *queue = pass->queue;

	if (!why) {
		queue->sent++;
		queue->bytes += g_bytes_get_size(profile->bytes);
		return true;
	}
	if (is_final(why)) {
		say("%s; %s is discarded", why->message, profile->name);
		queue->refused++;
		if (g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD))
			queue->too_old++;
		g_error_free(why);
		return true;
	}
	pass->asked_s = MAX(pass->asked_s, asked_s);
	if (pass->error)
		g_error_free(why);
	else
		pass->error = why;
	return false;
}

/* False: it has to wait. */
static bool profile_send(struct pass *pass, struct push_sender *sender, const struct push_profile *profile)
{
	const int64_t left_ms = (pass->deadline_us - g_get_monotonic_time()) / 1000;
	uint64_t asked_s = 0;
	GError *why = NULL;

	push_sender_send(sender, profile, CLAMP(left_ms, 1, REQUEST_MS_MAX), &asked_s, &why);
	g_mutex_lock(&pass->lock);
	const bool done = profile_count(pass, profile, asked_s, why);

	g_mutex_unlock(&pass->lock);
	return done;
}

/* What is no profile, or one for another server, stays. */
static bool file_read(struct pass *pass, const char *name, struct push_profile *profile)
{
	struct push_queue *queue = pass->queue;
	g_autoptr(GError) why = NULL;
	const bool read = push_spool_read(queue->spool, name, profile, &why);

	if (read && profile->format == queue->format)
		return true;
	g_mutex_lock(&pass->lock);
	queue->other += read;
	if (!read && push_spool_complain(queue->spool, name))
		warn("%s; it is skipped", why->message);
	g_mutex_unlock(&pass->lock);
	if (read)
		push_profile_clear(profile);
	return false;
}

static void file_send(struct pass *pass, struct push_sender *sender, const char *name)
{
	struct push_profile profile;

	if (!file_read(pass, name, &profile))
		return;
	if (profile_send(pass, sender, &profile))
		push_spool_remove(pass->queue->spool, name);
	push_profile_clear(&profile);
}

/* NULL: there is none, or it is not for this pass. */
static const char *next_name(struct pass *pass)
{
	const char *name = NULL;

	g_mutex_lock(&pass->lock);
	const bool goes_on = !pass->error && pass->next < pass->names->len;

	if (goes_on && g_get_monotonic_time() >= pass->until_us)
		pass->queue->more = true;
	else if (goes_on)
		name = g_ptr_array_index(pass->names, pass->next++);
	g_mutex_unlock(&pass->lock);
	return name;
}

static void send_files(struct pass *pass, struct push_sender *sender)
{
	const char *name;

	while ((name = next_name(pass)))
		file_send(pass, sender, name);
}

static gpointer send_beside(gpointer data)
{
	struct pass *pass = data;
	struct push_sender *sender = push_sender_another(pass->queue->sender);

	send_files(pass, sender);
	push_sender_free(sender);
	return NULL;
}

/* On several threads where there are many. */
static void send_all(struct pass *pass)
{
	GThread *threads[REQUESTS_MAX - 1];
	const guint n = MIN(pass->names->len / FILES_OF_REQUEST, REQUESTS_MAX - 1);

	for (guint i = 0; i < n; i++)
		threads[i] = g_thread_new("push", send_beside, pass);
	send_files(pass, pass->queue->sender);
	for (guint i = 0; i < n; i++)
		g_thread_join(threads[i]);
}

bool push_queue_pass(struct push_queue *queue, int64_t deadline_us, uint64_t *asked_s, GError **error)
{
	const int64_t now_us = g_get_monotonic_time();
	struct pass pass = {
		.queue = queue,
		.names = push_spool_list(queue->spool),
		.deadline_us = deadline_us,
		.until_us = queue->pass_us ? now_us + queue->pass_us : INT64_MAX,
	};
	const char *first;

	queue->other = 0;
	queue->more = false;
	g_mutex_init(&pass.lock);
	/* A server that has failed is tried by one request. */
	first = queue->failed ? next_name(&pass) : NULL;
	if (first)
		file_send(&pass, queue->sender, first);
	if (!pass.error)
		send_all(&pass);
	g_mutex_clear(&pass.lock);
	g_ptr_array_unref(pass.names);
	*asked_s = pass.asked_s;
	queue->failed = pass.error;
	queue->more &= !pass.error;
	if (pass.error)
		g_propagate_error(error, pass.error);
	return !pass.error;
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
