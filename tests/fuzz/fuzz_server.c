// SPDX-License-Identifier: BSD-2-Clause
#include "fuzz_server.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/fake_task_look.h"
#include "guest/guest_debug.h"
#include "lib/client/socket.h"
#include "linux/kernel.h"
#include "sample/session.h"
#include "sample/session_modules.h"
#include "sample/table_store.h"

#define RING_BYTES 4096u

struct session {
	struct guest *guest;
	struct kernel_layout kernel;
	struct session_config config;
	bool configured, running;
	const char *why;
	struct ring *ring;
	struct table_store *tables;
};

bool session_start(struct session *session, const struct session_config *config, GError **error)
{
	if (session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "running");
		return false;
	}
	session->config = *config;
	session->config.delivery = "none"; /* the request's own text goes with it */
	if (session->config.n_events == 0) {
		session->config.n_events = 1;
		counter_event_default(&session->config.events[0], &session->why);
	}
	session->configured = session->running = true;
	return true;
}

bool session_stop(struct session *session, GError **error)
{
	bool running = session->running;

	if (!running)
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "not running");
	session->running = false;
	return running;
}

bool session_running(const struct session *session)
{
	return session->running;
}

const struct session_config *session_configuration(const struct session *session)
{
	return session->configured ? &session->config : NULL;
}

void session_event_attr(const struct session *session, unsigned event, struct perf_event_attr *attr)
{
	counter_event_attr(&session->config.events[event], &session->config.rate, attr);
}

bool session_has_tasks(const struct session *session)
{
	return !session->config.no_tasks;
}

const char *session_mappings_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_cgroups_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_modules_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_unwinder(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_unwinder_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

struct session_modules *session_modules_read(struct session *session G_GNUC_UNUSED, GError **error)
{
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "none");
	return NULL;
}

const struct module *session_modules_get(const struct session_modules *modules G_GNUC_UNUSED, unsigned i G_GNUC_UNUSED)
{
	return NULL;
}

uint64_t session_modules_left_out(const struct session_modules *modules G_GNUC_UNUSED)
{
	return 0;
}

const struct symtab *session_modules_symtab(struct session_modules *modules G_GNUC_UNUSED, unsigned i G_GNUC_UNUSED)
{
	return NULL;
}

const struct symbol *session_modules_symbol(struct session_modules *modules G_GNUC_UNUSED,
                                            uint64_t address G_GNUC_UNUSED)
{
	return NULL;
}

void session_modules_free(struct session_modules *modules G_GNUC_UNUSED)
{
}

bool session_modules_find(struct session_modules *modules G_GNUC_UNUSED, uint64_t address G_GNUC_UNUSED,
                          struct module_place *place G_GNUC_UNUSED)
{
	return false;
}

const char *session_waits_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_tasks_why(const struct session *session G_GNUC_UNUSED)
{
	return NULL;
}

const char *session_event_why(const struct session *session)
{
	return session->why;
}

const char *session_route_why(const struct session *session)
{
	return session->why;
}

const char *session_delivery(const struct session *session)
{
	return session->config.delivery;
}

struct ring *session_ring(const struct session *session, unsigned vcpu G_GNUC_UNUSED)
{
	return session->ring;
}

void session_statistics_read(const struct session *session G_GNUC_UNUSED, unsigned vcpu, struct session_statistics *out)
{
	*out = (struct session_statistics){.sample = vcpu};
}

uint64_t session_number(const struct session *session)
{
	return session->configured;
}

bool session_flush(struct session *session, GError **error)
{
	if (!session->running)
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "not running");
	return session->running;
}

void session_set_watermark(struct session *session, size_t bytes)
{
	session->config.watermark_bytes = bytes;
}

void session_resume_stalled(struct session *session G_GNUC_UNUSED)
{
}

