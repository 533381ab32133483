// SPDX-License-Identifier: BSD-2-Clause
#include "reading/script_order.h"

#include <glib.h>
#include <vprof/recording.h>

#include "lib/profile/mode.h"

struct entry {
	struct script_item item; /* the chain is the entry's own */
	size_t number;           /* in the file: keeps equal times in its order */
};

struct sample_order {
	bool with_chains;
	bool (*each)(const struct script_item *item, void *data);
	void *data;
	GArray *held;   /* of struct entry */
	bool is_sorted; /* they are in order */
	size_t n_added;
	uint64_t newest_ns;          /* of all samples so far */
	uint64_t newest_of_round_ns; /* of the rounds before the current one */
	bool stopped;
};

static void entry_clear(void *data)
{
	struct entry *entry = data;

	g_free((void *)entry->item.sample.chain);
	g_free((void *)entry->item.sample.raw);
}

struct sample_order *sample_order_new(bool with_chains, bool (*each)(const struct script_item *item, void *data),
                                      void *data)
{
	struct sample_order *order = g_new0(struct sample_order, 1);

	order->with_chains = with_chains;
	order->each = each;
	order->data = data;
	order->is_sorted = true;
	order->held = g_array_new(FALSE, FALSE, sizeof(struct entry));
	g_array_set_clear_func(order->held, entry_clear);
	return order;
}

void sample_order_free(struct sample_order *order)
{
	if (!order)
		return;
	g_array_unref(order->held);
	g_free(order);
}

void sample_order_add(struct sample_order *order, const struct script_item *item)
{
	const guint n = order->held->len;
	struct record_sample *sample;
	struct entry *entry;

	g_array_set_size(order->held, n + 1);
	entry = &g_array_index(order->held, struct entry, n);
	entry->item = *item;
	entry->number = order->n_added++;
	sample = &entry->item.sample;
	sample->n_chain = order->with_chains ? sample->n_chain : 0;
	sample->chain = g_memdup2(sample->chain, sample->n_chain * sizeof(*sample->chain));
	sample->raw_bytes = profile_state_of(sample->misc) != VPROF_TASK_RUNNING ? sample->raw_bytes : 0;
	sample->raw = g_memdup2(sample->raw, sample->raw_bytes);
	order->is_sorted &= n == 0 || entry[-1].item.sample.time_ns <= sample->time_ns;
	order->newest_ns = MAX(order->newest_ns, sample->time_ns);
}

static int entries_compare(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->item.sample.time_ns != right->item.sample.time_ns)
		return left->item.sample.time_ns < right->item.sample.time_ns ? -1 : 1;
	return (left->number > right->number) - (left->number < right->number);
}

/* Hands out everything up to `limit_ns`. */
static bool order_flush(struct sample_order *order, uint64_t limit_ns)
{
	guint n = 0;

	if (!order->is_sorted)
		g_array_sort(order->held, entries_compare);
	order->is_sorted = true;
	while (!order->stopped && n < order->held->len) {
		const struct entry *entry = &g_array_index(order->held, struct entry, n);

		if (entry->item.sample.time_ns > limit_ns)
			break;
		order->stopped = !order->each(&entry->item, order->data);
		n++;
	}
	g_array_remove_range(order->held, 0, n);
	return !order->stopped;
}

/*
 * A ring that was drained early in this round may still yield samples as old as the end of the round before, but none
 * older (Linux, tools/perf/util/session.c, process_finished_round).
 */
bool sample_order_round(struct sample_order *order)
{
	bool going = order_flush(order, order->newest_of_round_ns);

	order->newest_of_round_ns = order->newest_ns;
	return going;
}

bool sample_order_finish(struct sample_order *order)
{
	return order_flush(order, UINT64_MAX);
}
