// SPDX-License-Identifier: BSD-2-Clause
/* Every control method against a live engine, through the client library, as `vprof run` and others use it. */
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/client/client.h"
#include "lib/client/socket.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "run_suite.h"

#define SKIPPED 77
#define GUEST_BASE UINT64_C(0x100000) /* tests/guests/guest.ld */
#define GUEST_END UINT64_C(0x200000)
#define STATUS_STOPPED 130
#define SAMPLES_MIN 100
#define STOOD_NS INT64_C(900000000)

#define WAIT_MS 20000u /* on an idle machine */

static char *folder;
static char *path; /* of the control socket */
static pid_t engine;
static struct client *owner;

static unsigned wait_ms(void)
{
	const char *slowness = g_getenv("VPROF_TEST_SLOWNESS");

	return WAIT_MS * (slowness ? (unsigned)atoi(slowness) : 1);
}

/* Starts an engine for tests/guests/NAME; `fd` is its end of our connection, or -1. */
static pid_t engine_spawn(const char *guest, int fd, int error_fd)
{
	const char *bin = g_getenv("VPROF_BIN");
	g_autofree char *program = g_build_filename(bin, "vprof-vmm", NULL);
	g_autofree char *kernel = g_strdup_printf("%s/guest-%s.elf", bin, guest);
	g_autofree char *client_fd = g_strdup_printf("%d", fd);

	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (error_fd >= 0)
		dup2(error_fd, STDERR_FILENO);
	if (fd >= 0) {
		fcntl(fd, F_SETFD, 0);
		execl(program, program, "--kernel", kernel, "--memory", "128M", "--vcpus", "2", "--name", guest,
		      "--console", "none", "--control", path, "--paused", "--client-fd", client_fd, NULL);
	} else {
		execl(program, program, "--kernel", kernel, "--console", "none", "--control", path, NULL);
	}
	_exit(127);
}

static void setup(void)
{
	folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	path = g_build_filename(folder, "run", "x.sock", NULL);
	engine = 0;
	owner = NULL;
}

static void engine_start(const char *guest)
{
	int fds[2];
	g_autoptr(GError) error = NULL;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	engine = engine_spawn(guest, fds[1], -1);
	close(fds[1]);
	owner = client_new_fd(fds[0], 0, wait_ms(), &error);
	ck_assert_msg(owner, "%s", error ? error->message : "");
}

/* Waits for the engine's end; its exit status. */
static int engine_finish(void)
{
	int status = -1;

	for (unsigned waited_ms = 0; waitpid(engine, &status, WNOHANG) == 0; waited_ms += 10) {
		ck_assert_msg(waited_ms < wait_ms(), "the engine lives on");
		g_usleep(10000);
	}
	engine = 0;
	ck_assert_msg(WIFEXITED(status), "the engine died of signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void teardown(void)
{
	g_autofree char *run = g_path_get_dirname(path);

	client_free(owner);
	if (engine != 0) {
		kill(engine, SIGKILL);
		waitpid(engine, NULL, 0);
		unlink(path);
	}
	rmdir(run);
	ck_assert_int_eq(rmdir(folder), 0); /* the engine has removed its socket */
	g_free(path);
	g_free(folder);
}

static json_t *ask_client(struct client *client, const char *method, json_t *arguments)
{
	g_autoptr(GError) error = NULL;
	json_t *value = client_execute(client, method, arguments, NULL, NULL, wait_ms(), &error);

	ck_assert_msg(value, "%s: %s", method, error ? error->message : "");
	return value;
}

static json_t *ask(const char *method)
{
	return ask_client(owner, method, NULL);
}

static void tell(const char *method)
{
	json_decref(ask(method));
}

static void refused_client(struct client *client, const char *method, const char *class, const char *part)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(client_execute(client, method, NULL, NULL, NULL, wait_ms(), &error));
	ck_assert(g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_REMOTE));
	ck_assert_msg(g_str_has_prefix(error->message, class), "%s: %s", method, error->message);
	ck_assert_msg(strstr(error->message, part), "%s: %s", method, error->message);
}

static void refused(const char *method, const char *class)
{
	refused_client(owner, method, class, "");
}

