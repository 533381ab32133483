// SPDX-License-Identifier: BSD-2-Clause
/* The frames of the agent, as they may come: in pieces, too long, too short, from something else. */
#include <check.h>
#include <string.h>

#include "lib/agent/agent_stream.h"
#include "run_suite.h"

static struct agent_stream *stream;
static struct agent_message message;
static GError *error;

static void setup(void)
{
	stream = agent_stream_new();
}

static void teardown(void)
{
	agent_stream_free(stream);
	g_clear_error(&error);
}

static void put_frame(uint16_t type, uint32_t bytes, const void *fixed, size_t fixed_bytes, const char *tail)
{
	const struct vprof_agent_frame frame = {.bytes = bytes, .type = type};

	agent_stream_put(stream, (const uint8_t *)&frame, sizeof(frame));
	agent_stream_put(stream, fixed, fixed_bytes);
	agent_stream_put(stream, (const uint8_t *)tail, strlen(tail));
}

static void put(uint16_t type, const void *fixed, size_t fixed_bytes, const char *tail)
{
	put_frame(type, (uint32_t)(fixed_bytes + strlen(tail)), fixed, fixed_bytes, tail);
}

static void put_hello(void)
{
	const struct vprof_agent_hello hello = {
		.magic = VPROF_AGENT_MAGIC, .protocol = VPROF_AGENT_PROTOCOL, .time_ns = 17, .is_init = 1};

	put(VPROF_AGENT_HELLO, &hello, sizeof(hello), "6.1.0");
}

static void greet(void)
{
	put_hello();
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_HELLO);
}

static void assert_nothing(void)
{
	ck_assert(!agent_stream_next(stream, &message, &error));
	ck_assert_ptr_null(error);
}

/* And it stays so, whatever comes. */
static void assert_broken(enum agent_error code, const char *words)
{
	for (int i = 0; i < 2; i++) {
		ck_assert(!agent_stream_next(stream, &message, &error));
		ck_assert_msg(g_error_matches(error, AGENT_ERROR, (gint)code), "%s", error ? error->message : "none");
		ck_assert_msg(strstr(error->message, words) != NULL, "%s", error->message);
		g_clear_error(&error);
		put_hello();
	}
}

START_TEST(greets_first)
{
	put_hello();
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_uint_eq(message.hello.time_ns, 17);
	ck_assert_uint_eq(message.hello.is_init, 1);
	ck_assert_str_eq(message.text, "6.1.0");
	assert_nothing();
}
END_TEST

START_TEST(other_first_frames_are_no_greeting)
{
	put(VPROF_AGENT_STDOUT, NULL, 0, "Linux version 6.1");
	assert_broken(AGENT_ERROR_PROTOCOL, "does not begin with vprof-agent's greeting");
}
END_TEST

START_TEST(other_magic_is_no_greeting)
{
	const struct vprof_agent_hello hello = {.magic = 1, .protocol = VPROF_AGENT_PROTOCOL};

	put(VPROF_AGENT_HELLO, &hello, sizeof(hello), "");
	assert_broken(AGENT_ERROR_PROTOCOL, "not vprof-agent's greeting");
}
END_TEST

START_TEST(other_protocol_is_refused)
{
	const struct vprof_agent_hello hello = {.magic = VPROF_AGENT_MAGIC, .protocol = VPROF_AGENT_PROTOCOL + 1};

	put(VPROF_AGENT_HELLO, &hello, sizeof(hello), "");
	assert_broken(AGENT_ERROR_PROTOCOL, "speaks protocol 2, this program 1");
}
END_TEST

START_TEST(frames_come_in_pieces)
{
	const struct vprof_agent_frame frame = {.bytes = 5, .type = VPROF_AGENT_STDERR};
	const char payload[] = "piece";

	greet();
	for (size_t i = 0; i < sizeof(frame); i++) {
		agent_stream_put(stream, (const uint8_t *)&frame + i, 1);
		assert_nothing();
	}
	for (size_t i = 0; i < 4; i++) {
		agent_stream_put(stream, (const uint8_t *)&payload[i], 1);
		assert_nothing();
	}
	agent_stream_put(stream, (const uint8_t *)&payload[4], 1);
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_STDERR);
	ck_assert_uint_eq(message.n_bytes, 5);
	ck_assert_mem_eq(message.bytes, "piece", 5);
}
END_TEST

