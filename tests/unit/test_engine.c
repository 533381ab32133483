// SPDX-License-Identifier: BSD-2-Clause
/* How long an engine lives: engine_run with a guest that needs no KVM, and clients on a thread of their own. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "fake_guest.h"
#include "fake_systems.h"
#include "lib/client/client.h"
#include "lib/process/watchdog.h"
#include "run_suite.h"

#define STATUS 7
#define TIMEOUT_MS 10000u
#define LONG_MS 60000
#define MS UINT64_C(1000000)
#define LOOK_MS 20u /* as often as an engine that lingers looks whether it is still wanted */
#define LOOKS 5u

/* One run of an engine. */
static struct fake_guest fake;
static char *folder, *path;
static GString *calls;            /* the hooks that were called, in order */
static bool cannot_make, deaf;    /* the guest cannot be made; it does not hear that it is to stop */
static bool hangs;                /* the main thread waits for ever when the guest is to stop */
static void (*client)(int owner); /* what clients do, on their thread; the owner's socket or -1 */
static int owner_fd;
static atomic_uint turns; /* of the main loop, each after LOOK_MS */

static gboolean turn(void *data G_GNUC_UNUSED)
{
	atomic_fetch_add(&turns, 1);
	return G_SOURCE_CONTINUE;
}

/* By then, the engine has looked a few times whether it is still wanted. */
static void wait_for_looks(void)
{
	unsigned until = atomic_load(&turns) + LOOKS;

	while (atomic_load(&turns) < until)
		g_usleep(1000);
}

static gboolean tell_end(void *data G_GNUC_UNUSED)
{
	fake.guest.on_ended(&fake.guest, fake.guest.listener_data);
	return G_SOURCE_REMOVE;
}

static bool guest_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	guest->state = GUEST_RUNNING;
	return true;
}

static void guest_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	static char text[64];

	while (hangs)
		g_usleep(G_USEC_PER_SEC);
	if (deaf || guest->state == GUEST_ENDED)
		return;
	g_strlcpy(text, message, sizeof(text));
	guest->state = GUEST_RUNNING; /* what fake_guest_end wants */
	fake_guest_end(&fake);
	guest->end = (struct guest_end){.reason = reason, .message = text};
	g_idle_add(tell_end, NULL);
}

static const struct guest_ops guest_ops = {
	.start = guest_start,
	.stop = guest_stop,
	.run_on_vcpu = fake_run_on_vcpu,
};

static struct guest *make(void *data G_GNUC_UNUSED, GError **error)
{
	g_string_append(calls, "make ");
	if (cannot_make) {
		g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "no guest today");
		return NULL;
	}
	fake_guest_init(&fake, 1);
	fake.guest.ops = &guest_ops;
	fake.guest.name = (char *)"fake";
	return &fake.guest;
}

static bool launch(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	g_string_append(calls, "launch ");
	fake_guest_start(&fake);
	guest->state = GUEST_CREATED;
	return true;
}

static bool ready(void *data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	g_string_append(calls, "ready ");
	return true;
}

static int status(void *data G_GNUC_UNUSED)
{
	g_string_append(calls, "status ");
	return STATUS;
}

static void release(void *data G_GNUC_UNUSED)
{
	g_string_append(calls, "release ");
}

static void free_guest(struct guest *guest G_GNUC_UNUSED)
{
	g_string_append(calls, "free ");
}

static const struct engine_ops ops = {
	.name = "test",
	.stopped = "stopped by a signal",
	.make = make,
	.launch = launch,
	.ready = ready,
	.status = status,
	.release = release,
	.free = free_guest,
};

/* ---- a look that takes as long as a test wants ---- */

static void (*told)(void *engine, const GError *why);
static void *looking_engine;

static void look(void *data G_GNUC_UNUSED, void (*looked)(void *engine, const GError *why), void *engine)
{
	g_string_append(calls, "look ");
	told = looked;
	looking_engine = engine;
}

static gboolean look_end(void *why)
{
	told(looking_engine, why);
	return G_SOURCE_REMOVE;
}

