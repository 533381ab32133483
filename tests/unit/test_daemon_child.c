// SPDX-License-Identifier: BSD-2-Clause
/* The supervisor's view of its processes; their functions are here. */
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_child.h"
#include "run_suite.h"

#define SECOND ((int64_t)G_USEC_PER_SEC)

/* Reads lines until the child has ended. */
static void read_to_end(struct daemon_child *child, daemon_child_line *take, void *data)
{
	while (child->fd >= 0) {
		struct pollfd entry = {.fd = child->fd, .events = POLLIN};

		poll(&entry, 1, -1);
		daemon_child_read(child, take, data);
	}
	while (!daemon_child_reap(child))
		g_usleep(1000);
}

static void sum(json_t *line, void *data)
{
	*(json_int_t *)data += json_integer_value(json_object_get(line, "n"));
}

static int say_two(int fd, void *data)
{
	(void)data;
	daemon_child_say(fd, json_pack("{s:i}", "n", 40));
	daemon_child_say(fd, json_pack("{s:i}", "n", 2));
	return 0;
}

START_TEST(lines_arrive_and_the_end_is_seen)
{
	struct daemon_child child;
	json_int_t n = 0;

	daemon_child_init(&child);
	daemon_child_start(&child, "test", say_two, NULL);
	ck_assert_int_gt(child.pid, 0);
	read_to_end(&child, sum, &n);
	ck_assert_int_eq(n, 42);
	ck_assert_int_eq(child.pid, 0);
	ck_assert_uint_eq(child.restarts, 1);
	ck_assert_int_eq(child.pause_us, SECOND);
	ck_assert_int_gt(child.due_us, child.started_us);
	ck_assert(!daemon_child_reap(&child));
	daemon_child_clear(&child);
}
END_TEST

static int wait_for_end(int fd, void *data)
{
	(void)data;
	daemon_child_say(fd, json_pack("{s:b}", "ended", daemon_child_wait(fd, -1)));
	return 0;
}

START_TEST(a_child_that_is_told_to_end_ends)
{
	struct daemon_child child;
	json_int_t n = 0;

	daemon_child_init(&child);
	daemon_child_start(&child, "test", wait_for_end, NULL);
	daemon_child_stop(&child);
	read_to_end(&child, sum, &n);
	ck_assert_uint_eq(child.restarts, 0);
	daemon_child_clear(&child);
}
END_TEST

static int hang(int fd, void *data)
{
	(void)fd;
	(void)data;
	g_usleep((gulong)(3600 * SECOND));
	return 0;
}

START_TEST(a_child_that_hangs_is_killed)
{
	struct daemon_child child;

	daemon_child_init(&child);
	daemon_child_start(&child, "test", hang, NULL);
	daemon_child_stop(&child);
	ck_assert(!daemon_child_reap(&child));
	child.stop_us -= DAEMON_CHILD_STOP_US + 1;
	while (!daemon_child_reap(&child))
		g_usleep(1000);
	daemon_child_clear(&child);
}
END_TEST

static int say_descriptors(int fd, void *data)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	int most = 0;

	(void)data;
	while ((entry = readdir(folder)))
		if (atoi(entry->d_name) != dirfd(folder))
			most = MAX(most, atoi(entry->d_name));
	closedir(folder);
	daemon_child_say(fd, json_pack("{s:i}", "n", most));
	return 0;
}

START_TEST(a_child_has_its_socket_and_nothing_else)
{
	struct daemon_child first, child;
	json_int_t n = 0;

	daemon_child_init(&first);
	daemon_child_init(&child);
	daemon_child_start(&first, "test", wait_for_end, NULL);
	daemon_child_start(&child, "test", say_descriptors, NULL);
	read_to_end(&child, sum, &n);
	ck_assert_int_eq(n, 3);
	daemon_child_stop(&first);
	read_to_end(&first, sum, &n);
	daemon_child_clear(&first);
	daemon_child_clear(&child);
}
END_TEST

START_TEST(pauses_grow_and_begin_anew)
{
	struct daemon_child child;
	int64_t now_us = 1000 * SECOND;

	daemon_child_init(&child);
	for (int64_t pause_s = 1; pause_s < 600; pause_s *= 2) {
		child.started_us = now_us;
		daemon_child_ended(&child, now_us + SECOND);
		ck_assert_int_eq(child.due_us - (now_us + SECOND), MIN(pause_s, 300) * SECOND);
		now_us = child.due_us;
	}
	child.started_us = now_us;
	daemon_child_ended(&child, now_us + 61 * SECOND);
	ck_assert_int_eq(child.pause_us, SECOND);
	daemon_child_clear(&child);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("daemon_child");
	TCase *cases = tcase_create("processes");

	tcase_set_timeout(cases, 60);
	tcase_add_test(cases, lines_arrive_and_the_end_is_seen);
	tcase_add_test(cases, a_child_that_is_told_to_end_ends);
	tcase_add_test(cases, a_child_that_hangs_is_killed);
	tcase_add_test(cases, a_child_has_its_socket_and_nothing_else);
	tcase_add_test(cases, pauses_grow_and_begin_anew);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