START_TEST(several_frames_come_at_once)
{
	const struct vprof_agent_exited exited = {.run = 1, .status = 3, .user_ns = 5};

	greet();
	put(VPROF_AGENT_STDOUT, NULL, 0, "out");
	put(VPROF_AGENT_EXITED, &exited, sizeof(exited), "");
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_STDOUT);
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_EXITED);
	ck_assert_uint_eq(message.exited.status, 3);
	ck_assert_uint_eq(message.exited.user_ns, 5);
	assert_nothing();
}
END_TEST

START_TEST(unknown_types_and_members_are_skipped)
{
	const struct {
		struct vprof_agent_pong pong;
		uint64_t appended;
	} longer = {.pong = {.cookie = 7, .time_ns = 8}, .appended = 9};

	greet();
	put(999, NULL, 0, "from a later version");
	put(VPROF_AGENT_PONG, &longer, sizeof(longer), "");
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_PONG);
	ck_assert_uint_eq(message.pong.cookie, 7);
	ck_assert_uint_eq(message.pong.time_ns, 8);
	ck_assert_uint_eq(agent_stream_skipped(stream), 1);
}
END_TEST

START_TEST(what_was_read_is_told)
{
	const struct vprof_agent_read_done done = {.number = 3, .error = 2};

	greet();
	put(VPROF_AGENT_READ_DONE, &done, sizeof(done), "");
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_int_eq(message.type, VPROF_AGENT_READ_DONE);
	ck_assert_uint_eq(message.read_done.number, 3);
	ck_assert_uint_eq(message.read_done.error, 2);
	put(VPROF_AGENT_READ_DONE, &done, sizeof(done) - 1, "");
	assert_broken(AGENT_ERROR_FRAME, "READ_DONE frame has 7 bytes; the minimum is 8");
}
END_TEST

START_TEST(too_long_a_frame_breaks_the_stream)
{
	greet();
	put_frame(VPROF_AGENT_STDOUT, VPROF_AGENT_PAYLOAD_BYTES_MAX + 1, NULL, 0, "");
	assert_broken(AGENT_ERROR_FRAME, "65537 bytes; the limit is 65536");
}
END_TEST

START_TEST(too_short_a_frame_breaks_the_stream)
{
	const struct vprof_agent_exited exited = {.run = 1};

	greet();
	put(VPROF_AGENT_EXITED, &exited, sizeof(exited) - 1, "");
	assert_broken(AGENT_ERROR_FRAME, "EXITED frame has 47 bytes; the minimum is 48");
}
END_TEST

START_TEST(too_long_a_name_breaks_the_stream)
{
	const struct vprof_agent_mark mark = {.kind = VPROF_AGENT_MARK_BEGIN};
	g_autofree char *name = g_strnfill(VPROF_AGENT_NAME_BYTES_MAX + 1, 'n');

	greet();
	put(VPROF_AGENT_MARK, &mark, sizeof(mark), name + 1);
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_str_eq(message.text, name + 1);
	put(VPROF_AGENT_MARK, &mark, sizeof(mark), name);
	assert_broken(AGENT_ERROR_FRAME, "64 bytes of text; the limit is 63");
}
END_TEST

START_TEST(text_cannot_drive_a_terminal)
{
	greet();
	put(VPROF_AGENT_COMPLAINT, NULL, 0, "\033[2J\xff\n");
	ck_assert(agent_stream_next(stream, &message, &error));
	ck_assert_str_eq(message.text, "?[2J\xef\xbf\xbd?");
}
END_TEST