bool session_add_sample(struct session *session, const struct session_sample *sample, GError **error)
{
	uint64_t record[16];
	const struct record_id id = {.cpu = sample->vcpu};
	const struct record_sample encoded = {.ip = sample->ip,
	                                      .pid = sample->pid,
	                                      .tid = sample->tid,
	                                      .period = sample->period,
	                                      .misc = sample->mode};
	size_t bytes = record_sample_encode(&encoded, false, record, sizeof(record));

	if (session->running && ring_write(session->ring, record, bytes, &id))
		return true;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "not running, or full");
	return false;
}

void session_free_later(struct session *session G_GNUC_UNUSED, void *data)
{
	g_free(data);
}

void session_reset_statistics(struct session *session G_GNUC_UNUSED)
{
}

bool session_forget(struct session *session, GError **error)
{
	if (session->running) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "running");
		return false;
	}
	session->configured = false;
	return true;
}

bool session_watch(struct session *session G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                   struct vcpu_watcher *watcher G_GNUC_UNUSED)
{
	return false;
}

void session_unwatch(struct session *session G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                     struct vcpu_watcher *watcher G_GNUC_UNUSED)
{
}

const struct counter_delivery *session_delivery_acquire(struct session *session G_GNUC_UNUSED,
                                                        const char *wanted G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return counter_deliveries[0];
}

void session_delivery_release(struct session *session G_GNUC_UNUSED)
{
}

struct guest *session_guest(const struct session *session)
{
	return session->guest;
}

const struct os_kernel *session_kernel(struct session *session)
{
	kernel_layout_settle(&session->kernel);
	return &session->kernel.os;
}

bool session_kernel_walk(const struct session *session G_GNUC_UNUSED, struct page_walk *walk G_GNUC_UNUSED)
{
	return false;
}

const struct task_cpu *session_task_cpu(const struct session *session G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED)
{
	return NULL;
}

struct table_store *session_tables(struct session *session)
{
	return session->tables;
}

bool session_unwind(struct session *session G_GNUC_UNUSED, const struct session_config *config,
                    struct unwind_config *unwind, GError **error)
{
	*unwind = (struct unwind_config){.depth = config->call_depth};
	if (config->call_graph == SESSION_CALL_GRAPH_ORC)
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE, "no tables");
	return config->call_graph != SESSION_CALL_GRAPH_ORC;
}

struct unwind_config session_unwinding(struct session *session G_GNUC_UNUSED)
{
	return (struct unwind_config){.depth = UNWIND_DEPTH_DEFAULT};
}

/* Counters are checked until they would start, which the guest's end then prevents. */
static bool guest_run_on_vcpu(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                              void (*fn)(void *data) G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
	return false;
}

static bool guest_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	guest->state = GUEST_RUNNING;
	return true;
}

static void guest_stop(struct guest *guest, enum guest_end_reason reason, const char *message G_GNUC_UNUSED)
{
	guest->state = GUEST_ENDED;
	guest->end.reason = reason;
}

static const struct guest_ops guest_ops = {.start = guest_start, .stop = guest_stop, .run_on_vcpu = guest_run_on_vcpu};

static bool breakpoint_add(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint,
                           GError **error G_GNUC_UNUSED)
{
	breakpoint->patched = breakpoint->kind == GUEST_BREAKPOINT_PATCH;
	return true;
}

static void breakpoint_remove(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint G_GNUC_UNUSED)
{
}

static bool breakpoint_intact(struct guest *guest G_GNUC_UNUSED, const struct guest_breakpoint *breakpoint)
{
	return !breakpoint->patched;
}

static bool observer_add(struct guest *guest G_GNUC_UNUSED, struct guest_observer *observer G_GNUC_UNUSED,
                         GError **error G_GNUC_UNUSED)
{
	return true;
}

static void observer_remove(struct guest *guest G_GNUC_UNUSED, struct guest_observer *observer G_GNUC_UNUSED)
{
}

static bool msrs_watch(struct guest *guest G_GNUC_UNUSED, const struct guest_msr_range *ranges, size_t n,
                       GError **error G_GNUC_UNUSED)
{
	for (size_t i = 0; i < n; i++)
		g_assert(ranges[i].first <= ranges[i].last && (ranges[i].read || ranges[i].write));
	return n <= GUEST_MSR_RANGES_MAX;
}