/* The data of the next event, which has this name. */
static json_t *event_data(struct client *client, const char *name)
{
	g_autoptr(GError) error = NULL;
	json_auto_t *event = client_next_event(client, wait_ms(), &error);

	ck_assert_msg(event, "no %s: %s", name, error ? error->message : "timeout");
	ck_assert_str_eq(json_string_value(json_object_get(event, "event")), name);
	return json_incref(json_object_get(event, "data"));
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	ck_assert_msg(text, "no text %s", name);
	return text;
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	ck_assert_msg(json_is_integer(value), "no integer %s", name);
	return json_integer_value(value);
}

static void assert_state(const char *state, const char *session)
{
	json_auto_t *status = ask("query-status");

	ck_assert_str_eq(text_of(status, "state"), state);
	ck_assert_str_eq(text_of(status, "session"), session);
	ck_assert_int_eq(integer_of(status, "pid"), engine);
}

static void assert_ended(const char *reason)
{
	json_auto_t *ended = event_data(owner, "guest-ended");

	ck_assert_str_eq(text_of(ended, "reason"), reason);
	json_auto_t *status = ask("query-status");
	ck_assert(json_equal(json_object_get(status, "end"), ended));
}

START_TEST(a_paused_engine_says_what_it_is)
{
	engine_start("hang");
	assert_state("created", "idle");
	json_auto_t *guest = ask("query-guest");
	ck_assert_str_eq(text_of(guest, "name"), "hang");
	ck_assert_str_eq(text_of(guest, "kind"), "kvm");
	ck_assert(g_str_has_suffix(text_of(guest, "kernel"), "/guest-hang.elf"));
	ck_assert_int_eq(integer_of(guest, "vcpus"), 2);
	ck_assert_int_eq(integer_of(guest, "memory-bytes"), 128 << 20);
	refused("query-stats", "WrongState");
	refused("rings", "WrongState");
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

/* Guest samples in one ring; `vcpu` is what they must say. */
static uint64_t count_samples(int memfd, unsigned vcpu, uint64_t id)
{
	g_autoptr(GError) error = NULL;
	struct ring_reader *reader = ring_reader_open(memfd, &error);

	ck_assert_msg(reader, "%s", error ? error->message : "");

	uint64_t n = 0;
	size_t bytes;
	for (const struct perf_event_header *record; (record = ring_reader_next(reader, &bytes));) {
		struct record_sample sample;

		if (record->type != PERF_RECORD_SAMPLE)
			continue;
		ck_assert(record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample));
		ck_assert_uint_eq(sample.cpu, vcpu);
		ck_assert_uint_eq(sample.id, id);
		/* Before vCPU 0 has switched processors on, the others are where a reset leaves them: in real mode. */
		if ((sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
			ck_assert_msg((sample.ip >= GUEST_BASE && sample.ip < GUEST_END) ||
			                      (vcpu != 0 && vprof_is_real_mode(sample.ip)),
			              "vCPU %u at 0x%" PRIx64, vcpu, sample.ip);
		n++;
	}
	ck_assert(!ring_reader_corrupt(reader));
	ring_reader_free(reader);
	return n;
}

static json_int_t figure(const char *name)
{
	json_auto_t *stats = ask("query-stats");

	return integer_of(json_object_get(stats, "total"), name);
}

START_TEST(a_session_fills_the_rings)
{
	engine_start("hang");
	json_auto_t *session = ask_client(owner, "session-start",
	                                  json_pack("{s:[s], s:i}", "events", "task-clock", "frequency-hz", 1000));
	const json_t *event = json_array_get(json_object_get(session, "events"), 0);
	ck_assert_str_eq(text_of(event, "name"), "task-clock");
	ck_assert_uint_eq(strlen(text_of(event, "attr")), (size_t)2 * VPROF_ATTR_BYTES);

	g_autoptr(GError) error = NULL;
	g_autofree int *fds = NULL;
	size_t n_fds;
	json_auto_t *rings = client_execute(owner, "rings", NULL, &fds, &n_fds, wait_ms(), &error);
	ck_assert_msg(rings, "%s", error ? error->message : "");
	ck_assert_uint_eq(n_fds, 4);

	tell("guest-start");
	refused("guest-start", "WrongState");
	assert_state("running", "running");
	while (figure("sample") < SAMPLES_MIN) /* vCPU 0 computes */
		g_usleep(10000);
	json_auto_t *stopped = ask("session-stop");
	assert_state("running", "idle");

	const json_t *statistics = json_object_get(stopped, "statistics");
	for (unsigned vcpu = 0; vcpu < 2; vcpu++) {
		const json_t *one = json_array_get(json_object_get(statistics, "vcpus"), vcpu);
		json_int_t id = json_integer_value(json_array_get(json_object_get(event, "ids"), vcpu));

		ck_assert_int_eq(integer_of(one, "dropbuf-sample"), 0);
		ck_assert_uint_eq(count_samples(fds[(size_t)2 * vcpu], vcpu, (uint64_t)id),
		                  (uint64_t)integer_of(one, "sample"));
	}
	tell("session-start");
	tell("guest-stop");
	assert_ended("stopped");
	tell("session-stop");
	refused("session-start", "WrongState");
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
}
END_TEST

/* The records of an answer of samples-read. */
static uint64_t count_records(const json_t *answer)
{
	gsize n, at = 0;

	g_autofree guchar *bytes = g_base64_decode(text_of(answer, "data"), &n);
	uint64_t records = 0;
	for (const struct perf_event_header *record; (record = record_check(bytes + at, n - at)); at += record->size)
		records++;
	ck_assert_uint_eq(at, n);
	return records;
}

static json_t *read_on(struct client *client, json_int_t offset, int timeout_ms)
{
	return ask_client(client, "samples-read",
	                  json_pack("{s:i, s:I, s:i}", "session", 1, "offset", offset, "timeout-ms", timeout_ms));
}

START_TEST(samples_are_read_over_the_socket)
{
	engine_start("hang");
	json_decref(ask_client(owner, "session-configure",
	                       json_pack("{s:[s], s:i}", "events", "task-clock", "frequency-hz", 1000)));
	tell("session-start");
	tell("guest-start");
	json_int_t offset = 0;
	uint64_t records = 0;
	while (records < 100) {
		json_auto_t *answer = read_on(owner, offset, 5000);

		ck_assert_uint_gt(count_records(answer), 0);
		ck_assert_int_eq(integer_of(answer, "missed"), 0);
		records += count_records(answer);
		offset = integer_of(answer, "next");
	}
	json_decref(ask_client(owner, "sample-add", json_pack("{s:s}", "ip", "0xffffffff81000000")));
	ck_assert_int_eq(figure("added"), 1);
	json_auto_t *flushed = ask("session-flush");
	json_int_t end = json_integer_value(json_array_get(json_object_get(flushed, "ends"), 0));
	ck_assert_int_ge(end, offset + 56); /* at least the sample that was added */
	tell("session-stop");
	for (bool ended = false; !ended;) {
		json_auto_t *answer = read_on(owner, offset, 0);

		records += count_records(answer);
		offset = integer_of(answer, "next");
		ended = json_is_true(json_object_get(answer, "end"));
	}
	json_decref(read_on(owner, offset, 0)); /* which gives the last ones back */
	json_auto_t *stats = ask("query-stats");
	const json_t *first = json_array_get(json_object_get(stats, "vcpus"), 0);
	ck_assert_uint_eq(records, (uint64_t)(integer_of(first, "sample") + integer_of(first, "added")));
	ck_assert_int_eq(integer_of(first, "readevt"), (json_int_t)records);
	ck_assert_int_eq(figure("dropevt"), 0);
	ck_assert_int_ge(figure("intr-processed"), figure("overflow"));
	ck_assert_int_eq(figure("intr-ignored"), 0);
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

START_TEST(a_full_ring_stalls_the_counters)
{
	engine_start("hang");
	json_decref(ask_client(owner, "session-start",
	                       json_pack("{s:[s], s:i, s:i, s:s}", "events", "task-clock", "frequency-hz", 4000,
	                                 "ring-bytes", 4096, "on-full", "stall")));
	tell("guest-start");
	while (figure("stalls") == 0)
		g_usleep(10000);
	/* Overflows that were on their way when the counters stopped still become samples: there is room for them. */
	json_int_t samples;
	do {
		samples = figure("sample");
		g_usleep(200000);
	} while (figure("sample") != samples);
	json_int_t stood = figure("stalled-ns");
	while (figure("stalled-ns") - stood < STOOD_NS)
		g_usleep(10000);
	ck_assert_int_eq(figure("sample"), samples);
	ck_assert_int_eq(figure("dropevt"), 0);
	/* With room again it goes on by itself. */
	json_auto_t *all = read_on(owner, 0, 0);
	json_decref(read_on(owner, integer_of(all, "next"), 0));
	while (figure("stalls") == 1 || figure("sample") == samples)
		g_usleep(10000);
	ck_assert_int_gt(figure("sample"), samples);
	ck_assert_int_eq(figure("dropevt"), 0);
	/* It may go on once more between the two. */
	json_decref(ask_client(owner, "reset", json_pack("{s:s}", "what", "statistics")));
	ck_assert_int_lt(figure("sample"), samples);
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

START_TEST(lost_samples_are_told)
{
	engine_start("hang");
	json_decref(ask_client(
		owner, "session-start",
		json_pack("{s:[s], s:i, s:i}", "events", "task-clock", "frequency-hz", 4000, "ring-bytes", 4096)));
	tell("guest-start");
	json_auto_t *lost = event_data(owner, "samples-lost");
	ck_assert_int_eq(integer_of(lost, "vcpu"), 0);
	ck_assert_int_gt(integer_of(lost, "lost"), 0);
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

START_TEST(phases_and_the_end_are_told)
{
	static const int phases[] = {0x20, 0x40, 0x60, 0x80};

	engine_start("phase_marks");
	tell("guest-start");
	json_int_t before_ns = 0;
	for (size_t i = 0; i < G_N_ELEMENTS(phases); i++) {
		json_auto_t *phase = event_data(owner, "guest-phase");

		ck_assert_int_eq(integer_of(phase, "vcpu"), 0);
		ck_assert_int_eq(integer_of(phase, "value"), phases[i]);
		ck_assert_int_gt(integer_of(phase, "time-ns"), before_ns);
		before_ns = integer_of(phase, "time-ns");
	}
	assert_ended("power-off");
	tell("guest-stop"); /* too late, and no error */
	tell("quit");
	ck_assert_int_eq(engine_finish(), 0);
}
END_TEST

static const struct {
	const char *guest, *kind, *pattern;
} traces[] = {
	{"phase_marks", "phases", "vcpu0: phase 0x20\n.*vcpu0: phase 0x40\n.*phase 0x60\n.*phase 0x80\n\\z"},
	{"console_flood", "console", "\\]:vmm: console_flood: the quick brown fox jumps over the lazy dog\n"},
	{"console_flood", "exits", "\\]:vcpu0: exit:io:0x3f8\n"},
};

START_TEST(the_trace_has_what_was_asked_for)
{
	engine_start(traces[_i].guest);
	json_decref(ask_client(owner, "trace-set", json_pack("{s:s}", "what", traces[_i].kind)));
	tell("guest-start");
	for (const char *name = ""; !g_str_equal(name, "guest-ended");) {
		json_auto_t *event = client_next_event(owner, wait_ms(), NULL);

		ck_assert_ptr_nonnull(event);
		name = g_intern_string(text_of(event, "event"));
	}
	json_auto_t *read = ask("trace-read");
	ck_assert_msg(g_regex_match_simple(traces[_i].pattern, text_of(read, "text"), 0, 0), "%.500s",
	              text_of(read, "text"));
	json_auto_t *off =
		ask_client(owner, "trace-set", json_pack("{s:s, s:s}", "what", traces[_i].kind, "state", "toggle"));
	ck_assert(json_is_false(json_object_get(off, traces[_i].kind)));
	tell("quit");
	ck_assert_int_eq(engine_finish(), 0);
}
END_TEST

START_TEST(an_exit_code_is_told)
{
	engine_start("exit_port");
	tell("guest-start");
	json_auto_t *ended = event_data(owner, "guest-ended");
	ck_assert_str_eq(text_of(ended, "reason"), "exit-port");
	ck_assert_int_eq(integer_of(ended, "code"), 7);
	tell("quit");
	ck_assert_int_eq(engine_finish(), 7 << 1 | 1);
}
END_TEST

START_TEST(the_engine_ends_with_its_client)
{
	engine_start("hang");
	tell("guest-start");
	if (_i == 1)
		tell("session-start");
	client_free(g_steal_pointer(&owner));
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

START_TEST(the_engine_outlives_its_guest_for_the_client)
{
	engine_start("power_off");
	tell("session-start");
	tell("guest-start");
	assert_ended("power-off");
	tell("query-stats");
	tell("rings");
	client_free(g_steal_pointer(&owner));
	ck_assert_int_eq(engine_finish(), 0);
}
END_TEST

START_TEST(others_come_by_the_socket)
{
	g_autoptr(GError) error = NULL;

	engine_start("hang");
	tell("guest-start");
	struct client *other = client_connect(path, wait_ms(), &error);
	ck_assert_msg(other, "%s", error ? error->message : "");
	ck_assert_str_eq(text_of(json_object_get(client_greeting(other), "guest"), "name"), "hang");
	struct client *third = client_connect(path, wait_ms(), &error);
	client_free(third); /* no other client is affected */
	assert_state("running", "idle");

	/* `vprof run`, here this process, holds the control role. */
	g_autofree char *holder = g_strdup_printf("pid %d (uid %u)", getpid(), getuid());
	refused_client(other, "session-start", "Busy", holder);
	refused_client(other, "control-take", "Busy", holder);
	refused_client(other, "quit", "Busy", holder);
	json_decref(ask_client(other, "vcpu-time-reset", NULL));
	tell("control-release");
	refused_client(other, "quit", "PermissionDenied", "control-take first");
	json_decref(ask_client(other, "control-take", NULL));
	refused("session-start", "Busy");
	json_decref(ask_client(other, "quit", NULL));
	json_decref(event_data(other, "guest-ended"));
	json_decref(event_data(owner, "guest-ended"));
	ck_assert_ptr_null(client_next_event(owner, wait_ms(), &error));
	ck_assert(g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED));
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
	client_free(other);
}
END_TEST

START_TEST(a_second_engine_on_the_socket_is_refused)
{
	engine_start("hang");
	int pipes[2], status;
	char text[1024] = {0};
	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	pid_t second = engine_spawn("hang", -1, pipes[1]);
	close(pipes[1]);
	ck_assert_int_eq(waitpid(second, &status, 0), second);
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	ck_assert_int_gt(read(pipes[0], text, sizeof(text) - 1), 0);
	g_autofree char *expected = g_strdup_printf("vprof-vmm: cannot listen on %s: it is in use", path);
	ck_assert_msg(g_str_has_prefix(text, expected), "%s", text);
	close(pipes[0]);

	assert_state("created", "idle");
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

#define KEEPER_LOOK_US 10000
#define KEEPER_LOOKS 2000

START_TEST(a_killed_engine_leaves_no_socket)
{
	engine_start("hang");
	kill(engine, SIGKILL);
	waitpid(engine, NULL, 0);
	client_free(g_steal_pointer(&owner));
	/* By another process, when it hears of it. */
	for (unsigned i = 0; i < KEEPER_LOOKS && access(path, F_OK) == 0; i++)
		g_usleep(KEEPER_LOOK_US);
	ck_assert_int_ne(access(path, F_OK), 0);
	engine_start("hang");
	ck_assert(client_socket_live(path));
	tell("quit");
	ck_assert_int_eq(engine_finish(), STATUS_STOPPED);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_live");
	TCase *tc = tcase_create("engine");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_paused_engine_says_what_it_is);
	tcase_add_test(tc, a_session_fills_the_rings);
	tcase_add_test(tc, samples_are_read_over_the_socket);
	tcase_add_test(tc, a_full_ring_stalls_the_counters);
	tcase_add_test(tc, lost_samples_are_told);
	tcase_add_test(tc, phases_and_the_end_are_told);
	tcase_add_loop_test(tc, the_trace_has_what_was_asked_for, 0, G_N_ELEMENTS(traces));
	tcase_add_test(tc, an_exit_code_is_told);
	tcase_add_loop_test(tc, the_engine_ends_with_its_client, 0, 2);
	tcase_add_test(tc, the_engine_outlives_its_guest_for_the_client);
	tcase_add_test(tc, others_come_by_the_socket);
	tcase_add_test(tc, a_second_engine_on_the_socket_is_refused);
	tcase_add_test(tc, a_killed_engine_leaves_no_socket);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	if (access("/dev/kvm", R_OK | W_OK) < 0) {
		puts("skipped: /dev/kvm cannot be opened");
		return SKIPPED;
	}
	if (!g_getenv("VPROF_BIN")) {
		puts("skipped: VPROF_BIN does not name the folder of the programs");
		return SKIPPED;
	}
	return run_suite(suite_make());
}
