// SPDX-License-Identifier: BSD-2-Clause
#include "exits/exit_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exit_record.h"
#include "exits/bpf/exit_machine.h"
#include "exits/exit_program.h"
#include "exits/trace_point.h"
#include "lib/record/clock.h"
#include "lib/record/cursor.h"
#include "lib/record/ring_reader.h"

/* Of a vCPU's ring: as much as the user may lock, down to what holds some 60 exits. */
#define RING_BYTES_MAX (1u << 19)
#define RING_BYTES_MIN (1u << 13)
#define SWITCHES EXIT_POINTS /* the event of context switches, behind those of the trace points */
#define EVENTS (EXIT_POINTS + 1)

/* Of their records, what exit_events_take reads: everything is below 32 bytes. */
#define RAW_BYTES 32u
_Static_assert(sizeof(struct kvm_exit_record) <= RAW_BYTES, "it is copied from there");
static const struct point {
	const char *name; /* NULL: this processor has none */
	struct {
		const char *name;
		unsigned offset, bytes;
	} fields[2];
} points[EXIT_POINTS] = {
	[EXIT_POINT_EXIT] = {"kvm/kvm_exit", {EXIT_RECORD_FIELDS}},
	[EXIT_POINT_ENTRY] = {"kvm/kvm_entry", {{NULL}}},
	[EXIT_POINT_RETURN] = {"kvm/kvm_userspace_exit", {{"reason", 8, 4}, {"errno", 12, 4}}},
	[EXIT_POINT_RUN] = {EXIT_POINT_RUN_NAME, {{"load", 8, 4}}},
	[EXIT_POINT_PORT] = {EXIT_POINT_PORT_NAME, {{"rw", 8, 4}, {"port", 12, 4}}},
	[EXIT_POINT_MMIO] = {"kvm/kvm_mmio", {{"type", 8, 4}, {"gpa", 16, 8}}},
	[EXIT_POINT_HALTED] = {"kvm/kvm_vcpu_wakeup", {{"ns", 8, 8}, {"waited", 16, 1}}},
};

/* [L] under the vCPU's lock. */
struct followed {
	GMutex lock;
	int fds[EVENTS];              /* [L] -1: none. The first has the ring */
	bool over;                    /* [L] its thread has ended: the ring gets no more */
	struct ring_reader *ring;     /* [L] NULL: no thread */
	struct exit_times_vcpu times; /* [L] */
};

struct exit_events {
	uint64_t ids[EXIT_POINTS]; /* [I] */
	GThread *thread;           /* [M] main thread */
	int wake;                  /* [I] eventfd: there are other rings, or it is the end */
	bool ends;                 /* [a] */
	unsigned n_vcpus;          /* [I] */
	struct followed vcpus[];
};

/* ---- records ---- */

static uint32_t word_at(const uint8_t *raw, size_t offset)
{
	uint32_t word;

	memcpy(&word, raw + offset, sizeof(word));
	return word;
}

static uint64_t long_at(const uint8_t *raw, size_t offset)
{
	uint64_t value;

	memcpy(&value, raw + offset, sizeof(value));
	return value;
}

static void exit_take(const uint8_t *raw, uint64_t time_ns, struct exit_times_vcpu *vcpu)
{
	struct kvm_exit_record record;

	memcpy(&record, raw, sizeof(record));
	machine_exit(vcpu, time_ns, exit_record_isa(&record), exit_record_reason(&record));
}

