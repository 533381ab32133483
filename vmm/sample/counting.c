// SPDX-License-Identifier: BSD-2-Clause
#include "sample/counting.h"

#include "sample/watch_hub.h"
#include "stream/statistics.h"

void counting_update(struct counting *counting)
{
	struct counter_reading now;

	if (!counting->meter || !counter_meter_read(counting->meter, &now))
		return;
	if (counting->counts) {
		statistic_add(&counting->sums.value, now.value - counting->last.value);
		statistic_add(&counting->sums.running_ns, now.running_ns - counting->last.running_ns);
		statistic_add(&counting->sums.enabled_ns, now.enabled_ns - counting->last.enabled_ns);
	}
	counting->last = now;
}

static struct counter_reading sums_now(const struct counting *counting)
{
	return (struct counter_reading){
		.value = atomic_load_explicit(&counting->sums.value, memory_order_relaxed),
		.running_ns = atomic_load_explicit(&counting->sums.running_ns, memory_order_relaxed),
		.enabled_ns = atomic_load_explicit(&counting->sums.enabled_ns, memory_order_relaxed),
	};
}

/* What was counted since the vCPU has run the counted task. */
static struct counter_reading slice_end(struct counting *counting)
{
	const struct counter_reading from = counting->since;

	counting->since = sums_now(counting);
	return (struct counter_reading){
		.value = counting->since.value - from.value,
		.running_ns = counting->since.running_ns - from.running_ns,
		.enabled_ns = counting->since.enabled_ns - from.enabled_ns,
	};
}

void counting_switched(struct counting *counting, const struct task_view *view, const struct task *previous,
                       const struct task *next)
{
	bool counts = counting->targets && task_targets_match(counting->targets, &counting->family, view, next);

	if (counting->log && !counting->counts)
		counting_log_passed(counting->log, view, previous);
	if (counts == counting->counts && !(counts && counting->log))
		return;
	counting_update(counting);
	if (counting->log && counting->counts) {
		const struct counter_reading slice = slice_end(counting);

		counting_log_left(counting->log, view, previous, &slice);
	}
	if (counting->log && counts)
		counts = counting_log_entered(counting->log, view, next);
	counting->counts = counts;
}

static void close_meter(struct counting *counting)
{
	counting_update(counting);
	if (counting->log && counting->meter) {
		const struct counter_reading slice = slice_end(counting);

		counting_log_end(counting->log, counting->counts ? &slice : NULL);
	}
	counter_meter_close(g_steal_pointer(&counting->meter));
	counting->targets = NULL;
}

static void counting_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	(void)watcher;
	(void)port;
}

static void counting_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	(void)watcher;
	(void)regs;
	(void)interrupted;
}

static void counting_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	(void)watcher;
	(void)exit_ip;
}

/* The last moment at which the thread's counters can be read. */
static void counting_stopped(struct vcpu_watcher *watcher)
{
	close_meter((struct counting *)watcher);
}

static const struct vcpu_watcher_ops counting_ops = {
	.started = counting_started,
	.exited = counting_exited,
	.handled = counting_handled,
	.stopped = counting_stopped,
};

void counting_init(struct counting *counting, struct session *session, unsigned vcpu, struct counting_log *log)
{
	*counting = (struct counting){.watcher.ops = &counting_ops, .session = session, .vcpu = vcpu, .log = log};
}

bool counting_start(struct counting *counting, const struct counter_event *event, const struct task_targets *targets,
                    GError **error)
{
	if (!session_watch(counting->session, counting->vcpu, &counting->watcher)) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_BUSY,
		            "cannot count on vCPU %u: it has %u watchers already", counting->vcpu, WATCHERS_MAX);
		return false;
	}
	counting->meter = counter_meter_open(event, error);
	if (!counting->meter) {
		session_unwatch(counting->session, counting->vcpu, &counting->watcher);
		return false;
	}
	counting->last = (struct counter_reading){0};
	counting->since = sums_now(counting);
	counting->family = (struct task_family){0};
	counting->targets = targets;
	counting->counts = !targets;
	return true;
}

int counting_descriptor(struct counting *counting, uint64_t *before)
{
	if (!counting->meter)
		return -1;
	counting_update(counting);
	*before = atomic_load_explicit(&counting->sums.value, memory_order_relaxed) - counting->last.value;
	return counter_meter_descriptor(counting->meter);
}

void counting_retarget(struct counting *counting, const struct task_targets *targets)
{
	if (counting->meter)
		counting->targets = targets;
}

void counting_stop(struct counting *counting)
{
	if (!counting->meter)
		return;
	close_meter(counting);
	session_unwatch(counting->session, counting->vcpu, &counting->watcher);
}
