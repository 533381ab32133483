// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control protocol's client against engines that say what the test wants. Ids are known beforehand (negotiate has
 * 1), so that an engine's whole part can stand in the socket before the client begins.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vprof/control.h>

#include "lib/client/client.h"
#include "lib/client/line.h"
#include "lib/client/socket.h"
#include "run_suite.h"

#define WAIT_MS 10000u
#define GREETING "{\"vprof\":{\"version\":\"9.9\",\"protocol\":1,\"capabilities\":[],\"guest\":{\"name\":\"g\"}}}\n"
#define NEWER_GREETING "{\"vprof\":{\"version\":\"10.0\",\"protocol\":2}}\n"
#define NEGOTIATED "{\"return\":{\"protocol\":1},\"id\":1}\n"

static int engine; /* the other end */
static struct client *client;
static GError *error;

static void engine_says(const char *text)
{
	ck_assert_int_eq(send(engine, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void engine_says_with_fds(const char *text, const int *fds, size_t n_fds)
{
	ck_assert_int_eq(client_socket_send(engine, text, strlen(text), fds, n_fds), (ssize_t)strlen(text));
}

static int engine_connect(void)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	engine = fds[0];
	return fds[1];
}

static void setup(void)
{
	int fd = engine_connect();

	engine_says(GREETING NEGOTIATED);
	client = client_new_fd(fd, 0, WAIT_MS, &error);
	ck_assert_msg(client, "%s", error ? error->message : "");
}

static void teardown(void)
{
	client_free(client);
	close(engine);
	g_clear_error(&error);
}

static void assert_error(int code, const char *part)
{
	ck_assert_msg(g_error_matches(error, CLIENT_ERROR, code) && strstr(error->message, part), "%s",
	              error ? error->message : "no error");
	g_clear_error(&error);
}

static json_t *execute(const char *method)
{
	return client_execute(client, method, NULL, NULL, NULL, WAIT_MS, &error);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

START_TEST(negotiates)
{
	char bytes[256];
	ssize_t n = recv(engine, bytes, sizeof(bytes), MSG_DONTWAIT);
	static const char expected[] = "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":1},\"id\":1}\n";

	ck_assert_int_eq(n, (ssize_t)strlen(expected));
	ck_assert_mem_eq(bytes, expected, (size_t)n);
	ck_assert_str_eq(json_string_value(json_object_get(client_greeting(client), "version")), "9.9");
}
END_TEST

static const struct {
	const char *says;
	int code;
	const char *part;
} wrong_greetings[] = {
	{"SSH-2.0-OpenSSH_9.2\n", CLIENT_ERROR_PROTOCOL, "not a JSON object"},
	{"{\"QMP\":{}}\n", CLIENT_ERROR_PROTOCOL, "did not greet"},
	{"[]\n", CLIENT_ERROR_PROTOCOL, "not a JSON object"},
	{"{\"vprof\":{\"version\":\"0.0\",\"protocol\":0}}\n", CLIENT_ERROR_PROTOCOL,
         "version 0.0 speaks protocol 0, this program 1"},
	{NEWER_GREETING "{\"error\":{\"class\":\"Unsupported\",\"desc\":\"from 2 on\"},\"id\":1}\n",
         CLIENT_ERROR_REMOTE, "Unsupported: from 2 on"},
	{GREETING "{\"error\":{\"class\":\"Unsupported\",\"desc\":\"no\"},\"id\":1}\n", CLIENT_ERROR_REMOTE,
         "Unsupported: no"},
	{GREETING "{\"id\":1}\n", CLIENT_ERROR_PROTOCOL, "without \"return\""},
};

START_TEST(wrong_greetings_are_refused)
{
	int fd = engine_connect();

	engine_says(wrong_greetings[_i].says);
	ck_assert_ptr_null(client_new_fd(fd, 0, WAIT_MS, &error));
	assert_error(wrong_greetings[_i].code, wrong_greetings[_i].part);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	close(engine);
}
END_TEST

/* It is offered what we speak, and may take it. */
START_TEST(a_newer_engine_may_serve_us)
{
	int fd = engine_connect();

	engine_says(NEWER_GREETING NEGOTIATED);
	client = client_new_fd(fd, 0, WAIT_MS, &error);
	ck_assert_msg(client, "%s", error ? error->message : "");
	char bytes[256];
	ssize_t n = recv(engine, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	bytes[n] = '\0';
	ck_assert_msg(strstr(bytes, "{\"protocol\":1}"), "%s", bytes);
	client_free(g_steal_pointer(&client));
	close(engine);
}
END_TEST

START_TEST(a_silent_engine_runs_into_the_timeout)
{
	int fd = engine_connect();

	ck_assert_ptr_null(client_new_fd(fd, 0, 20, &error));
	assert_error(CLIENT_ERROR_TIMEOUT, "in time");
	close(engine);
}
END_TEST

/* Until it greets, after so long. */
static pid_t engine_works(unsigned ms)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid != 0)
		return pid;
	for (int64_t end = g_get_monotonic_time() + (int64_t)ms * 1000; g_get_monotonic_time() < end;)
		;
	engine_says(GREETING NEGOTIATED);
	_exit(0);
}

/* A deadline after another, as long as the engine takes CPU time, ten at most. */
START_TEST(an_engine_that_works_is_waited_for)
{
	static const struct {
		unsigned works_ms, timeout_ms;
		bool answers;
	} cases[] = {{1200, 500, true}, {5000, 50, false}};
	int fd = engine_connect();
	pid_t pid = engine_works(cases[_i].works_ms);

	client = client_new_fd(fd, pid, cases[_i].timeout_ms, &error);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (cases[_i].answers)
		ck_assert_msg(client, "%s", error ? error->message : "");
	else
		assert_error(CLIENT_ERROR_TIMEOUT, "a new connection in time");
	client_free(g_steal_pointer(&client));
	close(engine);
}
END_TEST

START_TEST(an_engine_that_goes_away_is_told)
{
	int fd = engine_connect();

	close(engine);
	ck_assert_ptr_null(client_new_fd(fd, 0, WAIT_MS, &error));
	assert_error(CLIENT_ERROR_CLOSED, "closed the connection");
}
END_TEST

START_TEST(arguments_go_out_and_values_come_back)
{
	char bytes[256] = {0};

	recv(engine, bytes, sizeof(bytes), 0);
	engine_says("{\"return\":[1,\"\xc3\xbc\"],\"id\":2}\n");
	json_auto_t *value = client_execute(client, "x", json_pack("{s:i}", "a", 5), NULL, NULL, WAIT_MS, &error);
	ck_assert_int_eq(json_integer_value(json_array_get(value, 0)), 1);
	ck_assert_str_eq(json_string_value(json_array_get(value, 1)), "ü");

	static const char expected[] = "{\"execute\":\"x\",\"arguments\":{\"a\":5},\"id\":2}\n";
	ck_assert_int_eq(recv(engine, bytes, sizeof(bytes), 0), (ssize_t)strlen(expected));
	ck_assert_mem_eq(bytes, expected, strlen(expected));
}
END_TEST

START_TEST(errors_have_class_and_text)
{
	engine_says("{\"error\":{\"class\":\"Busy\",\"desc\":\"another client records\"},\"id\":2}\n");
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_REMOTE, "Busy: another client records");
	/* What the engine could not even read has no id. */
	engine_says("{\"error\":{\"class\":\"GenericError\",\"desc\":\"what?\"}}\n");
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_REMOTE, "GenericError: what?");
}
END_TEST