static const struct engine_ops looking_ops = {
	.name = "test",
	.stopped = "stopped by a signal",
	.make = make,
	.launch = launch,
	.ready = ready,
	.look = look,
	.status = status,
	.release = release,
	.free = free_guest,
};
static const struct engine_ops *run_ops = &ops;

/* ---- clients ---- */

static json_t *ask(struct client *connection, const char *method, json_t *arguments)
{
	g_autoptr(GError) error = NULL;
	json_t *answer = client_execute(connection, method, arguments, NULL, NULL, TIMEOUT_MS, &error);

	ck_assert_msg(answer, "%s: %s", method, error ? error->message : "");
	return answer;
}

static void tell(struct client *connection, const char *method, json_t *arguments)
{
	json_decref(ask(connection, method, arguments));
}

static struct client *join(void)
{
	g_autoptr(GError) error = NULL;

	while (!client_socket_live(path))
		g_usleep(1000);
	struct client *connection = client_connect(path, TIMEOUT_MS, &error);

	ck_assert_msg(connection, "%s", error ? error->message : "");
	return connection;
}

static struct client *join_owner(int fd)
{
	g_autoptr(GError) error = NULL;
	struct client *connection = client_new_fd(fd, 0, TIMEOUT_MS, &error);

	ck_assert_msg(connection, "%s", error ? error->message : "");
	return connection;
}

static void expect_ended(struct client *connection)
{
	json_auto_t *event = client_next_event(connection, TIMEOUT_MS, NULL);

	ck_assert_str_eq(json_string_value(json_object_get(event, "event")), "guest-ended");
}

/* The engine has gone, and closed the connection. */
static void expect_closed(struct client *connection)
{
	g_autoptr(GError) error = NULL;
	json_t *event;

	while ((event = client_next_event(connection, TIMEOUT_MS, &error)))
		json_decref(event);
	ck_assert(g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED));
	client_free(connection);
}

static bool quit(struct client *connection)
{
	json_auto_t *answer = ask(connection, "quit", NULL);

	return json_is_true(json_object_get(answer, "lingers"));
}

static void expect_state(struct client *connection, const char *state)
{
	json_auto_t *answer = ask(connection, "query-status", NULL);

	ck_assert_str_eq(json_string_value(json_object_get(answer, "state")), state);
}

/* Starts a session, and has it take samples. */
static void sample(struct client *connection)
{
	tell(connection, "session-start", json_pack("{s:[s], s:i}", "events", "task-clock", "frequency-hz", 1000));
	fake_guest_burn(&fake, 20 * MS);
}

/* ---- runs ---- */

static void setup(void)
{
	folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	path = g_build_filename(folder, "x.sock", NULL);
	calls = g_string_new(NULL);
}

static void teardown(void)
{
	g_string_free(calls, TRUE);
	rmdir(folder);
	g_free(folder);
	g_free(path);
}

static void *run_client(void *data G_GNUC_UNUSED)
{
	client(owner_fd);
	return NULL;
}

/* The engine's exit status; how long it ran in *ms. */
static int run(void (*does)(int owner), bool owned, double *ms)
{
	int fds[2] = {-1, -1};
	pthread_t thread;

	if (owned)
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	const struct engine_config config = {
		.client_fd = fds[0], .control = path, .paused = owned, .systems = fake_systems};
	int64_t begin_us = g_get_monotonic_time();

	client = does;
	owner_fd = fds[1];
	guint source = g_timeout_add(LOOK_MS, turn, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, run_client, NULL), 0);
	int result = engine_run(run_ops, &config, NULL);

	*ms = (double)(g_get_monotonic_time() - begin_us) / 1e3;
	pthread_join(thread, NULL);
	g_source_remove(source);
	return result;
}

#define HOOKS "make launch ready status release free "

static void stops_the_guest(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	tell(connection, "control-take", NULL);
	tell(connection, "guest-stop", NULL);
	client_free(connection);
}

