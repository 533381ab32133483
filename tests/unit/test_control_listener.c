// SPDX-License-Identifier: BSD-2-Clause
/* The listening socket: who reaches it, and what else may be at its path. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "control/policy.h"
#include "control_fixture.h"
#include "lib/client/client.h"
#include "run_suite.h"

#define OTHER_UID 65534 /* of the user "nobody" */

/* A client that is one of ours, on a thread of its own. */
static void *run_client(void *path)
{
	GError *error = NULL;
	struct client *client = client_connect(path, 10000, &error);

	ck_assert_msg(client, "%s", error ? error->message : "");

	json_auto_t *taken = client_execute(client, "control-take", NULL, NULL, NULL, 10000, &error);
	ck_assert_ptr_nonnull(taken);
	json_t *arguments = json_pack("{s:[s], s:i}", "events", "timer", "ring-bytes", 4096);
	json_auto_t *started = client_execute(client, "session-start", arguments, NULL, NULL, 10000, &error);
	ck_assert_ptr_nonnull(started);
	int *fds;
	size_t n_fds;
	json_auto_t *rings = client_execute(client, "rings", NULL, &fds, &n_fds, 10000, &error);
	ck_assert_ptr_nonnull(rings);
	ck_assert_uint_eq(n_fds, (size_t)2 * FIXTURE_VCPUS);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	g_free(fds);

	ck_assert_ptr_null(client_execute(client, "rings", json_pack("{s:i}", "x", 1), NULL, NULL, 10000, &error));
	ck_assert_str_eq(error->message, "InvalidArgument: rings has no argument \"x\"; query-schema lists them");
	g_clear_error(&error);
	json_auto_t *quit = client_execute(client, "quit", NULL, NULL, NULL, 10000, &error);
	ck_assert_ptr_nonnull(quit);
	json_auto_t *ended = client_next_event(client, 10000, &error);
	ck_assert_ptr_nonnull(ended);
	client_free(client);
	return NULL;
}

static char *folder;
static char *path;

static void listen_setup(void)
{
	fixture_setup();
	folder = g_dir_make_tmp("vprof-XXXXXX", NULL);
	path = g_build_filename(folder, "made", "x.sock", NULL);
}

static void listen_teardown(void)
{
	fixture_teardown();
	g_autofree char *made = g_path_get_dirname(path);
	ck_assert_int_ne(access(path, F_OK), 0);
	rmdir(made);
	ck_assert_int_eq(rmdir(folder), 0);
	g_free(path);
	g_free(folder);
}

static void listen_ok(void)
{
	GError *error = NULL;

	ck_assert_msg(control_server_listen(server, path, &error), "%s", error ? error->message : "");
}

static void listen_fails(struct control_server *other, const char *at, const char *part)
{
	g_autoptr(GError) error = NULL;

	ck_assert(!control_server_listen(other, at, &error));
	ck_assert(g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN));
	ck_assert_msg(strstr(error->message, at) && strstr(error->message, part), "%s", error->message);
}

START_TEST(our_own_client_is_served)
{
	listen_ok();
	GThread *thread = g_thread_new("client", run_client, path);
	while (quits == 0)
		fixture_iterate();
	control_server_flush(server, 1000);
	g_thread_join(thread);
}
END_TEST

static char *policy_make(const char *text)
{
	char *file = g_build_filename(folder, "policy", NULL);

	ck_assert(g_file_set_contents(file, text, -1, NULL));
	ck_assert_int_eq(chmod(file, 0644), 0); /* whatever the umask */
	return file;
}

static const struct {
	const char *text, *part;
} wrong_policies[] = {
	{"root\n", "line 1: it is not USER ROLE"},
	{"# all\n\nroot observe extra\n", "line 3: it is not USER ROLE"},
	{"no-such-user-here observe\n", "there is no such user"},
	{"4294967295 observe\n", "there is no such user"},
	{"65534 admin\n", "the role must be observe"},
};

START_TEST(wrong_policies_are_refused)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *file = policy_make(wrong_policies[_i].text);

	ck_assert(!control_server_load_policy(server, file, &error));
	ck_assert(g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN));
	ck_assert_msg(strstr(error->message, wrong_policies[_i].part), "%s", error->message);
	unlink(file);
}
END_TEST

static void policy_refused(const char *file, const char *part)
{
	g_autoptr(GError) error = NULL;

	ck_assert(!control_server_load_policy(server, file, &error));
	ck_assert(g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN));
	ck_assert_msg(strstr(error->message, file) && strstr(error->message, part), "%s", error->message);
}

