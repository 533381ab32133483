// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <glib.h>
#include <string.h>

#include "daemon/daemon_config.h"
#include "run_suite.h"

static struct daemon_config *parsed(const char *text)
{
	g_autoptr(GError) error = NULL;
	struct daemon_config *config = daemon_config_parse("test.conf", text, &error);

	ck_assert_msg(config != NULL, "%s", error ? error->message : "no error");
	return config;
}

START_TEST(an_empty_file_has_the_defaults)
{
	struct daemon_config *config = parsed("");

	ck_assert_uint_eq(config->frequency_hz, 19);
	ck_assert_uint_eq(config->interval_s, 15);
	ck_assert_uint_eq(config->spool_bytes, UINT64_C(256) << 20);
	ck_assert_str_eq(config->call_graph, "auto");
	ck_assert_str_eq(config->address, "127.0.0.1");
	ck_assert_uint_eq(config->port, 10119);
	ck_assert_ptr_null(config->url);
	ck_assert_ptr_null(config->connect);
	ck_assert(!config->monitor);
	ck_assert(daemon_config_wants(config, "any guest"));
	daemon_config_free(config);
}
END_TEST

START_TEST(every_key_is_taken)
{
	struct daemon_config *config = parsed("# comment\n"
	                                      "[daemon]\nsocket=/run/x/s\nspool = /srv/spool\nspool-mib=8\n"
	                                      "[guests]\nconnect=qemu:///session\ninclude=web*;db\nexclude=web9\n"
	                                      "monitor=yes\n"
	                                      "[sampling]\nfrequency=99\ncall-graph=none\ninterval=1m\n"
	                                      "[push]\nurl=https://user:word@host/x\napi=otlp\nname=fleet\n"
	                                      "labels=rack=b7;row=3\nheaders=X-Scope-OrgID: kernel\n"
	                                      "[metrics]\naddress=[::1]:9\n");

	ck_assert_str_eq(config->socket, "/run/x/s");
	ck_assert_str_eq(config->spool, "/srv/spool");
	ck_assert_uint_eq(config->spool_bytes, 8 << 20);
	ck_assert_str_eq(config->connect, "qemu:///session");
	ck_assert(config->monitor);
	ck_assert_uint_eq(config->frequency_hz, 99);
	ck_assert_str_eq(config->call_graph, "none");
	ck_assert_uint_eq(config->interval_s, 60);
	ck_assert_str_eq(config->url, "https://user:word@host/x");
	ck_assert_int_eq(config->api, PUSH_API_OTLP);
	ck_assert_str_eq(config->name, "fleet");
	ck_assert_str_eq(config->labels[0], "rack=b7");
	ck_assert_str_eq(config->labels[1], "row=3");
	ck_assert_ptr_null(config->labels[2]);
	ck_assert_str_eq(config->headers[0], "X-Scope-OrgID: kernel");
	ck_assert_str_eq(config->address, "::1");
	ck_assert_uint_eq(config->port, 9);
	ck_assert(daemon_config_wants(config, "web1"));
	ck_assert(daemon_config_wants(config, "db"));
	ck_assert(!daemon_config_wants(config, "db1"));
	ck_assert(!daemon_config_wants(config, "web9"));
	daemon_config_free(config);
}
END_TEST

/* Nobody is told that a guest is refused. */
START_TEST(orc_is_not_required_of_guests)
{
	struct daemon_config *config = parsed("[sampling]\ncall-graph=orc\n");

	ck_assert_str_eq(config->call_graph, "auto");
	daemon_config_free(config);
}
END_TEST

START_TEST(what_is_empty_or_off_is_left_out)
{
	struct daemon_config *config = parsed("[metrics]\naddress=off\n[push]\nurl=\n[guests]\ninclude=\n");

	ck_assert_ptr_null(config->address);
	ck_assert_ptr_null(config->url);
	ck_assert(!daemon_config_wants(config, "any guest"));
	daemon_config_free(config);
}
END_TEST

/* Each with a part of its message. */
static const char *const wrong[][2] = {
	{"frequency=19\n", "test.conf: "},
	{"[sampling]\nfrequency=18\n", "test.conf: [sampling] frequency: the key takes 19 to 99, not 18"},
	{"[sampling]\nfrequency=100\n", "19 to 99"},
	{"[sampling]\nfrequency=-1\n", "takes 19 to 99, not -1"},
	{"[sampling]\ninterval=4s\n", "[sampling] interval: expected 5s to 10m, not \"4s\""},
	{"[sampling]\ninterval=11m\n", "5s to 10m"},
	{"[sampling]\ncall-graph=dwarf\n", "expected auto, orc, fp or none"},
	{"[sampling]\nrate=19\n", "[sampling] rate: there is no such key: there are frequency, call-graph, interval"},
	{"[profile]\nfrequency=19\n",
         "[profile] frequency: there is no such group: there are [daemon], [guests], [sampling], [push], [metrics]"},
	{"[daemon]\nspool=spool\n", "expected an absolute path"},
	{"[daemon]\nspool-mib=0\n", "1 to 65536"},
	{"[guests]\nmonitor=maybe\n", "expected yes or no"},
	{"[push]\nurl=host:4040\n", "expected http:// or https://"},
	{"[push]\napi=loki\n", "expected pyroscope, parca or otlp"},
	{"[push]\nname=\n", "expected a text"},
	{"[push]\nlabels=rack\n", "takes NAME=VALUE"},
	{"[push]\nlabels=a=b;1=2\n", "takes NAME=VALUE"},
	{"[push]\nheaders=X-Scope-OrgID\n", "[push] headers: the key takes NAME: VALUE"},
	{"[push]\nheaders=A: b;C: d\\nE: f\n",
         "the key takes NAME: VALUE, without control characters; number 2 differs"},
	{"[push]\nheader-file=headers\n", "expected an absolute path"},
	{"[push]\nurl=ftp://me:word@host/x?y\n", "not \"ftp://host/x\""},
	{"[metrics]\naddress=10119\n", "expected an IP address and a port"},
	{"[metrics]\naddress=localhost:10119\n", "expected an IP address"},
	{"[metrics]\naddress=127.0.0.1:0\n", "expected an IP address"},
	{"[metrics]\naddress=127.0.0.1:65536\n", "expected an IP address"},
	{"[metrics]\naddress=[127.0.0.1]:9\n", "expected an IP address"},
	{"[metrics]\naddress=::1\n", "expected an IP address"},
	{"[metrics]\naddress=[::1]\n", "expected an IP address"},
	{"[metrics]\naddress=:9\n", "expected an IP address"},
};

START_TEST(wrong_values_are_refused_by_name)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(daemon_config_parse("test.conf", wrong[_i][0], &error));
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(g_str_has_prefix(error->message, "test.conf: "), "%s", error->message);
	ck_assert_msg(strstr(error->message, wrong[_i][1]) != NULL, "%s", error->message);
}
END_TEST

START_TEST(a_file_that_is_named_must_exist)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(daemon_config_read("/nonexistent/daemon.conf", &error));
	ck_assert(g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("daemon_config");
	TCase *cases = tcase_create("configuration");

	tcase_add_test(cases, an_empty_file_has_the_defaults);
	tcase_add_test(cases, every_key_is_taken);
	tcase_add_test(cases, orc_is_not_required_of_guests);
	tcase_add_test(cases, what_is_empty_or_off_is_left_out);
	tcase_add_loop_test(cases, wrong_values_are_refused_by_name, 0, G_N_ELEMENTS(wrong));
	tcase_add_test(cases, a_file_that_is_named_must_exist);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