static void expect_event(const char *name)
{
	json_auto_t *event = client_next_event(client, 0, &error);

	ck_assert_str_eq(json_string_value(json_object_get(event, "event")), name);
	ck_assert_ptr_null(error);
}

START_TEST(events_wait_until_asked_for)
{
	ck_assert_ptr_null(client_next_event(client, 0, &error));
	ck_assert_ptr_null(error);
	engine_says("{\"event\":\"a\"}\n{\"event\":\"b\"}\n{\"return\":{},\"id\":2}\n{\"event\":\"c\"}\n");
	json_auto_t *value = execute("x");
	ck_assert_ptr_nonnull(value);
	expect_event("a");
	expect_event("b");
	expect_event("c");
	ck_assert_ptr_null(client_next_event(client, 10, &error));
	ck_assert_ptr_null(error);
}
END_TEST

START_TEST(events_survive_the_engine)
{
	engine_says("{\"event\":\"guest-ended\"}\n");
	close(engine);
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_CLOSED, "closed");
	expect_event("guest-ended");
	ck_assert_ptr_null(client_next_event(client, WAIT_MS, &error));
	assert_error(CLIENT_ERROR_CLOSED, "closed");
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_CLOSED, "closed");
	engine = -1;
}
END_TEST

START_TEST(a_late_answer_is_thrown_away)
{
	int fds[] = {engine};
	unsigned before = open_descriptors();

	ck_assert_ptr_null(client_execute(client, "slow", NULL, NULL, NULL, 10, &error));
	assert_error(CLIENT_ERROR_TIMEOUT, "in time");
	engine_says_with_fds("{\"return\":2,\"id\":2}\n", fds, 1);
	engine_says("{\"return\":3,\"id\":3}\n");

	int *got;
	size_t n = 5;
	json_auto_t *value = client_execute(client, "x", NULL, &got, &n, WAIT_MS, &error);
	ck_assert_int_eq(json_integer_value(value), 3);
	ck_assert_uint_eq(n, 0);
	g_free(got);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

static ino_t inode_of(int fd)
{
	struct stat status;

	ck_assert_int_eq(fstat(fd, &status), 0);
	return status.st_ino;
}

/* Between lines without any, and in a line that comes in two pieces. */
START_TEST(descriptors_belong_to_their_line)
{
	int pipes[2];

	ck_assert_int_eq(pipe(pipes), 0);
	unsigned before = open_descriptors();
	engine_says("{\"event\":\"a\"}\n{\"event\":\"b\"}\n");
	engine_says_with_fds("{\"return\":{},", pipes, 2);
	engine_says("\"id\":2}\n{\"event\":\"c\"}\n");
	engine_says_with_fds("{\"event\":\"d\"}\n", pipes, 1); /* they are not taken */
	engine_says("{\"return\":{},\"id\":3}\n");

	int *fds;
	size_t n;
	json_auto_t *first = client_execute(client, "x", NULL, &fds, &n, WAIT_MS, &error);
	ck_assert_ptr_nonnull(first);
	ck_assert_uint_eq(n, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(inode_of(fds[i]), inode_of(pipes[i]));
		ck_assert_int_eq(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		close(fds[i]);
	}
	g_free(fds);
	json_auto_t *second = client_execute(client, "x", NULL, &fds, &n, WAIT_MS, &error);
	ck_assert_ptr_nonnull(second);
	ck_assert_uint_eq(n, 0);
	g_free(fds);
	for (const char *const *name = (const char *const[]){"a", "b", "c", NULL}; *name; name++)
		expect_event(*name);
	client_free(client);
	client = NULL;
	ck_assert_uint_eq(open_descriptors(), before - 1);
}
END_TEST

START_TEST(descriptors_nobody_asked_for_are_closed)
{
	int fds[VPROF_CONTROL_FDS_MAX];
	unsigned before = open_descriptors();

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
		fds[i] = engine;
	engine_says_with_fds("{\"return\":{},\"id\":2}\n", fds, G_N_ELEMENTS(fds));
	json_auto_t *value = execute("x");
	ck_assert_ptr_nonnull(value);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(too_many_descriptors_are_refused)
{
	int fds[VPROF_CONTROL_FDS_MAX];
	unsigned before = open_descriptors();

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
		fds[i] = engine;
	engine_says_with_fds("{\"return\":", fds, G_N_ELEMENTS(fds));
	engine_says_with_fds("{},\"id\":2}\n", fds, 1);
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_PROTOCOL, "descriptors");
	client_free(client);
	client = NULL;
	ck_assert_uint_eq(open_descriptors(), before - 1);
}
END_TEST

START_TEST(rubbish_ends_the_connection)
{
	engine_says("{\"return\":{},\"id\":2,\"id\":2}\n{\"return\":{},\"id\":2}\n");
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_PROTOCOL, "not a JSON object");
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_CLOSED, "closed");
}
END_TEST

