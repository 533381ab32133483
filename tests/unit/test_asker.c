// SPDX-License-Identifier: BSD-2-Clause
/* The process that asks QEMU's monitor, with a monitor of the test's. */
#include <check.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/asker.h"
#include "run_suite.h"

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"
#define DONE "{\"return\": {}}\r\n"
#define WAITS 100u
#define WAIT_US 20000u

static struct {
	char *folder, *path;
	int listener;
	pid_t process; /* 0: none */
} qemu;

static void set_up(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	qemu.folder = g_dir_make_tmp("vprof-asker-XXXXXX", NULL);
	qemu.path = g_build_filename(qemu.folder, "qmp", NULL);
	qemu.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	g_strlcpy(address.sun_path, qemu.path, sizeof(address.sun_path));
	ck_assert_int_eq(bind(qemu.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(qemu.listener, 1), 0);
	qemu.process = 0;
}

static void tear_down(void)
{
	int status;

	if (qemu.process > 0) {
		ck_assert_int_eq(waitpid(qemu.process, &status, 0), qemu.process);
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	close(qemu.listener);
	g_unlink(qemu.path);
	g_rmdir(qemu.folder);
	g_free(qemu.path);
	g_free(qemu.folder);
}

static void say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		_exit(1);
}

/* A QEMU that greets, and then takes a line and says `answers` in turn; each line must have its word in it. */
static void qemu_start(const char *const words[], const char *const answers[])
{
	char line[1024];

	qemu.process = fork();
	if (qemu.process != 0)
		return;
	int fd = accept(qemu.listener, NULL, NULL);

	say(fd, GREETING);
	for (size_t i = 0; answers[i]; i++) {
		ssize_t n = read(fd, line, sizeof(line) - 1);

		line[MAX(n, 0)] = '\0';
		if (!strstr(line, words[i]) || !g_str_has_suffix(line, "}\n"))
			_exit(2);
		say(fd, answers[i]);
	}
	while (read(fd, line, sizeof(line)) > 0)
		;
	_exit(0);
}

static struct asker *start(void)
{
	const struct asker_config config = {.qmp_path = qemu.path};
	struct asker *asker = asker_start(&config);

	ck_assert_ptr_nonnull(asker);
	return asker;
}

static void on_event(const char *name, void *data)
{
	g_string_append_printf(data, "%s ", name);
}

START_TEST(answers_and_events_come_in_their_order)
{
	static const char *const words[] = {"qmp_capabilities", "\"query-status\"", "\"gpa2hva 0x1000\"",
	                                    "\"/machine/unattached/device[0]\""};
	static const char *const answers[] = {
		DONE, "{\"event\": \"STOP\"}\r\n{\"event\": \"RESET\"}\r\n{\"return\": {\"running\": false}}\r\n",
		"{\"return\": \"Host virtual address for 0x1000 is 0x7f00\"}\r\n",
		"{\"error\": {\"desc\": \"no\"}}\r\n", NULL};
	struct monitor_request request = {.command = MONITOR_ADDRESS, .address = 0x1000};
	g_autoptr(GString) events = g_string_new(NULL);
	g_autoptr(GError) error = NULL;

	qemu_start(words, answers);
	struct asker *asker = start();
	const struct asker_description *description = asker_wait(asker, NULL, NULL, &error);

	ck_assert_msg(description != NULL, "%s", error ? error->message : "");
	ck_assert_str_eq(description->uuid, "");
	monitor_listen(asker_monitor(asker), on_event, events);
	json_t *status = monitor_ask(asker_monitor(asker), MONITOR_STATUS, NULL);

	ck_assert(json_is_false(json_object_get(status, "running")));
	ck_assert_str_eq(events->str, "STOP RESET ");
	json_decref(status);
	g_autofree char *address = monitor_human(asker_monitor(asker), &request, NULL);

	ck_assert_str_eq(address, "Host virtual address for 0x1000 is 0x7f00");
	request = (struct monitor_request){.command = MONITOR_TYPE, .path = "/machine/unattached/device[0]"};
	ck_assert_ptr_null(monitor_execute(asker_monitor(asker), &request, &error));
	ck_assert_str_eq(error->message, "QEMU refuses qom-get: no");
	asker_free(asker);
}
END_TEST

START_TEST(a_monitor_that_is_not_there_is_an_error_of_the_monitors)
{
	g_autoptr(GError) error = NULL;

	g_unlink(qemu.path);
	struct asker *asker = start();

	ck_assert_ptr_null(asker_wait(asker, NULL, NULL, &error));
	ck_assert(g_error_matches(error, MONITOR_ERROR, MONITOR_ERROR_CONNECT));
	ck_assert(strstr(error->message, qemu.path) != NULL);
	asker_free(asker);
}
END_TEST

static bool confine_fails(void)
{
	errno = EPERM;
	return false;
}

START_TEST(one_that_keeps_its_rights_says_so)
{
	static const char *const words[] = {"qmp_capabilities"};
	static const char *const answers[] = {DONE, NULL};
	const struct asker_config config = {.qmp_path = qemu.path, .confine = confine_fails};
	g_autoptr(GError) error = NULL;

	qemu_start(words, answers);
	struct asker *asker = asker_start(&config);

	ck_assert_ptr_null(asker_wait(asker, NULL, NULL, &error));
	ck_assert(strstr(error->message, "cannot give up its other rights: Operation not permitted; --sandbox off"));
	asker_free(asker);
}
END_TEST

/* What an engine that was taken over might send. */
static void check_refused(struct monitor_request request)
{
	static const char *const words[] = {"qmp_capabilities"};
	static const char *const answers[] = {DONE, NULL};
	g_autoptr(GError) error = NULL;

	ck_assert(!monitor_request_valid(&request));
	qemu_start(words, answers);
	struct asker *asker = start();

	ck_assert_ptr_nonnull(asker_wait(asker, NULL, NULL, &error));
	struct monitor *monitor = asker_monitor(asker);

	ck_assert_ptr_null(monitor->transport->transact(monitor, &request, &error));
	ck_assert(g_error_matches(error, MONITOR_ERROR, MONITOR_ERROR_COMMAND));
	ck_assert(strstr(error->message, "not allowed") != NULL);
	asker_free(asker);
}

START_TEST(a_command_that_is_none_is_refused)
{
	check_refused((struct monitor_request){.command = MONITOR_COMMANDS});
}
END_TEST

START_TEST(a_path_with_more_in_it_is_refused)
{
	check_refused((struct monitor_request){.command = MONITOR_TYPE, .path = "/machine\", \"x\": \""});
}
END_TEST

START_TEST(an_argument_where_none_is_taken_is_refused)
{
	check_refused((struct monitor_request){.command = MONITOR_STATUS, .address = 1});
}
END_TEST

START_TEST(without_the_process_the_monitor_is_gone)
{
	static const char *const words[] = {"qmp_capabilities"};
	static const char *const answers[] = {"{\"error\": {\"desc\": \"too early\"}}\r\n", NULL};
	g_autoptr(GError) error = NULL;

	qemu_start(words, answers);
	struct asker *asker = start();

	ck_assert_ptr_null(asker_wait(asker, NULL, NULL, &error));
	ck_assert_str_eq(error->message, "QEMU refuses qmp_capabilities: too early");
	g_clear_error(&error);
	/* It ends then. */
	for (unsigned i = 0; i < WAITS && !g_error_matches(error, MONITOR_ERROR, MONITOR_ERROR_GONE); i++) {
		g_clear_error(&error);
		g_usleep(WAIT_US);
		ck_assert_ptr_null(monitor_ask(asker_monitor(asker), MONITOR_STATUS, &error));
	}
	ck_assert(g_error_matches(error, MONITOR_ERROR, MONITOR_ERROR_GONE));
	asker_free(asker);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("asker");
	TCase *tcase = tcase_create("asker");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, answers_and_events_come_in_their_order);
	tcase_add_test(tcase, a_monitor_that_is_not_there_is_an_error_of_the_monitors);
	tcase_add_test(tcase, one_that_keeps_its_rights_says_so);
	tcase_add_test(tcase, a_command_that_is_none_is_refused);
	tcase_add_test(tcase, a_path_with_more_in_it_is_refused);
	tcase_add_test(tcase, an_argument_where_none_is_taken_is_refused);
	tcase_add_test(tcase, without_the_process_the_monitor_is_gone);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