static void assert_run(const GByteArray *said, const char *strings, size_t n)
{
	struct vprof_agent_frame frame;
	struct vprof_agent_run run;

	memcpy(&frame, said->data, sizeof(frame));
	ck_assert_uint_eq(frame.type, VPROF_AGENT_RUN);
	ck_assert_uint_eq(frame.bytes, said->len - sizeof(frame));
	memcpy(&run, said->data + sizeof(frame), sizeof(run));
	ck_assert_uint_eq(run.run, 4);
	ck_assert_uint_eq(run.time_limit_ms, 5000);
	ck_assert_uint_eq(run.arguments, 2);
	ck_assert_uint_eq(run.variables, 1);
	ck_assert_uint_eq(said->len, sizeof(frame) + sizeof(run) + n);
	ck_assert_mem_eq(said->data + sizeof(frame) + sizeof(run), strings, n);
}

START_TEST(a_command_is_told)
{
	static const char strings[] = "/bin/echo\0/tmp\0echo\0hello world\0A=1";
	const struct agent_order order = {
		.run = 4,
		.time_limit_ms = 5000,
		.path = "/bin/echo",
		.folder = "/tmp",
		.arguments = (const char *const[]){"echo", "hello world", NULL},
		.variables = (const char *const[]){"A=1", NULL},
	};
	g_autoptr(GByteArray) said = g_byte_array_new();

	ck_assert(agent_say_run(said, &order, &error));
	assert_run(said, strings, sizeof(strings));
}
END_TEST

START_TEST(mappings_are_asked_of_a_process)
{
	static const uint8_t frame[] = {4, 0, 0, 0, VPROF_AGENT_MAPPINGS, 0, 0, 0, 7, 0, 0, 0};
	g_autoptr(GByteArray) said = g_byte_array_new();

	agent_say_mappings(said, 7);
	ck_assert_uint_eq(said->len, sizeof(frame));
	ck_assert_mem_eq(said->data, frame, sizeof(frame));
}
END_TEST

START_TEST(a_file_is_asked_to_be_read)
{
	static const uint8_t frame[] = {24, 0, 0, 0, VPROF_AGENT_READ,         0, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0,
	                                7,  0, 0, 0, VPROF_AGENT_READ_MAPPING, 0, 0, 0, 9, 0,  0, 0, 0, 0, 0, 0};
	const struct vprof_agent_read read = {
		.address = 0x100001000, .pid = 7, .what = VPROF_AGENT_READ_MAPPING, .number = 9};
	g_autoptr(GByteArray) said = g_byte_array_new();

	agent_say_read(said, &read);
	ck_assert_uint_eq(said->len, sizeof(frame));
	ck_assert_mem_eq(said->data, frame, sizeof(frame));
}
END_TEST

START_TEST(a_command_has_a_limit)
{
	g_autofree char *word = g_strnfill(VPROF_AGENT_PAYLOAD_BYTES_MAX, 'x');
	const struct agent_order order = {
		.path = "/bin/echo",
		.folder = "/",
		.arguments = (const char *const[]){word, NULL},
		.variables = (const char *const[]){NULL},
	};
	g_autoptr(GByteArray) said = g_byte_array_new();

	ck_assert(!agent_say_run(said, &order, &error));
	ck_assert(g_error_matches(error, AGENT_ERROR, AGENT_ERROR_LIMIT));
	ck_assert_uint_eq(said->len, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		greets_first,
		mappings_are_asked_of_a_process,
		a_file_is_asked_to_be_read,
		what_was_read_is_told,
		other_first_frames_are_no_greeting,
		other_magic_is_no_greeting,
		other_protocol_is_refused,
		frames_come_in_pieces,
		several_frames_come_at_once,
		unknown_types_and_members_are_skipped,
		too_long_a_frame_breaks_the_stream,
		too_short_a_frame_breaks_the_stream,
		too_long_a_name_breaks_the_stream,
		text_cannot_drive_a_terminal,
		a_command_is_told,
		a_command_has_a_limit,
	};
	Suite *suite = suite_create("agent_stream");
	TCase *test = tcase_create("stream");

	tcase_add_checked_fixture(test, setup, teardown);
	for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
		tcase_add_test(test, tests[i]);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