START_TEST(an_endless_line_ends_the_connection)
{
	g_autofree char *line = g_strnfill(VPROF_CONTROL_LINE_BYTES_MAX, ' ');

	engine_says(line);
	ck_assert_ptr_null(execute("x"));
	assert_error(CLIENT_ERROR_PROTOCOL, "more than 131072 bytes");
}
END_TEST

START_TEST(a_request_must_fit_into_a_line)
{
	g_autofree char *text = g_strnfill(VPROF_CONTROL_LINE_BYTES_MAX, 'x');
	json_t *arguments = json_pack("{s:s}", "a", text);

	ck_assert_ptr_null(client_execute(client, "x", arguments, NULL, NULL, WAIT_MS, &error));
	assert_error(CLIENT_ERROR_PROTOCOL, "a line holds 131072");
}
END_TEST

START_TEST(an_engine_that_does_not_read_runs_into_the_timeout)
{
	g_autofree char *text = g_strnfill(60000, 'x');

	for (int i = 0; i < 10 && !error; i++) {
		json_t *arguments = json_pack("{s:s}", "a", text);

		ck_assert_ptr_null(client_execute(client, "x", arguments, NULL, NULL, 10, &error));
		assert_error(CLIENT_ERROR_TIMEOUT, "in time");
	}
}
END_TEST