static void point_take(enum exit_point point, const uint8_t *raw, uint64_t time_ns, struct exit_times_vcpu *vcpu)
{
	switch (point) {
	case EXIT_POINT_EXIT:
		exit_take(raw, time_ns, vcpu);
		break;
	case EXIT_POINT_ENTRY:
		machine_entry(vcpu, time_ns);
		break;
	case EXIT_POINT_RETURN:
		machine_return(vcpu, time_ns, word_at(raw, 8), (int)word_at(raw, 12));
		break;
	case EXIT_POINT_RUN:
		if (word_at(raw, 8))
			machine_run(vcpu, time_ns);
		break;
	case EXIT_POINT_PORT:
		machine_port(vcpu, word_at(raw, 8) != 0, word_at(raw, 12));
		break;
	case EXIT_POINT_MMIO:
		machine_mmio(vcpu, (int)word_at(raw, 8), long_at(raw, 16));
		break;
	case EXIT_POINT_HALTED:
		machine_halted(vcpu, time_ns, long_at(raw, 8), raw[16]);
		break;
	case EXIT_POINTS:
		break;
	}
}

/* PERF_SAMPLE_TIME and PERF_SAMPLE_RAW. A record of a trace point begins with the number of that. */
static void sample_take(struct cursor *cursor, const uint64_t ids[EXIT_POINTS], struct exit_times_vcpu *vcpu)
{
	uint8_t raw[RAW_BYTES] = {0};
	uint64_t time_ns;
	uint32_t bytes;
	uint16_t id;

	if (!cursor_take(cursor, &time_ns, sizeof(time_ns)) || !cursor_take(cursor, &bytes, sizeof(bytes)) ||
	    bytes < sizeof(id) || !cursor_take(cursor, raw, MIN(bytes, sizeof(raw))))
		return;
	memcpy(&id, raw, sizeof(id));
	for (unsigned point = 0; point < EXIT_POINTS; point++)
		if (ids[point] == id)
			point_take(point, raw, time_ns, vcpu);
}

/* Before the first event of KVM's, and after a loss, the thread's state is not known, and the scheduler does not tell.
 */
static bool is_known(const struct exit_times_vcpu *vcpu)
{
	return vcpu->now.state != EXIT_TIMES_STATE_UNKNOWN && vcpu->now.state != EXIT_TIMES_STATE_LOST;
}