START_TEST(files_that_are_no_policy_are_refused)
{
	static const char hidden[] = "65534 observe\n\0#";
	g_autofree char *file = policy_make("65534 observe\n");
	static const mode_t wider[] = {0602, 0620, 0666};

	for (size_t i = 0; i < G_N_ELEMENTS(wider); i++) {
		ck_assert_int_eq(chmod(file, wider[i]), 0);
		policy_refused(file, "users other than its owner may write it");
	}
	ck_assert_int_eq(chmod(file, 0600), 0);
	ck_assert_int_eq(truncate(file, (off_t)POLICY_BYTES_MAX + 1), 0);
	policy_refused(file, "too large");
	ck_assert(g_file_set_contents(file, hidden, sizeof(hidden) - 1, NULL));
	ck_assert_int_eq(chmod(file, 0600), 0);
	policy_refused(file, "it is not text");
	unlink(file);
	policy_refused(file, "No such file");
	ck_assert_int_eq(mkfifo(file, 0600), 0); /* without a writer: it must not wait */
	policy_refused(file, "not a regular file");
	unlink(file);
	policy_refused(folder, "not a regular file");
}
END_TEST

/* Its owner may write it, whatever its mode says now. */
START_TEST(policies_of_others_are_refused)
{
	g_autofree char *file = policy_make("65534 observe\n");

	ck_assert_int_eq(chown(file, 65534, (gid_t)-1), 0);
	ck_assert_int_eq(chmod(file, 0400), 0);
	policy_refused(file, "belongs to neither root nor the user of the engine");
	/* Root's and our own are the two that may be; that of root is ours here. */
	ck_assert_int_eq(chown(file, 0, (gid_t)-1), 0);
	ck_assert(control_server_load_policy(server, file, NULL));
	unlink(file);
}
END_TEST

/* 0: another user may do this, 1: it is refused, 2: it cannot even connect. */
static int other_user_asks(const char *request)
{
	pid_t child = fork();

	if (child != 0) {
		int status = -1;

		while (waitpid(child, &status, WNOHANG) == 0)
			fixture_iterate();
		return WEXITSTATUS(status);
	}
	if (setgid(OTHER_UID) < 0 || setuid(OTHER_UID) < 0)
		_exit(9);
	struct client *client = client_connect(path, 5000, NULL);
	if (!client)
		_exit(2);
	_exit(client_execute(client, request, NULL, NULL, NULL, 5000, NULL) ? 0 : 1);
}

static const struct {
	const char *text, *request;
	int expected;
} policies[] = {
	{"# no user at all\n", "query-status", 2},
	{"65534 observe", "query-status", 0},
	{"65534 observe", "trace-set", 1},
	{"65534 instrument", "trace-set", 0},
	{"65534 observe", "control-take", 1},
	{"65534 instrument # it may add", "control-take", 1},
	{"65534 observe\n65534 control\n", "control-take", 0},
};

START_TEST(others_may_what_the_policy_says)
{
	if (geteuid() != 0)
		return; /* there is no other user to be */
	g_autofree char *file = policy_make(policies[_i].text);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert(control_server_load_policy(server, file, NULL));
	listen_ok();
	ck_assert_int_eq(other_user_asks(policies[_i].request), policies[_i].expected);
	unlink(file);
}
END_TEST

