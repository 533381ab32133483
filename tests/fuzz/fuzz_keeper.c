// SPDX-License-Identifier: BSD-2-Clause
/* What an engine that was taken over asks of its keeper. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <vprof/recording.h>

#include "control/keeper.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct keeper_request request = {0};
	struct perf_event_attr attr = {0};

	if (size == 0)
		return 0;
	memcpy(&request, data + 1, size - 1 < sizeof(request) ? size - 1 : sizeof(request));
	const enum keeper_of of = (enum keeper_of)((data[0] >> 1) % 3);
	const bool has_target = data[0] & 8;

	if (keeper_check(&request, of, data[0] & 1, has_target) != 0)
		return 0;
	memcpy(&attr, request.attr, sizeof(attr) < sizeof(request.attr) ? sizeof(attr) : sizeof(request.attr));
	const bool harmless = request.kind == KEEPER_IDENTIFY || request.kind == KEEPER_SETTLE;

	/* What is let through: no trace point, no other thread's, no more of a sample than ours have. */
	if (request.kind < KEEPER_SOCKET || request.kind > KEEPER_SETTLE)
		abort();
	if (of == KEEPER_OF_USER && request.kind != KEEPER_SOCKET && request.kind != KEEPER_OWNER && !harmless)
		abort();
	if (of == KEEPER_OF_ATTACH && (request.kind == KEEPER_OWNER || (request.kind == KEEPER_EVENT) != has_target) &&
	    request.kind != KEEPER_SOCKET && !harmless)
		abort();
	if (request.kind == KEEPER_SOCKET &&
	    ((data[0] & 1) || strnlen(request.path, sizeof(request.path)) == sizeof(request.path)))
		abort();
	if (request.kind != KEEPER_SOCKET && !harmless && request.thread <= 0)
		abort();
	if (request.kind == KEEPER_EVENT &&
	    (attr.type > PERF_TYPE_RAW || attr.type == PERF_TYPE_TRACEPOINT || attr.inherit ||
	     (of == KEEPER_OF_ATTACH && attr.sigtrap) || (attr.sample_type & PERF_SAMPLE_REGS_INTR)))
		abort();
	return 0;
}