static void switch_take(struct cursor *cursor, uint16_t misc, struct exit_times_vcpu *vcpu)
{
	uint64_t time_ns;

	if (!cursor_take(cursor, &time_ns, sizeof(time_ns)) || !is_known(vcpu))
		return;
	if (misc & PERF_RECORD_MISC_SWITCH_OUT) {
		machine_off(&vcpu->now, time_ns, misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		return;
	}
	vcpu->now.woken_ns = time_ns; /* not known */
	machine_on(&vcpu->now, time_ns);
}

/* From the last record before it to the next, anything may have happened. */
static void lost_take(struct cursor *cursor, struct exit_times_vcpu *vcpu)
{
	struct exit_times_now *now = &vcpu->now;
	uint64_t id, lost;

	if (!cursor_take(cursor, &id, sizeof(id)) || !cursor_take(cursor, &lost, sizeof(lost)))
		return;
	now->lost += lost;
	now->run = EXIT_TIMES_RUNNING;
	now->open = 0;
	now->access = now->cause = 0;
	enter(now, EXIT_TIMES_STATE_LOST);
}

void exit_events_take(const struct perf_event_header *record, size_t bytes, const uint64_t ids[EXIT_POINTS],
                      struct exit_times_vcpu *vcpu)
{
	struct cursor cursor = {(const uint8_t *)record, bytes};

	if (!cursor_skip(&cursor, sizeof(*record)))
		return;
	if (record->type == PERF_RECORD_SAMPLE)
		sample_take(&cursor, ids, vcpu);
	else if (record->type == PERF_RECORD_SWITCH)
		switch_take(&cursor, record->misc, vcpu);
	else if (record->type == PERF_RECORD_LOST)
		lost_take(&cursor, vcpu);
}

/* ---- rings ---- */

/* Under the lock. */
static void drain(const struct exit_events *events, struct followed *followed)
{
	const struct perf_event_header *record;
	size_t bytes;

	if (!followed->ring)
		return;
	while ((record = ring_reader_next(followed->ring, &bytes)))
		exit_events_take(record, bytes, events->ids, &followed->times);
	ring_reader_release(followed->ring);
}

void exit_events_copy(void *data, unsigned vcpu, struct exit_times_vcpu *to)
{
	struct exit_events *events = data;
	struct followed *followed = &events->vcpus[vcpu];

	g_mutex_lock(&followed->lock);
	drain(events, followed);
	*to = followed->times;
	g_mutex_unlock(&followed->lock);
}

static void drain_after(struct exit_events *events, struct followed *followed, short happened)
{
	g_mutex_lock(&followed->lock);
	drain(events, followed);
	followed->over |= (happened & (POLLHUP | POLLERR | POLLNVAL)) != 0;
	g_mutex_unlock(&followed->lock);
}

/* Where to wait for records; -1 where none come. */
static int ring_fd(struct followed *followed)
{
	g_mutex_lock(&followed->lock);

	int fd = followed->ring && !followed->over ? followed->fds[0] : -1;

	g_mutex_unlock(&followed->lock);
	return fd;
}

/* A ring that is half full wakes it; what is in the others is read when it is asked for. */
static void *draining_thread(void *data)
{
	struct exit_events *events = data;
	g_autofree struct pollfd *polled = g_new0(struct pollfd, events->n_vcpus + 1);
	uint64_t wakes;

	polled[events->n_vcpus] = (struct pollfd){.fd = events->wake, .events = POLLIN};
	while (!__atomic_load_n(&events->ends, __ATOMIC_ACQUIRE)) {
		for (unsigned i = 0; i < events->n_vcpus; i++)
			polled[i] = (struct pollfd){.fd = ring_fd(&events->vcpus[i]), .events = POLLIN};
		if (poll(polled, events->n_vcpus + 1, -1) < 0 && errno != EINTR)
			break;
		for (unsigned i = 0; i < events->n_vcpus; i++)
			if (polled[i].revents)
				drain_after(events, &events->vcpus[i], polled[i].revents);
		if (polled[events->n_vcpus].revents && read(events->wake, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
			break;
	}
	return NULL;
}

static void wake(struct exit_events *events)
{
	const uint64_t one = 1;

	while (write(events->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

/* ---- events ---- */

static bool fail(GError **error, const char *what, int number)
{
	const bool denied = number == EPERM || number == EACCES;

	g_set_error(error, EXIT_PROGRAM_ERROR, denied ? EXIT_PROGRAM_ERROR_DENIED : EXIT_PROGRAM_ERROR_KERNEL,
	            "cannot %s: %s", what, g_strerror(number));
	return false;
}

static int event_open(const struct exit_events *events, unsigned event, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = event == SWITCHES ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = event == SWITCHES ? PERF_COUNT_SW_DUMMY : events->ids[event],
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.sample_period = 1,
		.sample_id_all = 1,
		.context_switch = event == SWITCHES,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1, /* half of the ring */
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void events_close(struct followed *followed)
{
	g_clear_pointer(&followed->ring, ring_reader_free);
	for (unsigned i = 0; i < EVENTS; i++) {
		if (followed->fds[i] >= 0)
			close(followed->fds[i]);
		followed->fds[i] = -1;
	}
	followed->over = false;
}

/* The largest that the user may lock. */
static struct ring_reader *ring_open(int fd, GError **error)
{
	struct ring_reader *ring = NULL;

	for (size_t bytes = RING_BYTES_MAX; !ring && bytes >= RING_BYTES_MIN; bytes /= 2) {
		g_clear_error(error);
		ring = ring_reader_open_perf(fd, bytes, error);
	}
	return ring;
}

static bool has_event(unsigned event)
{
	return event == SWITCHES || points[event].name;
}

/* All into the ring of the first. */
static bool events_open(const struct exit_events *events, struct followed *followed, pid_t thread, GError **error)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		if (!has_event(i))
			continue;
		followed->fds[i] = event_open(events, i, thread);
		if (followed->fds[i] < 0)
			return fail(error, "open perf events of KVM's trace points", errno);
		if (i > 0 && ioctl(followed->fds[i], PERF_EVENT_IOC_SET_OUTPUT, followed->fds[0]) != 0)
			return fail(error, "join perf events of KVM's trace points", errno);
		if (i == 0 && !(followed->ring = ring_open(followed->fds[0], error)))
			return false;
	}
	for (unsigned i = 0; i < EVENTS; i++)
		if (has_event(i) && ioctl(followed->fds[i], PERF_EVENT_IOC_ENABLE, 0) != 0)
			return fail(error, "start perf events of KVM's trace points", errno);
	return true;
}

/* ---- load, attach, follow ---- */

static bool point_read(const struct point *point, uint64_t *id, GError **error)
{
	g_autofree char *format = trace_point_format(point->name);

	if (!format)
		return fail(error, "read KVM's trace points", errno);
	for (size_t i = 0; i < G_N_ELEMENTS(point->fields) && point->fields[i].name; i++)
		if (!trace_point_has(format, point->fields[i].name, point->fields[i].offset, point->fields[i].bytes)) {
			g_set_error(error, EXIT_PROGRAM_ERROR, EXIT_PROGRAM_ERROR_KERNEL,
			            "this kernel has another record of %s than 5.18 to 6.12", point->name);
			return false;
		}
	return trace_point_id(format, id) || fail(error, "read the number of a trace point of KVM's", EINVAL);
}

static bool points_read(struct exit_events *events, GError **error)
{
	for (unsigned i = 0; i < EXIT_POINTS; i++)
		if (has_event(i) && !point_read(&points[i], &events->ids[i], error))
			return false;
	return true;
}

static bool try_open(const struct exit_events *events, GError **error)
{
	int fd = event_open(events, EXIT_POINT_EXIT, 0);

	if (fd < 0)
		return fail(error, "open perf events of KVM's trace points", errno);
	close(fd);
	return true;
}

struct exit_events *exit_events_load(unsigned vcpus, GError **error)
{
	struct exit_events *events = g_malloc0(sizeof(*events) + vcpus * sizeof(*events->vcpus));

	events->n_vcpus = vcpus;
	for (unsigned i = 0; i < vcpus; i++) {
		g_mutex_init(&events->vcpus[i].lock);
		for (unsigned j = 0; j < EVENTS; j++)
			events->vcpus[i].fds[j] = -1;
	}
	events->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (events->wake >= 0 ? points_read(events, error) && try_open(events, error)
	                      : fail(error, "make an eventfd", errno))
		return events;
	exit_events_free(events);
	return NULL;
}

void exit_events_free(struct exit_events *events)
{
	if (!events)
		return;
	if (events->thread) {
		__atomic_store_n(&events->ends, true, __ATOMIC_RELEASE);
		wake(events);
		g_thread_join(events->thread);
	}
	for (unsigned i = 0; i < events->n_vcpus; i++) {
		events_close(&events->vcpus[i]);
		g_mutex_clear(&events->vcpus[i].lock);
	}
	if (events->wake >= 0)
		close(events->wake);
	g_free(events);
}

bool exit_events_attach(struct exit_events *events, GError **error)
{
	if (!events->thread)
		events->thread = g_thread_try_new("exits", draining_thread, events, error);
	return events->thread != NULL;
}

bool exit_events_follow(struct exit_events *events, unsigned vcpu, pid_t thread, GError **error)
{
	struct followed *followed = &events->vcpus[vcpu];

	g_mutex_lock(&followed->lock);
	events_close(followed);
	memset(&followed->times, 0, sizeof(followed->times));
	followed->times.now.since_ns = clock_ns(CLOCK_MONOTONIC);
	followed->times.now.part = EXIT_TIMES_UNKNOWN;

	bool done = events_open(events, followed, thread, error);

	if (!done)
		events_close(followed);
	g_mutex_unlock(&followed->lock);
	wake(events);
	return done;
}
