// SPDX-License-Identifier: BSD-2-Clause
#include "stream/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/record/text.h"

#define HEAD_BYTES_MAX 48u /* "[seconds.nanoseconds]:vcpu64: " */

/* [a] atomic, [L] under lock, which is held for a copy of a line or an answer. */
struct trace {
	pthread_mutex_t lock;
	uint64_t head, cleared;   /* [L] bytes before `cleared` are forgotten */
	char *bytes;              /* [L] TRACE_BYTES; NULL before the first line */
	_Atomic unsigned wanted;  /* [a] a bit for each kind */
	_Atomic uint64_t dropped; /* [a] */
};

struct trace *trace_new(void)
{
	struct trace *trace = g_new0(struct trace, 1);

	pthread_mutex_init(&trace->lock, NULL);
	return trace;
}

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	pthread_mutex_destroy(&trace->lock);
	g_free(trace->bytes);
	g_free(trace);
}

bool trace_wants(const struct trace *trace, enum trace_kind kind)
{
	return atomic_load_explicit(&trace->wanted, memory_order_relaxed) & 1u << kind;
}

/* Allocates the memory here, because vCPU threads must not allocate. */
static void prepare(struct trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	if (!trace->bytes)
		trace->bytes = g_malloc0(TRACE_BYTES);
	pthread_mutex_unlock(&trace->lock);
}

void trace_set(struct trace *trace, enum trace_kind kind, bool on)
{
	prepare(trace);
	if (on)
		atomic_fetch_or_explicit(&trace->wanted, 1u << kind, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&trace->wanted, ~(1u << kind), memory_order_relaxed);
}

static void put(struct trace *trace, const char *bytes, size_t n)
{
	size_t at = trace->head % TRACE_BYTES, first = MIN(n, TRACE_BYTES - at);

	memcpy(trace->bytes + at, bytes, first);
	memcpy(trace->bytes, bytes + first, n - first);
	trace->head += n;
}

/* "[12.000345678]:vcpu1: "; returns its bytes. */
static size_t head_format(char head[HEAD_BYTES_MAX], uint32_t vcpu)
{
	struct timespec now;
	char who[16] = "vmm";

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (vcpu != TRACE_NO_VCPU)
		snprintf(who, sizeof(who), "vcpu%u", vcpu);
	return (size_t)snprintf(head, HEAD_BYTES_MAX, "[%lld.%09ld]:%s: ", (long long)now.tv_sec, now.tv_nsec, who);
}

/* What cannot be printed becomes "?", piece by piece: a vCPU's thread has little stack to give. */
static void put_clean(struct trace *trace, const char *text, size_t n)
{
	char piece[256];

	while (n > 0) {
		size_t bytes = MIN(n, sizeof(piece));

		for (size_t i = 0; i < bytes; i++)
			piece[i] = (unsigned char)text[i] < 0x20 && text[i] != '\t' ? '?'
			           : text[i] == 0x7f                                ? '?'
			                                                            : text[i];
		put(trace, piece, bytes);
		text += bytes;
		n -= bytes;
	}
}

static void put_lines(struct trace *trace, const char *head, size_t head_bytes, const char *text, size_t n)
{
	const char *end = text + n;

	do {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		put(trace, head, head_bytes);
		put_clean(trace, text, (size_t)(stop - text));
		put(trace, "\n", 1);
		text = newline ? newline + 1 : end;
	} while (text < end);
}

void trace_add(struct trace *trace, uint32_t vcpu, const char *text)
{
	char head[HEAD_BYTES_MAX];
	size_t head_bytes = head_format(head, vcpu);

	if (pthread_mutex_trylock(&trace->lock) != 0) {
		atomic_fetch_add_explicit(&trace->dropped, 1, memory_order_relaxed);
		return;
	}
	if (trace->bytes)
		put_lines(trace, head, head_bytes, text,
		          text_whole_characters(text, strnlen(text, TRACE_TEXT_BYTES_MAX)));
	pthread_mutex_unlock(&trace->lock);
}

void trace_clear(struct trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	trace->cleared = trace->head;
	pthread_mutex_unlock(&trace->lock);
}

uint64_t trace_head(struct trace *trace)
{
	pthread_mutex_lock(&trace->lock);
	uint64_t head = trace->head;
	pthread_mutex_unlock(&trace->lock);
	return head;
}

uint64_t trace_dropped(const struct trace *trace)
{
	return atomic_load_explicit(&trace->dropped, memory_order_relaxed);
}

static char byte_at(const struct trace *trace, uint64_t offset)
{
	return trace->bytes[offset % TRACE_BYTES];
}

/* Where the oldest complete line begins. */
static uint64_t oldest(const struct trace *trace)
{
	uint64_t offset = trace->head - TRACE_BYTES;

	while (offset < trace->head && byte_at(trace, offset) != '\n')
		offset++;
	return offset + 1;
}

static size_t copy(const struct trace *trace, uint64_t offset, char *to, size_t room)
{
	size_t n = (size_t)MIN(trace->head - offset, room), whole = 0;

	for (size_t i = 0; i < n; i++) {
		to[i] = byte_at(trace, offset + i);
		if (to[i] == '\n')
			whole = i + 1;
	}
	return whole != 0 ? whole : text_whole_characters(to, n);
}

size_t trace_read(struct trace *trace, uint64_t *offset, char *to, size_t room)
{
	pthread_mutex_lock(&trace->lock);
	*offset = MAX(*offset, trace->cleared);
	if (trace->head > TRACE_BYTES && *offset < trace->head - TRACE_BYTES)
		*offset = oldest(trace);
	size_t n = *offset < trace->head ? copy(trace, *offset, to, room) : 0;
	pthread_mutex_unlock(&trace->lock);
	return n;
}