START_TEST(events_nobody_asks_for_have_a_limit)
{
	for (int i = 0; i < 5000; i++) {
		g_autofree char *event = g_strdup_printf("{\"event\":\"%d\"}\n{\"return\":{},\"id\":%d}\n", i, i + 2);

		engine_says(event);
		json_auto_t *value = execute("x");
		ck_assert_ptr_nonnull(value);
		char sink[256];
		while (recv(engine, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
	expect_event("904"); /* 4096 are kept, the oldest went */
}
END_TEST

START_TEST(nobody_listens)
{
	ck_assert_ptr_null(client_connect("/nonexistent/x.sock", WAIT_MS, &error));
	assert_error(CLIENT_ERROR_CONNECT, "cannot connect to the engine at /nonexistent/x.sock: No such file");
	g_autofree char *long_path = g_strnfill(200, 'x');
	ck_assert_ptr_null(client_connect(long_path, WAIT_MS, &error));
	assert_error(CLIENT_ERROR_CONNECT, "File name too long");
}
END_TEST

START_TEST(lines_are_cut)
{
	struct line_buffer buffer;
	size_t length;

	line_buffer_init(&buffer);
	ck_assert_ptr_null(line_buffer_take(&buffer, &length));
	line_buffer_append(&buffer, "a\n\nbc", 5);
	ck_assert_str_eq(line_buffer_take(&buffer, &length), "a");
	ck_assert_uint_eq(length, 1);
	ck_assert_str_eq(line_buffer_take(&buffer, &length), "");
	ck_assert_int_eq(line_buffer_state(&buffer), LINE_PARTIAL);
	ck_assert_ptr_null(line_buffer_take(&buffer, &length));
	line_buffer_append(&buffer, "d\n", 2);
	ck_assert_str_eq(line_buffer_take(&buffer, &length), "bcd");
	ck_assert_uint_eq(length, 3);

	g_autofree char *most = g_strnfill(VPROF_CONTROL_LINE_BYTES_MAX - 1, 'x');
	line_buffer_append(&buffer, most, VPROF_CONTROL_LINE_BYTES_MAX - 1);
	ck_assert_int_eq(line_buffer_state(&buffer), LINE_PARTIAL);
	line_buffer_append(&buffer, "\nx\n", 3);
	ck_assert_str_eq(line_buffer_take(&buffer, &length), most);
	ck_assert_str_eq(line_buffer_take(&buffer, &length), "x");
	line_buffer_append(&buffer, most, VPROF_CONTROL_LINE_BYTES_MAX - 1);
	line_buffer_append(&buffer, "x\n", 2);
	ck_assert_int_eq(line_buffer_state(&buffer), LINE_TOO_LONG);
	ck_assert_ptr_null(line_buffer_take(&buffer, &length));
	line_buffer_deinit(&buffer);
}
END_TEST

/* As a user other than root, which has a fixed folder. */
static void become_ordinary(void)
{
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
}

START_TEST(the_runtime_folder_follows_the_user)
{
	g_setenv("XDG_RUNTIME_DIR", "/run/user/5", TRUE);
	if (geteuid() == 0) {
		g_autofree char *folder = client_runtime_dir();

		ck_assert_str_eq(folder, "/run/vprof");
	}
	become_ordinary();
	g_autofree char *with = client_runtime_dir();
	ck_assert_str_eq(with, "/run/user/5/vprof");
	g_autofree char *fallback = g_strdup_printf("/tmp/vprof-%u", geteuid());
	for (const char *const *value = (const char *const[]){"", "relative", NULL}; *value; value++) {
		g_setenv("XDG_RUNTIME_DIR", *value, TRUE);
		g_autofree char *without = client_runtime_dir();
		ck_assert_str_eq(without, fallback);
	}
}
END_TEST

static void become_ourselves(void)
{
	ck_assert_int_eq(seteuid(getuid()), 0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address;

	ck_assert(client_socket_address(path, &address));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	return fd;
}

static void assert_socket(const GArray *sockets, guint i, const char *path, bool live)
{
	ck_assert_uint_gt(sockets->len, i);
	const struct client_socket *entry = &g_array_index(sockets, struct client_socket, i);
	ck_assert_str_eq(entry->path, path);
	ck_assert_int_eq(entry->live, live);
}

START_TEST(sockets_are_listed_alive_or_dead)
{
	become_ordinary();
	g_autofree char *base = g_dir_make_tmp("vprof-XXXXXX", NULL);
	g_setenv("XDG_RUNTIME_DIR", base, TRUE);
	g_autoptr(GArray) none = client_list_sockets(&error);
	ck_assert_uint_eq(none->len, 0);

	g_autofree char *folder = client_runtime_dir();
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(chmod(folder, 01777), 0);
	ck_assert_ptr_null(client_list_sockets(&error));
	assert_error(CLIENT_ERROR_CONNECT, "every user may write to folder");
	ck_assert_int_eq(chmod(folder, 0700), 0);
	const char *names[] = {"a.sock", "b.sock", "c.sock", "ignored"};
	char *paths[4];
	for (size_t i = 0; i < 4; i++)
		paths[i] = g_build_filename(folder, names[i], NULL);
	close(listen_at(paths[0]));
	int live = listen_at(paths[1]);
	ck_assert(g_file_set_contents(paths[2], "no socket", -1, NULL));
	ck_assert(g_file_set_contents(paths[3], "", -1, NULL));
	int waiting[2] = {client_socket_connect(paths[1]), client_socket_connect(paths[1])};
	ck_assert_int_lt(waiting[1], 0); /* the backlog is full, so no other client gets in */

	g_autoptr(GArray) sockets = client_list_sockets(&error);
	ck_assert_uint_eq(sockets->len, 3);
	for (guint i = 0; i < 3; i++)
		assert_socket(sockets, i, paths[i], i == 1);
	close(live);
	close(waiting[0]);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(unlink(paths[i]), 0);
		g_free(paths[i]);
	}
	rmdir(folder);
	rmdir(base);
}
END_TEST

START_TEST(a_full_backlog_runs_into_the_timeout)
{
	g_autofree char *base = g_dir_make_tmp("vprof-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(base, "x.sock", NULL);
	int live = listen_at(path);
	int waiting = client_socket_connect(path);

	ck_assert_ptr_null(client_connect(path, 30, &error));
	assert_error(CLIENT_ERROR_CONNECT, "temporarily unavailable");
	close(waiting);
	close(live);
	unlink(path);
	rmdir(base);
}
END_TEST

/* What counts is who began to listen, not who does now. */
START_TEST(an_engine_of_another_user_is_refused)
{
	const uid_t other = 61005;

	if (geteuid() != 0)
		return;
	g_autofree char *base = g_dir_make_tmp("vprof-XXXXXX", NULL);
	g_autofree char *theirs = g_build_filename(base, "theirs.sock", NULL);
	g_autofree char *roots = g_build_filename(base, "roots.sock", NULL);

	ck_assert_int_eq(chmod(base, 0777), 0);
	int root_listens = listen_at(roots);
	ck_assert_int_eq(chmod(roots, 0666), 0);
	ck_assert_int_eq(seteuid(other), 0);
	int other_listens = listen_at(theirs);
	ck_assert_ptr_null(client_connect(roots, 30, &error));
	assert_error(CLIENT_ERROR_TIMEOUT, "in time"); /* not refused */
	become_ourselves();
	ck_assert_ptr_null(client_connect(theirs, WAIT_MS, &error));
	assert_error(CLIENT_ERROR_CONNECT, "it belongs to uid 61005, not to root or to you");
	close(root_listens);
	close(other_listens);
	unlink(theirs);
	unlink(roots);
	rmdir(base);
}
END_TEST

static Suite *suite_make(void)
{
	Suite *suite = suite_create("client");
	TCase *connected = tcase_create("connected"), *alone = tcase_create("alone");

	tcase_add_checked_fixture(connected, setup, teardown);
	tcase_add_test(connected, negotiates);
	tcase_add_test(connected, arguments_go_out_and_values_come_back);
	tcase_add_test(connected, errors_have_class_and_text);
	tcase_add_test(connected, events_wait_until_asked_for);
	tcase_add_test(connected, events_survive_the_engine);
	tcase_add_test(connected, a_late_answer_is_thrown_away);
	tcase_add_test(connected, descriptors_belong_to_their_line);
	tcase_add_test(connected, descriptors_nobody_asked_for_are_closed);
	tcase_add_test(connected, too_many_descriptors_are_refused);
	tcase_add_test(connected, rubbish_ends_the_connection);
	tcase_add_test(connected, an_endless_line_ends_the_connection);
	tcase_add_test(connected, a_request_must_fit_into_a_line);
	tcase_add_test(connected, an_engine_that_does_not_read_runs_into_the_timeout);
	tcase_add_test(connected, events_nobody_asks_for_have_a_limit);
	tcase_set_timeout(connected, 40);
	suite_add_tcase(suite, connected);

	tcase_add_checked_fixture(alone, NULL, become_ourselves);
	tcase_add_loop_test(alone, wrong_greetings_are_refused, 0, G_N_ELEMENTS(wrong_greetings));
	tcase_add_test(alone, a_silent_engine_runs_into_the_timeout);
	tcase_add_loop_test(alone, an_engine_that_works_is_waited_for, 0, 2);
	tcase_add_test(alone, a_newer_engine_may_serve_us);
	tcase_add_test(alone, an_engine_that_goes_away_is_told);
	tcase_add_test(alone, nobody_listens);
	tcase_add_test(alone, lines_are_cut);
	tcase_add_test(alone, the_runtime_folder_follows_the_user);
	tcase_add_test(alone, sockets_are_listed_alive_or_dead);
	tcase_add_test(alone, a_full_backlog_runs_into_the_timeout);
	tcase_add_test(alone, an_engine_of_another_user_is_refused);
	tcase_set_timeout(alone, 40);
	suite_add_tcase(suite, alone);
	return suite;
}

int main(void)
{
	return run_suite(suite_make());
}
