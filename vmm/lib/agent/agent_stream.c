// SPDX-License-Identifier: BSD-2-Clause
#include "lib/agent/agent_stream.h"

#include <string.h>

G_DEFINE_QUARK(vprof_agent_error, agent_error)

struct agent_stream {
	GByteArray *input;
	size_t at; /* of the frame that comes next */
	char *text;
	bool greeted;
	uint64_t skipped;
	GError *broken;
};

/* The payload of a type: a structure, followed by nothing, text or bytes. */
enum payload_rest { REST_NONE, REST_TEXT, REST_BYTES };

static const struct payload_shape {
	uint16_t type;
	uint16_t bytes;
	enum payload_rest rest;
	uint16_t text_bytes_max;
	const char *name;
} shapes[] = {
	{VPROF_AGENT_HELLO, sizeof(struct vprof_agent_hello), REST_TEXT, 128, "HELLO"},
	{VPROF_AGENT_PONG, sizeof(struct vprof_agent_pong), REST_NONE, 0, "PONG"},
	{VPROF_AGENT_STARTED, sizeof(struct vprof_agent_started), REST_NONE, 0, "STARTED"},
	{VPROF_AGENT_REFUSED, sizeof(struct vprof_agent_refused), REST_TEXT, 256, "REFUSED"},
	{VPROF_AGENT_STDOUT, 0, REST_BYTES, 0, "STDOUT"},
	{VPROF_AGENT_STDERR, 0, REST_BYTES, 0, "STDERR"},
	{VPROF_AGENT_STDIN_ROOM, sizeof(struct vprof_agent_stdin_room), REST_NONE, 0, "STDIN_ROOM"},
	{VPROF_AGENT_EXITED, sizeof(struct vprof_agent_exited), REST_NONE, 0, "EXITED"},
	{VPROF_AGENT_MARK, sizeof(struct vprof_agent_mark), REST_TEXT, VPROF_AGENT_NAME_BYTES_MAX, "MARK"},
	{VPROF_AGENT_TASK, sizeof(struct vprof_agent_task), REST_TEXT, 64, "TASK"},
	{VPROF_AGENT_MAPPING, sizeof(struct vprof_agent_mapping), REST_TEXT, 4096, "MAPPING"},
	{VPROF_AGENT_MAPPINGS_END, 0, REST_NONE, 0, "MAPPINGS_END"},
	{VPROF_AGENT_STATISTICS, sizeof(struct vprof_agent_statistics), REST_NONE, 0, "STATISTICS"},
	{VPROF_AGENT_COMPLAINT, 0, REST_TEXT, 512, "COMPLAINT"},
	{VPROF_AGENT_BYE, 0, REST_NONE, 0, "BYE"},
	{VPROF_AGENT_READ_DONE, sizeof(struct vprof_agent_read_done), REST_NONE, 0, "READ_DONE"},
};

struct agent_stream *agent_stream_new(void)
{
	struct agent_stream *stream = g_new0(struct agent_stream, 1);

	stream->input = g_byte_array_new();
	return stream;
}

void agent_stream_free(struct agent_stream *stream)
{
	if (!stream)
		return;
	g_byte_array_unref(stream->input);
	g_free(stream->text);
	g_clear_error(&stream->broken);
	g_free(stream);
}

void agent_stream_put(struct agent_stream *stream, const uint8_t *bytes, size_t n)
{
	g_byte_array_remove_range(stream->input, 0, (guint)stream->at);
	stream->at = 0;
	if (!stream->broken)
		g_byte_array_append(stream->input, bytes, (guint)n);
}

uint64_t agent_stream_skipped(const struct agent_stream *stream)
{
	return stream->skipped;
}

static const struct payload_shape *shape_find(uint16_t type)
{
	for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return NULL;
}

/* Ends at the first NUL, if any; bytes that could control a terminal become "?". */
static char *text_clean(const uint8_t *bytes, size_t n)
{
	char *text = g_utf8_make_valid((const char *)bytes, (gssize)strnlen((const char *)bytes, n));

	for (char *at = text; *at != '\0'; at++)
		if (g_ascii_iscntrl(*at))
			*at = '?';
	return text;
}

G_GNUC_PRINTF(4, 5)
static bool stream_break(struct agent_stream *stream, GError **error, enum agent_error code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	stream->broken = g_error_new_valist(AGENT_ERROR, (gint)code, format, arguments);
	va_end(arguments);
	g_propagate_error(error, g_error_copy(stream->broken));
	return false;
}

static bool message_fill(struct agent_stream *stream, const struct payload_shape *shape, const uint8_t *payload,
                         size_t n, struct agent_message *message, GError **error)
{
	size_t rest = n - shape->bytes;

	*message = (struct agent_message){.type = (enum vprof_agent_says)shape->type};
	memcpy(message->head, payload, shape->bytes);
	if (shape->rest == REST_BYTES) {
		message->bytes = payload;
		message->n_bytes = n;
	} else if (shape->rest == REST_TEXT) {
		if (rest > shape->text_bytes_max)
			return stream_break(stream, error, AGENT_ERROR_FRAME,
			                    "an agent's %s frame has %zu bytes of text; the limit is %u", shape->name,
			                    rest, shape->text_bytes_max);
		g_free(stream->text);
		stream->text = text_clean(payload + shape->bytes, rest);
		message->text = stream->text;
	}
	return true;
}

static bool greeting_check(struct agent_stream *stream, const struct agent_message *message, GError **error)
{
	if (message->hello.magic != VPROF_AGENT_MAGIC)
		return stream_break(stream, error, AGENT_ERROR_PROTOCOL,
		                    "the guest's first frame is not vprof-agent's greeting");
	if (message->hello.protocol != VPROF_AGENT_PROTOCOL)
		return stream_break(
			stream, error, AGENT_ERROR_PROTOCOL,
			"the agent in the guest speaks protocol %u, this program %u; install the same version of both",
			message->hello.protocol, VPROF_AGENT_PROTOCOL);
	stream->greeted = true;
	return true;
}