static size_t breakpoints_free(struct guest *guest G_GNUC_UNUSED)
{
	return GUEST_BREAKPOINT_ADDRESSES_MAX;
}

static void unpatch_file(struct guest *guest G_GNUC_UNUSED, uint64_t mapping G_GNUC_UNUSED,
                         uint64_t offset G_GNUC_UNUSED, uint8_t *code G_GNUC_UNUSED, size_t n G_GNUC_UNUSED)
{
}

static const char *why_not_in_files(struct guest *guest G_GNUC_UNUSED)
{
	return NULL;
}

static const struct guest_debug_ops guest_debug_ops = {.breakpoint_add = breakpoint_add,
                                                       .breakpoints_free = breakpoints_free,
                                                       .breakpoint_remove = breakpoint_remove,
                                                       .breakpoint_intact = breakpoint_intact,
                                                       .observer_add = observer_add,
                                                       .observer_remove = observer_remove,
                                                       .msrs_watch = msrs_watch,
                                                       .unpatch_file = unpatch_file,
                                                       .why_not_in_files = why_not_in_files};

static void take_lines(struct fuzz_server *server)
{
	size_t length;
	const char *line;

	while ((line = line_buffer_take(&server->lines, &length))) {
		json_error_t reason;
		json_auto_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);

		if (!json_is_object(object))
			g_error("%s in the answer %s", reason.text, line);
		if (server->on_line)
			server->on_line(object, server->data);
	}
	if (line_buffer_state(&server->lines) == LINE_TOO_LONG)
		g_error("an answer of more than a line");
}

/* Reads what there is; false when the server has closed the connection. */
static bool drain(struct fuzz_server *server)
{
	static char bytes[65536];
	ssize_t got;

	while ((got = recv(server->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		line_buffer_append(&server->lines, bytes, (size_t)got);
		take_lines(server);
	}
	return got < 0 && errno == EAGAIN;
}

/* Until the server has nothing left to do. */
static bool settle(struct fuzz_server *server)
{
	do {
		if (!drain(server))
			return false;
	} while (g_main_context_iteration(NULL, FALSE));
	return true;
}

struct fuzz_server *fuzz_server_open(void (*on_line)(const json_t *object, void *data), void *data)
{
	struct fuzz_server *server = g_new0(struct fuzz_server, 1);
	int fds[2];

	server->guest = (struct guest){
		.ops = &guest_ops, .debug = &guest_debug_ops, .kind = "fuzz", .name = (char *)"fuzz", .vcpus = 2};
	server->session = g_new0(struct session, 1);
	server->session->guest = &server->guest;
	server->session->kernel.has_tasks = true;
	server->session->ring = ring_new(RING_BYTES, NULL);
	server->session->tables = table_store_new();
	server->on_line = on_line;
	server->data = data;
	line_buffer_init(&server->lines);
	server->server = control_server_new(&server->guest, server->session);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		g_error("no socket pair");
	server->fd = fds[1];
	control_server_add_client(server->server, fds[0], true);
	server->open = settle(server);
	return server;
}

void fuzz_server_send(struct fuzz_server *server, const void *bytes, size_t size)
{
	for (size_t sent = 0; server->open && sent < size;) {
		ssize_t some = client_socket_send(server->fd, (const char *)bytes + sent, size - sent, NULL, 0);

		sent += some > 0 ? (size_t)some : 0;
		server->open = settle(server);
	}
}

void fuzz_server_close(struct fuzz_server *server)
{
	close(server->fd);
	while (g_main_context_iteration(NULL, FALSE))
		;
	if (server->guest.state != GUEST_ENDED)
		g_error("the guest outlived its owner");
	control_server_free(server->server);
	line_buffer_deinit(&server->lines);
	ring_free(server->session->ring);
	table_store_free(server->session->tables);
	g_free(server->session);
	g_free(server);
}