START_TEST(an_inherited_socket_is_served)
{
	GError *error = NULL;
	struct sockaddr_un address;
	g_autofree char *made = g_path_get_dirname(path);

	ck_assert(client_socket_address(path, &address));
	ck_assert_int_eq(mkdir(made, 0700), 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert(!control_server_listen_fd(server, fd, &error));
	ck_assert(strstr(error->message, "not a listening socket"));
	g_clear_error(&error);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert(control_server_listen_fd(server, fd, NULL));
	GThread *thread = g_thread_new("client", run_client, path);
	while (quits == 0)
		fixture_iterate();
	control_server_flush(server, 1000);
	g_thread_join(thread);
	control_server_free(server);
	server = control_server_new(&fake.guest, session);
	ck_assert_int_eq(unlink(path), 0); /* it was left alone */
}
END_TEST

START_TEST(the_socket_is_private)
{
	struct stat status;
	mode_t before = umask(0);

	listen_ok();
	umask(before);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0600);
	ck_assert(S_ISSOCK(status.st_mode));
	g_autofree char *made = g_path_get_dirname(path);
	ck_assert_int_eq(stat(made, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0700);
}
END_TEST

START_TEST(a_path_in_use_is_refused)
{
	listen_ok();
	struct control_server *other = control_server_new(&fake.guest, session);
	listen_fails(other, path, "in use");
	control_server_free(other);
	ck_assert(client_socket_live(path));
	ck_assert_int_eq(client_socket_holder(path), getpid());
}
END_TEST

static void leave_dead_socket(void)
{
	struct sockaddr_un address;

	ck_assert(client_socket_address(path, &address));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	listen(fd, 1);
	close(fd);
}

START_TEST(a_dead_socket_is_replaced)
{
	g_autofree char *made = g_path_get_dirname(path);

	mkdir(made, 0700);
	leave_dead_socket();
	ck_assert(!client_socket_live(path));
	ck_assert_int_eq(client_socket_holder(path), 0);
	listen_ok();
	ck_assert(client_socket_live(path));
}
END_TEST

#define RACERS 4
#define RACES 25

/* Tries to have the path once `start` closes, says 'y' or 'n' on `result`, and stays until `end` closes. */
G_NORETURN static void racer_run(int start, int result, int end)
{
	char byte;

	while (read(start, &byte, 1) > 0)
		;
	bool listens = control_server_listen(server, path, NULL);
	bool told = write(result, listens ? "y" : "n", 1) == 1;
	struct pollfd ended = {.fd = end, .events = POLLIN};
	while (told && poll(&ended, 1, 0) == 0)
		fixture_iterate(); /* the others ask whether its guest has ended */
	_exit(0);
}

/* How many of those that start at once listen in the end. */
static unsigned race(void)
{
	int start[2], result[2], end[2];
	pid_t racers[RACERS];
	unsigned listening = 0;

	ck_assert(pipe2(start, O_CLOEXEC) == 0 && pipe2(result, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	for (unsigned i = 0; i < RACERS; i++) {
		racers[i] = fork();
		if (racers[i] == 0) {
			close(start[1]);
			close(end[1]);
			racer_run(start[0], result[1], end[0]);
		}
	}
	close(start[1]);
	for (unsigned i = 0; i < RACERS; i++) {
		char answer = 0;

		ck_assert_int_eq(read(result[0], &answer, 1), 1);
		listening += answer == 'y';
	}
	close(end[1]);
	for (unsigned i = 0; i < RACERS; i++)
		ck_assert_int_eq(waitpid(racers[i], NULL, 0), racers[i]);
	close(start[0]);
	close(end[0]);
	close(result[0]);
	close(result[1]);
	return listening;
}

START_TEST(a_dead_socket_is_replaced_by_one)
{
	g_autofree char *made = g_path_get_dirname(path);

	mkdir(made, 0700);
	for (unsigned i = 0; i < RACES; i++) {
		leave_dead_socket();
		ck_assert_uint_eq(race(), 1);
		unlink(path);
	}
}
END_TEST

/* A stream cannot connect to it, and yet it is in use. */
START_TEST(a_socket_of_another_type_is_left_alone)
{
	struct sockaddr_un address;
	g_autofree char *made = g_path_get_dirname(path);

	mkdir(made, 0700);
	ck_assert(client_socket_address(path, &address));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	listen_fails(server, path, "in use");
	ck_assert_int_eq(access(path, F_OK), 0);
	close(fd);
	unlink(path);
}
END_TEST

/* A socket that could not be tried may have a listener. */
START_TEST(a_live_socket_survives_a_lack_of_descriptors)
{
	struct rlimit limit, none;

	listen_ok();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool live = client_socket_live(path);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert(live);
}
END_TEST

START_TEST(the_socket_of_a_successor_stays)
{
	listen_ok();
	ck_assert_int_eq(unlink(path), 0);
	leave_dead_socket();
	control_server_free(server);
	ck_assert_int_eq(access(path, F_OK), 0);
	unlink(path);
	server = control_server_new(&fake.guest, session);
}
END_TEST

START_TEST(bad_paths_are_refused)
{
	g_autofree char *made = g_path_get_dirname(path);
	g_autofree char *long_name = g_strnfill(100, 'x');
	g_autofree char *long_path = g_build_filename(folder, long_name, NULL);
	g_autofree char *deep = g_build_filename(folder, "no", "such", "x.sock", NULL);
	g_autofree char *below_file = g_build_filename(path, "x.sock", NULL);

	listen_fails(server, long_path, "longer than 107 bytes");
	listen_fails(server, deep, "cannot make folder");
	mkdir(made, 0700);
	ck_assert(g_file_set_contents(path, "precious", -1, NULL));
	listen_fails(server, path, "is not a socket");
	listen_fails(server, below_file, "is not a folder");
	g_autofree char *text = NULL;
	ck_assert(g_file_get_contents(path, &text, NULL, NULL));
	ck_assert_str_eq(text, "precious");
	unlink(path);
}
END_TEST

/* Runs `act` as another user in a child, while the server runs; returns the child's verdict. */
static bool as_other_user(bool (*act)(void))
{
	pid_t child = fork();

	if (child == 0)
		_exit(setresuid(OTHER_UID, OTHER_UID, OTHER_UID) == 0 && act() ? 0 : 1);
	int status;
	while (waitpid(child, &status, WNOHANG) == 0)
		fixture_iterate();
	return status == 0;
}

static bool cannot_connect(void)
{
	return client_socket_connect(path) < 0 && errno == EACCES;
}

static bool is_turned_away(void)
{
	char byte;
	int fd = client_socket_connect(path);
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&pollfd, 1, 10000) == 1 && read(fd, &byte, 1) <= 0;
}

static bool finds_folder_foreign(void)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *at = g_build_filename(folder, "foreign", "x.sock", NULL);

	return !control_server_listen(server, at, &error) && strstr(error->message, "belongs to uid 1;");
}

START_TEST(other_users_are_turned_away)
{
	if (geteuid() != 0)
		return; /* the rest of the file runs as anybody */
	g_autofree char *made = g_path_get_dirname(path);
	g_autofree char *foreign = g_build_filename(folder, "foreign", NULL);
	listen_ok();
	ck_assert(as_other_user(cannot_connect));
	chmod(folder, 0755);
	chmod(made, 0755);
	chmod(path, 0666);
	ck_assert(as_other_user(is_turned_away)); /* by SO_PEERCRED */

	mkdir(foreign, 0777);
	chmod(foreign, 0777);
	ck_assert_int_eq(chown(foreign, 1, 1), 0);
	ck_assert(as_other_user(finds_folder_foreign));
	rmdir(foreign);
}
END_TEST

START_TEST(connections_have_a_limit)
{
	int fds[CONTROL_CLIENTS_MAX + 1];
	char byte;

	listen_ok();
	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
		fds[i] = client_socket_connect(path);
		ck_assert_int_ge(fds[i], 0);
		fixture_settle();
	}
	struct pollfd last = {.fd = fds[CONTROL_CLIENTS_MAX], .events = POLLIN};
	ck_assert_int_eq(poll(&last, 1, 10000), 1);
	ck_assert_int_eq(read(last.fd, &byte, 1), 0);
	ck_assert_int_eq(read(fds[CONTROL_CLIENTS_MAX - 1], &byte, 1), 1);
	close(fds[0]);
	fixture_settle();
	int fd = client_socket_connect(path);
	fixture_settle();
	ck_assert_int_eq(read(fd, &byte, 1), 1);
}
END_TEST

