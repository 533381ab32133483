// SPDX-License-Identifier: BSD-2-Clause
/*
 * The arguments of every method, made from the method table: an input is a series of calls, the first byte of each of
 * which is the method, and the next ones say of each argument whether it is there and what it is: a value that its
 * limits allow, or one that they do not. Who gives one of those is refused.
 */
#include <string.h>
#include <vprof/control.h>

#include "control/method_priv.h"
#include "fuzz_server.h"
#include "fuzz_target.h"

#define CALLS_MAX 24u
#define STRINGS_MAX 20

struct fuzz_bytes {
	const uint8_t *bytes;
	size_t left;
};

/* 0 behind the end. */
static uint8_t take(struct fuzz_bytes *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->bytes++;
}

static uint64_t take_number(struct fuzz_bytes *input)
{
	uint64_t number = 0;

	for (unsigned n = take(input) % 9; n > 0; n--)
		number = number << 8 | take(input);
	return number;
}

/* What the methods take for more than text. */
static const char *const words[] = {"task-clock",
                                    "timer",
                                    "cycles:u",
                                    "instructions:k",
                                    "r1c2",
                                    "r1c2:kk",
                                    "page-faults",
                                    "steps",
                                    "cpu-clock:ku",
                                    "io:*",
                                    "io:0x3f8-0x3ff:in",
                                    "io:9-2",
                                    "mmio:0xd0000000",
                                    "msr:0x174:write",
                                    "msr:0-0xffffffff",
                                    "exit:hlt",
                                    "exit:*",
                                    "syscall:*",
                                    "syscall:read",
                                    "syscall:1-9",
                                    "function:0x1000",
                                    "function:f+0x10",
                                    "marker:1-2",
                                    "marker:p?*",
                                    "profile:hz:99",
                                    "profile:ms:0",
                                    "interval:us:1",
                                    "function:*",
                                    "*:*",
                                    "rax",
                                    "rip",
                                    "rflags",
                                    "r15",
                                    "eax",
                                    "init",
                                    "sh*",
                                    "[a-",
                                    "%s%n",
                                    "\n",
                                    "\x7f",
                                    "0x0",
                                    "0xffffffffffffffff",
                                    "0x",
                                    "0x1g",
                                    "-1",
                                    "\u00fc\u00df",
                                    "\U0001f600"};

/* JSON's text is UTF-8: a word, or printable bytes. */
static char *take_text(struct fuzz_bytes *input, size_t min, size_t max)
{
	GString *text = g_string_new(NULL);
	uint8_t how = take(input);
	size_t bytes = max <= 255 ? max : 255;

	if (how & 1) {
		g_string_append(text, words[(how >> 1) % G_N_ELEMENTS(words)]);
	} else {
		bytes = MIN(bytes, (size_t)(how >> 1));
		while (text->len < bytes)
			g_string_append_c(text, (char)(' ' + take(input) % 95));
	}
	while (text->len < min)
		g_string_append_c(text, 'x');
	/* Between two characters. */
	while (text->len > max)
		g_string_truncate(text, (gsize)(g_utf8_find_prev_char(text->str, text->str + text->len) - text->str));
	return g_string_free(text, FALSE);
}

static json_t *text_value(struct fuzz_bytes *input, const struct method_argument *argument)
{
	size_t n = 0;

	if (argument->choices) {
		while (argument->choices[n])
			n++;
		return json_string(argument->choices[take(input) % n]);
	}
	bool in_strings = argument->type == ARGUMENT_STRINGS;
	g_autofree char *text =
		take_text(input, in_strings ? 0 : (size_t)argument->min, in_strings ? 64 : (size_t)argument->max);
	return json_string(text);
}

static json_t *strings_value(struct fuzz_bytes *input, const struct method_argument *argument)
{
	json_t *list = json_array();
	int64_t most = MIN(argument->max, argument->min + STRINGS_MAX);

	for (int64_t n = argument->min + take(input) % (most - argument->min + 1); n > 0; n--)
		json_array_append_new(list, text_value(input, argument));
	return list;
}

static json_t *integer_value(struct fuzz_bytes *input, const struct method_argument *argument)
{
	uint64_t range = (uint64_t)argument->max - (uint64_t)argument->min, offset = take_number(input);

	if (range != UINT64_MAX)
		offset %= range + 1;
	return json_integer((json_int_t)((uint64_t)argument->min + offset));
}

static json_t *address_value(struct fuzz_bytes *input)
{
	uint64_t address = take_number(input);
	g_autofree char *text = g_strdup_printf("0x%" G_GINT64_MODIFIER "x", address);

	return take(input) & 1 ? json_string(text) : json_integer((json_int_t)(address & INT64_MAX));
}

