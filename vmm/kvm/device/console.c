// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/console.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kvm/host/thread.h"

#define LINE_BYTES 256u
#define WRITER_STACK_BYTES (64u << 10)
#define GATHER_MS 10u     /* a prompt without a newline waits this long for more */
#define GATHER_DATA_MS 1u /* and so do the bytes of a stream with flow control */
#define CLOSE_TIMEOUT_MS 2000u

/* [I] immutable after console_new, [C] under the lock, [p] putting threads (their caller serialises them). */
struct console {
	int fd;                                        /* [I] */
	pthread_t writer;                              /* [I] */
	void (*on_line)(const char *text, void *data); /* [I] */
	void *on_line_data;                            /* [I] */
	void (*on_room)(void *data);                   /* [C] NULL: no flow control */
	void *on_room_data;                            /* [I] */
	pthread_mutex_t lock;
	pthread_cond_t to_writer;
	pthread_cond_t written;
	GByteArray *backlog; /* [C] waiting to be written */
	bool writing;        /* [C] the writer has bytes of its own */
	bool line_end;       /* [C] the backlog holds a whole line */
	bool paused;         /* [C] the putting side waits for on_room */
	bool closing;        /* [C] */
	bool broken;         /* [C] the descriptor refused; nothing is written any more */
	uint64_t dropped;    /* [C] */
	char tail[CONSOLE_TAIL_BYTES];
	size_t tail_at, tail_n; /* [C], with tail */
	char line[LINE_BYTES];  /* [p] */
	size_t line_n;          /* [p] */
};

/* False when the descriptor is of no use any more. */
static bool write_all(int fd, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		bytes += written;
		n -= (size_t)written;
	}
	return true;
}

/* A time of CLOCK_MONOTONIC, which both conditions go by. */
static struct timespec after_ms(unsigned ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* Waits for something worth a write: a line, or what has been there for a while. Lock held. */
static bool wait_for_output(struct console *console)
{
	while (console->backlog->len == 0 && !console->closing)
		pthread_cond_wait(&console->to_writer, &console->lock);
	struct timespec deadline = after_ms(console->on_room ? GATHER_DATA_MS : GATHER_MS);
	while (!console->line_end && !console->closing) {
		if (pthread_cond_timedwait(&console->to_writer, &console->lock, &deadline) == ETIMEDOUT)
			break;
	}
	return console->backlog->len > 0;
}

static void *write_loop(void *data)
{
	struct console *console = data;
	GByteArray *batch = g_byte_array_new();

	pthread_mutex_lock(&console->lock);
	while (wait_for_output(console)) {
		GByteArray *empty = batch;

		batch = console->backlog;
		console->backlog = empty;
		console->line_end = false;
		console->writing = true;
		bool broken = console->broken;
		void (*room)(void *data) = console->paused ? console->on_room : NULL;
		console->paused = false;
		pthread_mutex_unlock(&console->lock);
		thread_works(THREAD_DEVICE);
		if (room)
			room(console->on_room_data);
		if (!broken)
			broken = !write_all(console->fd, batch->data, batch->len);
		g_byte_array_set_size(batch, 0);
		pthread_mutex_lock(&console->lock);
		console->broken = broken;
		console->writing = false;
		pthread_cond_broadcast(&console->written);
	}
	pthread_mutex_unlock(&console->lock);
	g_byte_array_unref(batch);
	return NULL;
}

struct console *console_new(int fd, GError **error)
{
	struct console *console = g_new0(struct console, 1);

	console->fd = fd;
	console->backlog = g_byte_array_new();
	pthread_mutex_init(&console->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&console->to_writer, &monotonic);
	pthread_cond_init(&console->written, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int failed = fd < 0 ? 0 : thread_start(&console->writer, WRITER_STACK_BYTES, write_loop, console);
	if (failed) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(failed),
		            "cannot start the console's thread: %s", g_strerror(failed));
		console->fd = -1;
		console_free(console);
		return NULL;
	}
	return console;
}

static bool drained(const struct console *console)
{
	return console->fd < 0 || (console->backlog->len == 0 && !console->writing);
}

