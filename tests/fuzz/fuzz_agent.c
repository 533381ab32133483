// SPDX-License-Identifier: BSD-2-Clause
/* What a guest sends instead of its agent's frames. The first byte says into which pieces the rest is cut. */
#include <glib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/agent/agent_stream.h"

#define REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())

static void message_check(const struct agent_message *message)
{
	REQUIRE(message->type >= VPROF_AGENT_HELLO && message->type <= VPROF_AGENT_READ_DONE);
	REQUIRE(message->n_bytes <= VPROF_AGENT_PAYLOAD_BYTES_MAX);
	if (!message->text)
		return;
	REQUIRE(g_utf8_validate(message->text, -1, NULL));
	for (const char *at = message->text; *at != '\0'; at++)
		REQUIRE(!g_ascii_iscntrl(*at));
}

/* False once the stream is broken, and then for good. */
static bool take_all(struct agent_stream *stream)
{
	g_autoptr(GError) error = NULL;
	struct agent_message message;

	while (agent_stream_next(stream, &message, &error))
		message_check(&message);
	return !error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_stream *stream = agent_stream_new();
	size_t piece = size != 0 ? data[0] + (size_t)1 : 1;
	bool whole = true;

	for (size_t at = 1; at < size; at += piece) {
		agent_stream_put(stream, data + at, MIN(piece, size - at));
		bool now = take_all(stream);

		REQUIRE(whole || !now);
		whole = now;
	}
	agent_stream_free(stream);
	return 0;
}