/* Parses the complete frame at `at`. *message has type 0 if the frame's type is unknown. */
static bool frame_read(struct agent_stream *stream, const struct vprof_agent_frame *frame,
                       struct agent_message *message, GError **error)
{
	const uint8_t *payload = stream->input->data + stream->at + sizeof(*frame);
	const struct payload_shape *shape = shape_find(frame->type);

	if (!stream->greeted && frame->type != VPROF_AGENT_HELLO)
		return stream_break(stream, error, AGENT_ERROR_PROTOCOL,
		                    "the guest's data does not begin with vprof-agent's greeting");
	stream->at += sizeof(*frame) + frame->bytes;
	if (!shape) {
		*message = (struct agent_message){0};
		stream->skipped++;
		return true;
	}
	if (frame->bytes < shape->bytes)
		return stream_break(stream, error, AGENT_ERROR_FRAME,
		                    "an agent's %s frame has %u bytes; the minimum is %u", shape->name, frame->bytes,
		                    shape->bytes);
	return message_fill(stream, shape, payload, frame->bytes, message, error) &&
	       (shape->type != VPROF_AGENT_HELLO || greeting_check(stream, message, error));
}

bool agent_stream_next(struct agent_stream *stream, struct agent_message *message, GError **error)
{
	if (stream->broken) {
		g_propagate_error(error, g_error_copy(stream->broken));
		return false;
	}
	for (;;) {
		struct vprof_agent_frame frame;
		size_t n = stream->input->len - stream->at;

		if (n < sizeof(frame))
			return false;
		memcpy(&frame, stream->input->data + stream->at, sizeof(frame));
		if (frame.bytes > VPROF_AGENT_PAYLOAD_BYTES_MAX)
			return stream_break(stream, error, AGENT_ERROR_FRAME,
			                    "an agent's frame claims %u bytes; the limit is %u", frame.bytes,
			                    VPROF_AGENT_PAYLOAD_BYTES_MAX);
		if (n - sizeof(frame) < frame.bytes)
			return false;
		if (!frame_read(stream, &frame, message, error))
			return false;
		if (message->type != 0)
			return true;
	}
}

static void frame_append(GByteArray *to, uint16_t type, const void *fixed, size_t fixed_bytes, const void *tail,
                         size_t tail_bytes)
{
	const struct vprof_agent_frame frame = {.bytes = (uint32_t)(fixed_bytes + tail_bytes), .type = type};

	g_byte_array_append(to, (const uint8_t *)&frame, sizeof(frame));
	g_byte_array_append(to, fixed, (guint)fixed_bytes);
	g_byte_array_append(to, tail, (guint)tail_bytes);
}

void agent_say_ping(GByteArray *to, uint64_t cookie)
{
	const struct vprof_agent_ping ping = {.cookie = cookie};

	frame_append(to, VPROF_AGENT_PING, &ping, sizeof(ping), NULL, 0);
}

void agent_say_stdin(GByteArray *to, const uint8_t *bytes, size_t n)
{
	frame_append(to, VPROF_AGENT_STDIN, NULL, 0, bytes, n);
}

void agent_say_stdin_end(GByteArray *to)
{
	frame_append(to, VPROF_AGENT_STDIN_END, NULL, 0, NULL, 0);
}

void agent_say_signal(GByteArray *to, int number)
{
	const struct vprof_agent_signal signal = {.number = (uint32_t)number};

	frame_append(to, VPROF_AGENT_SIGNAL, &signal, sizeof(signal), NULL, 0);
}

void agent_say_power_off(GByteArray *to)
{
	frame_append(to, VPROF_AGENT_POWER_OFF, NULL, 0, NULL, 0);
}

void agent_say_mappings(GByteArray *to, uint32_t pid)
{
	const struct vprof_agent_mappings order = {.pid = pid};

	frame_append(to, VPROF_AGENT_MAPPINGS, &order, sizeof(order), NULL, 0);
}

void agent_say_read(GByteArray *to, const struct vprof_agent_read *read)
{
	frame_append(to, VPROF_AGENT_READ, read, sizeof(*read), NULL, 0);
}

static void string_append(GByteArray *to, const char *string)
{
	g_byte_array_append(to, (const uint8_t *)string, (guint)strlen(string) + 1);
}

bool agent_say_run(GByteArray *to, const struct agent_order *order, GError **error)
{
	const struct vprof_agent_run run = {
		.run = order->run,
		.time_limit_ms = order->time_limit_ms,
		.arguments = g_strv_length((char **)order->arguments),
		.variables = g_strv_length((char **)order->variables),
	};
	g_autoptr(GByteArray) strings = g_byte_array_new();

	string_append(strings, order->path);
	string_append(strings, order->folder);
	for (uint32_t i = 0; i < run.arguments; i++)
		string_append(strings, order->arguments[i]);
	for (uint32_t i = 0; i < run.variables; i++)
		string_append(strings, order->variables[i]);
	if (strings->len > VPROF_AGENT_PAYLOAD_BYTES_MAX - sizeof(run)) {
		g_set_error(error, AGENT_ERROR, AGENT_ERROR_LIMIT,
		            "the command and its environment take %u bytes; the limit is %zu", strings->len,
		            VPROF_AGENT_PAYLOAD_BYTES_MAX - sizeof(run));
		return false;
	}
	frame_append(to, VPROF_AGENT_RUN, &run, sizeof(run), strings->data, strings->len);
	return true;
}