START_TEST(without_an_owner_it_ends_with_the_guest)
{
	double ms;

	ck_assert_int_eq(run(stops_the_guest, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
	ck_assert(!client_socket_live(path));
}
END_TEST

static void does_nothing(int owner G_GNUC_UNUSED)
{
}

START_TEST(without_a_guest_there_is_nothing_to_release)
{
	double ms;

	cannot_make = true;
	ck_assert_int_eq(run(does_nothing, false, &ms), EXIT_FAILURE);
	ck_assert_str_eq(calls->str, "make ");
}
END_TEST

static void owner_reads_and_quits(int owner)
{
	struct client *connection = join_owner(owner);

	expect_state(connection, "created");
	tell(connection, "guest-start", NULL);
	tell(connection, "guest-stop", NULL);
	expect_ended(connection);
	wait_for_looks();
	expect_state(connection, "ended");
	ck_assert_str_eq(calls->str, "make launch ready ");
	ck_assert(!quit(connection));
	expect_closed(connection);
}

START_TEST(with_an_owner_it_waits_for_it)
{
	double ms;

	ck_assert_int_eq(run(owner_reads_and_quits, true, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
}
END_TEST

static void owner_goes(int owner)
{
	struct client *connection = join_owner(owner), *other = join();

	tell(connection, "guest-start", NULL);
	client_free(connection);
	expect_ended(other);
	expect_closed(other);
}

START_TEST(a_guest_goes_with_its_owner)
{
	double ms;

	ck_assert_int_eq(run(owner_goes, true, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
}
END_TEST

/* What `connection` reads from its first sample on; the number of answers. */
static unsigned read_to_the_end(struct client *connection)
{
	json_int_t next = 0;
	unsigned answers = 0;
	bool end = false;

	for (; !end; answers++) {
		json_auto_t *answer =
			ask(connection, "samples-read",
		            json_pack("{s:I, s:i, s:i}", "offset", next, "max-bytes", 512, "timeout-ms", LONG_MS));

		next = json_integer_value(json_object_get(answer, "next"));
		end = json_is_true(json_object_get(answer, "end"));
	}
	return answers;
}

static void another_reads_on(int owner)
{
	struct client *connection = join_owner(owner), *other = join();

	tell(connection, "guest-start", NULL);
	sample(connection);
	tell(other, "samples-read", json_pack("{s:i}", "max-bytes", 512));
	ck_assert(quit(connection));
	client_free(connection);
	expect_ended(other);
	wait_for_looks();
	expect_state(other, "ended");
	ck_assert_str_eq(calls->str, "make launch ready status release ");
	ck_assert_uint_gt(read_to_the_end(other), 1);
	expect_closed(other);
}

START_TEST(it_lingers_until_samples_are_read)
{
	double ms;

	ck_assert_int_eq(run(another_reads_on, true, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
}
END_TEST

static void holder_stays(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	tell(connection, "control-take", NULL);
	tell(connection, "session-configure", json_pack("{s:i}", "linger-ms", 500));
	tell(connection, "guest-stop", NULL);
	expect_closed(connection);
}

START_TEST(it_lingers_no_longer_than_configured)
{
	double ms;

	ck_assert_int_eq(run(holder_stays, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
	ck_assert(ms >= 500);
}
END_TEST

static void holder_releases(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	tell(connection, "control-take", NULL);
	tell(connection, "guest-stop", NULL);
	wait_for_looks();
	expect_state(connection, "ended");
	tell(connection, "control-release", NULL);
	expect_closed(connection);
}

START_TEST(it_lingers_for_the_control_role)
{
	double ms;

	ck_assert_int_eq(run(holder_releases, false, &ms), STATUS);
}
END_TEST

static void rings_are_unread(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();
	int *fds;
	size_t n_fds;

	tell(connection, "control-take", NULL);
	sample(connection);
	json_decref(client_execute(connection, "rings", NULL, &fds, &n_fds, TIMEOUT_MS, NULL));
	ck_assert_uint_eq(n_fds, 2);
	tell(connection, "guest-stop", NULL);
	tell(connection, "control-release", NULL);
	wait_for_looks();
	expect_state(connection, "ended");
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	g_free(fds);
	client_free(connection);
}

START_TEST(it_lingers_for_rings)
{
	double ms;

	ck_assert_int_eq(run(rings_are_unread, false, &ms), STATUS);
}
END_TEST

static void another_quits(int owner G_GNUC_UNUSED)
{
	struct client *waiting = join(), *other = join();

	tell(other, "control-take", NULL);
	tell(other, "guest-stop", NULL);
	expect_ended(other);
	expect_state(waiting, "ended");
	ck_assert(!quit(other));
	expect_closed(other);
	expect_closed(waiting);
}

START_TEST(quit_ends_one_that_lingers)
{
	double ms;

	ck_assert_int_eq(run(another_quits, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
}
END_TEST

static void sends_a_signal_to_one_that_lingers(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	tell(connection, "control-take", NULL);
	kill(getpid(), SIGTERM);
	expect_ended(connection);
	expect_state(connection, "ended");
	kill(getpid(), SIGTERM);
	expect_closed(connection);
}

START_TEST(signals_stop_the_guest_and_end_the_lingering)
{
	double ms;

	ck_assert_int_eq(run(sends_a_signal_to_one_that_lingers, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, HOOKS);
}
END_TEST

static void sends_two_signals(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();
	g_autoptr(GError) error = NULL;

	/* Two that come at once may be taken for one. */
	while (!error) {
		kill(getpid(), SIGTERM);
		json_decref(client_next_event(connection, 50, &error));
	}
	client_free(connection);
}

START_TEST(the_second_signal_ends_it_at_once)
{
	int result;
	double ms;
	pid_t pid = fork();

	if (pid == 0) {
		deaf = true;
		_exit(run(sends_two_signals, false, &ms));
	}
	ck_assert_int_eq(waitpid(pid, &result, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(result), 128 + SIGTERM);
	unlink(path);
}
END_TEST

static void sends_signals(int owner G_GNUC_UNUSED)
{
	for (join();;) {
		kill(getpid(), SIGTERM);
		g_usleep(100 * 1000);
	}
}

/* The main loop does not turn any more: the signal's handler sees to the end. */
START_TEST(the_second_signal_ends_one_that_hangs)
{
	int result;
	double ms;
	pid_t pid = fork();

	if (pid == 0) {
		hangs = true;
		_exit(run(sends_signals, false, &ms));
	}
	ck_assert_int_eq(waitpid(pid, &result, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(result), 128 + SIGTERM);
	unlink(path);
}
END_TEST

#define LOOKING_HOOKS "make launch ready look status release free "

static void looks_on(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	expect_state(connection, "created");
	g_idle_add(look_end, NULL);
	for (bool runs = false; !runs; g_usleep(1000)) {
		json_auto_t *answer = ask(connection, "query-status", NULL);

		runs = strcmp(json_string_value(json_object_get(answer, "state")), "running") == 0;
	}
	tell(connection, "control-take", NULL);
	tell(connection, "guest-stop", NULL);
	client_free(connection);
}

START_TEST(others_are_served_while_it_looks)
{
	double ms;

	run_ops = &looking_ops;
	ck_assert_int_eq(run(looks_on, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, LOOKING_HOOKS);
}
END_TEST

static void terminates(int owner G_GNUC_UNUSED)
{
	struct client *connection = join();

	expect_state(connection, "created");
	kill(getpid(), SIGTERM);
	expect_ended(connection);
	client_free(connection);
}

START_TEST(a_signal_ends_a_look)
{
	double ms;

	run_ops = &looking_ops;
	ck_assert_int_eq(run(terminates, false, &ms), STATUS);
	ck_assert_str_eq(calls->str, LOOKING_HOOKS);
}
END_TEST

static void goes_while_it_looks(int owner)
{
	struct client *connection = join();

	expect_state(connection, "created");
	close(owner);
	expect_ended(connection);
	client_free(connection);
}

START_TEST(a_look_ends_with_the_owner)
{
	double ms;

	run_ops = &looking_ops;
	ck_assert_int_eq(run(goes_while_it_looks, true, &ms), STATUS);
	ck_assert_str_eq(calls->str, LOOKING_HOOKS);
}
END_TEST

/* The owner is served at the end of it. */
static void owner_waits(int owner)
{
	struct client *connection = join();

	g_idle_add(look_end, NULL);
	struct client *owning = join_owner(owner);

	expect_state(owning, "created");
	tell(owning, "guest-stop", NULL);
	expect_ended(owning);
	client_free(connection);
	quit(owning);
	expect_closed(owning);
}

START_TEST(an_owner_is_served_after_the_look)
{
	double ms;

	run_ops = &looking_ops;
	ck_assert_int_eq(run(owner_waits, true, &ms), STATUS);
	ck_assert_str_eq(calls->str, LOOKING_HOOKS);
}
END_TEST

static void look_fails(int owner G_GNUC_UNUSED)
{
	static GError why = {.message = (char *)"another kernel"};

	client_free(join());
	g_idle_add(look_end, &why);
}

START_TEST(a_look_that_fails_ends_it)
{
	double ms;

	run_ops = &looking_ops;
	ck_assert_int_eq(run(look_fails, false, &ms), EXIT_FAILURE);
	ck_assert_str_eq(calls->str, "make launch ready look release free ");
}
END_TEST

#define WATCHDOG_STATUS 9

static const struct {
	bool hangs; /* a worker does not come back while the main thread waits for it */
	int status;
} watched[] = {
	{.hangs = true, .status = WATCHDOG_STATUS},
	{.status = 0},
};

static G_GNUC_NORETURN void run_watched(size_t i)
{
	watchdog_start("too late\n");
	watchdog_limit(1, WATCHDOG_STATUS);
	if (watched[i].hangs)
		g_thread_join(g_thread_new("hangs", (GThreadFunc)(void *)pause, NULL));
	watchdog_over();
	_exit(0);
}

/* All at once, because they wait for seconds. */
START_TEST(a_passed_deadline_ends_a_process_that_hangs)
{
	pid_t pids[G_N_ELEMENTS(watched)];
	int result;

	for (size_t i = 0; i < G_N_ELEMENTS(watched); i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			run_watched(i);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(watched); i++) {
		ck_assert_int_eq(waitpid(pids[i], &result, 0), pids[i]);
		ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == watched[i].status, "process %zu: 0x%x", i,
		              (unsigned)result);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("engine");
	TCase *life = tcase_create("life");

	tcase_add_checked_fixture(life, setup, teardown);
	tcase_add_test(life, without_an_owner_it_ends_with_the_guest);
	tcase_add_test(life, without_a_guest_there_is_nothing_to_release);
	tcase_add_test(life, with_an_owner_it_waits_for_it);
	tcase_add_test(life, a_guest_goes_with_its_owner);
	tcase_add_test(life, it_lingers_until_samples_are_read);
	tcase_add_test(life, it_lingers_no_longer_than_configured);
	tcase_add_test(life, it_lingers_for_the_control_role);
	tcase_add_test(life, it_lingers_for_rings);
	tcase_add_test(life, quit_ends_one_that_lingers);
	tcase_add_test(life, signals_stop_the_guest_and_end_the_lingering);
	tcase_add_test(life, the_second_signal_ends_it_at_once);
	tcase_add_test(life, the_second_signal_ends_one_that_hangs);
	tcase_add_test(life, a_passed_deadline_ends_a_process_that_hangs);
	tcase_add_test(life, others_are_served_while_it_looks);
	tcase_add_test(life, a_signal_ends_a_look);
	tcase_add_test(life, a_look_ends_with_the_owner);
	tcase_add_test(life, an_owner_is_served_after_the_look);
	tcase_add_test(life, a_look_that_fails_ends_it);
	suite_add_tcase(suite, life);
	return run_suite(suite);
}