void console_flush(struct console *console, unsigned timeout_ms)
{
	struct timespec deadline = after_ms(timeout_ms);

	pthread_mutex_lock(&console->lock);
	while (!drained(console)) {
		if (pthread_cond_timedwait(&console->written, &console->lock, &deadline) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&console->lock);
}

void console_free(struct console *console)
{
	if (!console)
		return;
	if (console->fd >= 0) {
		console_flush(console, CLOSE_TIMEOUT_MS);
		pthread_mutex_lock(&console->lock);
		bool stuck = !drained(console);
		console->closing = true;
		pthread_cond_signal(&console->to_writer);
		pthread_mutex_unlock(&console->lock);
		if (stuck) {
			/* The thread sits in write(2) until its reader or the process is gone; its memory stays. */
			console_on_room(console, NULL, NULL);
			pthread_detach(console->writer);
			return;
		}
		pthread_join(console->writer, NULL);
	}
	g_byte_array_unref(console->backlog);
	pthread_cond_destroy(&console->written);
	pthread_cond_destroy(&console->to_writer);
	pthread_mutex_destroy(&console->lock);
	g_free(console);
}

void console_on_line(struct console *console, void (*line)(const char *text, void *data), void *data)
{
	console->on_line = line;
	console->on_line_data = data;
}

static void remember(struct console *console, uint8_t byte)
{
	console->tail[(console->tail_at + console->tail_n) % CONSOLE_TAIL_BYTES] = (char)byte;
	if (console->tail_n < CONSOLE_TAIL_BYTES)
		console->tail_n++;
	else
		console->tail_at = (console->tail_at + 1) % CONSOLE_TAIL_BYTES;
}

static void enqueue(struct console *console, uint8_t byte)
{
	if (console->backlog->len >= CONSOLE_BACKLOG_BYTES) {
		console->dropped++;
		return;
	}
	g_byte_array_append(console->backlog, &byte, 1);
	console->line_end |= byte == '\n';
	if (byte == '\n' || console->backlog->len == 1)
		pthread_cond_signal(&console->to_writer);
}

static void assemble_line(struct console *console, uint8_t byte)
{
	if (byte == '\n') {
		console->line[console->line_n] = '\0';
		console->line_n = 0;
		if (console->on_line)
			console->on_line(console->line, console->on_line_data);
	} else if (byte != '\r' && console->line_n < LINE_BYTES - 1) {
		console->line[console->line_n++] = (char)byte;
	}
}

void console_on_room(struct console *console, void (*room)(void *data), void *data)
{
	pthread_mutex_lock(&console->lock);
	console->on_room = room;
	console->on_room_data = data;
	pthread_mutex_unlock(&console->lock);
}

bool console_put(struct console *console, uint8_t byte)
{
	pthread_mutex_lock(&console->lock);
	remember(console, byte);
	if (console->fd >= 0)
		enqueue(console, byte);
	bool pause = console->on_room && console->backlog->len >= CONSOLE_WATER_BYTES;
	console->paused |= pause;
	pthread_mutex_unlock(&console->lock);
	assemble_line(console, byte);
	return !pause;
}

char *console_tail(struct console *console, unsigned lines)
{
	GString *text = g_string_sized_new(CONSOLE_TAIL_BYTES);

	pthread_mutex_lock(&console->lock);
	for (size_t i = 0; i < console->tail_n; i++) {
		char c = console->tail[(console->tail_at + i) % CONSOLE_TAIL_BYTES];

		if (c != '\r' && c != '\0')
			g_string_append_c(text, c);
	}
	pthread_mutex_unlock(&console->lock);
	size_t start = text->len;
	for (unsigned ends = 0; start > 0; start--) {
		if (text->str[start - 1] == '\n' && start != text->len && ++ends == lines)
			break;
	}
	g_string_erase(text, 0, (gssize)start);
	return g_string_free(text, FALSE);
}

uint64_t console_dropped(struct console *console)
{
	pthread_mutex_lock(&console->lock);
	uint64_t dropped = console->dropped;
	pthread_mutex_unlock(&console->lock);
	return dropped;
}