static json_t *right_value(struct fuzz_bytes *input, const struct method_argument *argument)
{
	switch (argument->type) {
	case ARGUMENT_ADDRESS:
		return address_value(input);
	case ARGUMENT_BOOLEAN:
		return json_boolean(take(input) & 1);
	case ARGUMENT_INTEGER:
		return integer_value(input, argument);
	case ARGUMENT_STRING:
		return text_value(input, argument);
	case ARGUMENT_STRINGS:
		return strings_value(input, argument);
	}
	return NULL;
}

static json_t *too_long(size_t bytes)
{
	g_autofree char *text = g_strnfill(bytes, 'y');

	return json_string(text);
}

/* Of the right type, but outside of its limits; NULL where it has none. */
static json_t *outside(struct fuzz_bytes *input, const struct method_argument *argument)
{
	bool above = take(input) & 1;

	if (argument->type == ARGUMENT_ADDRESS)
		return above ? json_integer(-1) : json_string("0x10000000000000000");
	if (argument->type == ARGUMENT_INTEGER && (above ? argument->max < INT64_MAX : argument->min > INT64_MIN))
		return json_integer(above ? argument->max + 1 : argument->min - 1);
	if (argument->choices)
		return argument->type == ARGUMENT_STRING ? json_string("no choice") : json_pack("[s]", "no choice");
	if (argument->type == ARGUMENT_STRING && (above ? argument->max < 4096 : argument->min > 0))
		return too_long(above ? (size_t)argument->max + 1 : (size_t)argument->min - 1);
	return NULL;
}

static json_t *wrong_value(struct fuzz_bytes *input, const struct method_argument *argument)
{
	bool is_text = argument->type == ARGUMENT_STRING || argument->type == ARGUMENT_STRINGS;
	uint8_t how = take(input) % 6;
	json_t *value = how == 0 ? outside(input, argument) : NULL;

	if (value)
		return value;
	switch (how) {
	case 1:
		return json_null();
	case 2:
		return json_real(1.5);
	case 3:
		return json_object();
	case 4:
		return argument->type == ARGUMENT_STRINGS ? json_pack("[i]", 1) : json_array();
	default:
		return is_text ? json_integer(1) : json_string("text");
	}
}

/* Whether the method must refuse it. */
static bool take_arguments(struct fuzz_bytes *input, const struct control_method *method, json_t *arguments)
{
	bool wrong = false;

	for (const struct method_argument *argument = method->arguments; argument && argument->name; argument++) {
		uint8_t how = take(input) % 8;

		if (how == 0) {
			wrong |= !argument->optional;
		} else if (how == 1) {
			json_object_set_new(arguments, argument->name, wrong_value(input, argument));
			wrong = true;
		} else {
			json_object_set_new(arguments, argument->name, right_value(input, argument));
		}
	}
	return wrong;
}

/* What came back for the last request. */
struct answer {
	json_int_t id;
	unsigned answers;
	bool refused;
	bool schema_asked; /* its answer is always the same, and takes longer than all others together */
};

static void on_line(const json_t *object, void *data)
{
	struct answer *answer = data;

	if (!json_object_get(object, "id") || json_integer_value(json_object_get(object, "id")) != answer->id)
		return;
	answer->answers++;
	answer->refused = json_object_get(object, "error") != NULL;
}

/* False when the server has not answered, but waits: whatever comes next waits, too. */
static bool call(struct fuzz_server *server, struct answer *answer, struct fuzz_bytes *input)
{
	size_t n = 0;

	while (control_method_at(n))
		n++;
	const struct control_method *method = control_method_at(take(input) % n);
	bool is_schema = strcmp(method->name, "query-schema") == 0;

	if (is_schema && answer->schema_asked)
		return true;
	answer->schema_asked |= is_schema;
	json_t *arguments = json_object();
	bool wrong = take_arguments(input, method, arguments);
	json_auto_t *request =
		json_pack("{s:s, s:o, s:I}", "execute", method->name, "arguments", arguments, "id", ++answer->id);
	g_autofree char *line = json_dumps(request, JSON_COMPACT);

	answer->answers = 0;
	fuzz_server_send(server, line, strlen(line));
	fuzz_server_send(server, "\n", 1);
	if (answer->answers > 1 || (wrong && server->open && (answer->answers == 0 || !answer->refused)))
		g_error("%u answers, %s, to %s", answer->answers, answer->refused ? "refused" : "done", line);
	return answer->answers > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char hello[] = "{\"execute\":\"negotiate\",\"arguments\":{\"protocol\":1}}\n";
	struct fuzz_bytes input = {data, size};
	struct answer answer = {0};
	struct fuzz_server *server = fuzz_server_open(on_line, &answer);

	fuzz_server_send(server, hello, sizeof(hello) - 1);
	for (unsigned calls = 0; server->open && input.left > 0 && calls < CALLS_MAX; calls++)
		if (!call(server, &answer, &input))
			break;
	fuzz_server_close(server);
	return 0;
}