START_TEST(a_host_without_descriptors_is_tried_again)
{
	int filler[256];
	size_t n = 0;
	const struct rlimit few = {G_N_ELEMENTS(filler), G_N_ELEMENTS(filler)};

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	listen_ok();
	int client = client_socket_connect(path);
	while (n < G_N_ELEMENTS(filler) && (filler[n] = fcntl(client, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	fixture_settle(); /* and does not spin */
	for (size_t i = 0; i < n; i++)
		close(filler[i]);
	struct pollfd pollfd = {.fd = client, .events = POLLIN};
	int64_t deadline = g_get_monotonic_time() + FIXTURE_WAIT_US;
	while (poll(&pollfd, 1, 0) == 0 && g_get_monotonic_time() < deadline)
		fixture_iterate();
	ck_assert_int_eq(pollfd.revents, POLLIN);
	close(client);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("control_listener");
	TCase *listening = tcase_create("listening");

	tcase_set_timeout(listening, 40);
	tcase_add_checked_fixture(listening, listen_setup, listen_teardown);
	tcase_add_test(listening, our_own_client_is_served);
	tcase_add_loop_test(listening, wrong_policies_are_refused, 0, G_N_ELEMENTS(wrong_policies));
	tcase_add_test(listening, files_that_are_no_policy_are_refused);
	if (geteuid() == 0) /* who else could give files away */
		tcase_add_test(listening, policies_of_others_are_refused);
	tcase_add_loop_test(listening, others_may_what_the_policy_says, 0, G_N_ELEMENTS(policies));
	tcase_add_test(listening, an_inherited_socket_is_served);
	tcase_add_test(listening, the_socket_is_private);
	tcase_add_test(listening, a_path_in_use_is_refused);
	tcase_add_test(listening, a_dead_socket_is_replaced);
	tcase_add_test(listening, a_dead_socket_is_replaced_by_one);
	tcase_add_test(listening, a_socket_of_another_type_is_left_alone);
	tcase_add_test(listening, a_live_socket_survives_a_lack_of_descriptors);
	tcase_add_test(listening, the_socket_of_a_successor_stays);
	tcase_add_test(listening, bad_paths_are_refused);
	tcase_add_test(listening, other_users_are_turned_away);
	tcase_add_test(listening, connections_have_a_limit);
	tcase_add_test(listening, a_host_without_descriptors_is_tried_again);
	suite_add_tcase(suite, listening);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
