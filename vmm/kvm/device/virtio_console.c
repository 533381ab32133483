// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/virtio_console.h"

#include <linux/virtio_config.h>
#include <linux/virtio_console.h>
#include <linux/virtio_ids.h>
#include <string.h>

#define FEATURE(bit) (UINT64_C(1) << (bit))
#define PORT 0u
#define INPUT_BYTES 16384u
#define NAME_BYTES_MAX 64u
#define OUTPUT_BYTES 65536u /* of the guest at once */

/* Virtio 1.2, 5.3.2. */
enum { QUEUE_INPUT, QUEUE_OUTPUT, QUEUE_CONTROL_TO_GUEST, QUEUE_CONTROL, QUEUES };

/* What the guest is still to be told, in this order. */
enum { TELL_ADD = 1 << 0, TELL_NAME = 1 << 1, TELL_OPEN = 1 << 2 };

/* [I] immutable once started, [w] worker, or the worker is idle; [a] atomic; [B] under input_lock. */
struct virtio_console {
	struct virtio_device device;         /* first: what the ops are called with */
	const char *name;                    /* [I] */
	struct virtio_console_host host;     /* [I] */
	struct virtio_console_config config; /* [I] */
	unsigned to_tell;                    /* [w] */
	atomic_bool open;                    /* [a] */
	atomic_bool full;                    /* [a] `output` wants no more before virtio_console_room */
	pthread_mutex_t input_lock;
	uint8_t input[INPUT_BYTES]; /* [B] */
	size_t input_n;             /* [B] */
};

static struct virtio_console *console_of(struct virtio_device *device)
{
	return (struct virtio_console *)device;
}

static void take_message(struct virtio_console *console, const struct virtio_console_control *message)
{
	switch (message->event) {
	case VIRTIO_CONSOLE_DEVICE_READY:
		console->to_tell |= message->value == 1 ? TELL_ADD : 0;
		break;
	case VIRTIO_CONSOLE_PORT_READY:
		if (message->id == PORT && message->value == 1)
			console->to_tell |= TELL_NAME | TELL_OPEN;
		break;
	case VIRTIO_CONSOLE_PORT_OPEN:
		if (message->id == PORT)
			atomic_store_explicit(&console->open, message->value == 1, memory_order_release);
		break;
	default:
		break;
	}
}

static void take_control(struct virtio_console *console)
{
	struct virtio_chain chain;

	while (virtio_device_pop(&console->device, QUEUE_CONTROL, &chain)) {
		struct virtio_console_control message;

		if (virtio_buffers_read(chain.buffers, chain.n_readable, 0, &message, sizeof(message)) ==
		    sizeof(message))
			take_message(console, &message);
		virtio_device_push(&console->device, QUEUE_CONTROL, &chain, 0);
	}
}

/* The message for the lowest bit of to_tell; returns its size. A name is not terminated. */
static size_t next_message(const struct virtio_console *console, uint8_t bytes[NAME_BYTES_MAX])
{
	struct virtio_console_control message = {.id = PORT, .value = 1};
	size_t name_bytes = 0;

	if (console->to_tell & TELL_ADD) {
		message.event = VIRTIO_CONSOLE_PORT_ADD;
	} else if (console->to_tell & TELL_NAME) {
		message.event = VIRTIO_CONSOLE_PORT_NAME;
		name_bytes = strnlen(console->name, NAME_BYTES_MAX - sizeof(message));
	} else {
		message.event = VIRTIO_CONSOLE_PORT_OPEN;
	}
	memcpy(bytes, &message, sizeof(message));
	memcpy(bytes + sizeof(message), console->name, name_bytes);
	return sizeof(message) + name_bytes;
}

static void give_control(struct virtio_console *console)
{
	struct virtio_chain chain;

	while (console->to_tell && virtio_device_pop(&console->device, QUEUE_CONTROL_TO_GUEST, &chain)) {
		uint8_t bytes[NAME_BYTES_MAX];
		size_t n = next_message(console, bytes);
		size_t written = virtio_buffers_write(virtio_chain_writable(&chain), chain.n_writable, 0, bytes, n);

		console->to_tell &= console->to_tell - 1;
		virtio_device_push(&console->device, QUEUE_CONTROL_TO_GUEST, &chain, (uint32_t)written);
	}
}

static bool is_full(const struct virtio_console *console)
{
	return atomic_load_explicit(&console->full, memory_order_acquire);
}

static void set_full(struct virtio_console *console, bool full)
{
	atomic_store_explicit(&console->full, full, memory_order_release);
}

/* In pieces, between which the worker may be waited for: then the driver loses the rest, with the queue. */
static bool buffer_output(const struct virtio_console *console, const struct iovec *buffer)
{
	bool more = true;

	for (size_t at = 0; at < buffer->iov_len && !virtio_device_cancelled(&console->device); at += OUTPUT_BYTES)
		more = console->host.output(console->host.data, (const uint8_t *)buffer->iov_base + at,
		                            MIN(OUTPUT_BYTES, buffer->iov_len - at));
	return more;
}

/* Full beforehand, so that virtio_console_room is not lost when it comes before `output` has returned. */
static void take_output(struct virtio_console *console)
{
	struct virtio_chain chain;

	while (!is_full(console) && virtio_device_pop(&console->device, QUEUE_OUTPUT, &chain)) {
		bool more = true;

		set_full(console, true);
		for (unsigned i = 0; i < chain.n_readable; i++)
			more &= buffer_output(console, &chain.buffers[i]);
		if (more)
			set_full(console, false);
		virtio_device_push(&console->device, QUEUE_OUTPUT, &chain, 0);
	}
}

/* Moves input to the guest's buffers; only the worker takes from it. */
static size_t input_take(struct virtio_console *console, const struct virtio_chain *chain)
{
	pthread_mutex_lock(&console->input_lock);
	size_t n = virtio_buffers_write(virtio_chain_writable(chain), chain->n_writable, 0, console->input,
	                                console->input_n);
	console->input_n -= n;
	memmove(console->input, console->input + n, console->input_n);
	pthread_mutex_unlock(&console->input_lock);
	return n;
}

static bool has_input(struct virtio_console *console)
{
	pthread_mutex_lock(&console->input_lock);
	bool has = console->input_n > 0;
	pthread_mutex_unlock(&console->input_lock);
	return has;
}

static void give_input(struct virtio_console *console)
{
	struct virtio_chain chain;

	while (has_input(console) && virtio_device_pop(&console->device, QUEUE_INPUT, &chain)) {
		size_t written = input_take(console, &chain);

		virtio_device_push(&console->device, QUEUE_INPUT, &chain, (uint32_t)written);
	}
}

static void console_serve(struct virtio_device *device, unsigned queue)
{
	struct virtio_console *console = console_of(device);

	(void)queue; /* what one brings may be for another */
	take_control(console);
	give_control(console);
	take_output(console);
	give_input(console);
}

static void console_reset(struct virtio_device *device)
{
	struct virtio_console *console = console_of(device);

	console->to_tell = 0;
	atomic_store_explicit(&console->open, false, memory_order_release);
	pthread_mutex_lock(&console->input_lock);
	console->input_n = 0;
	pthread_mutex_unlock(&console->input_lock);
}

static void console_free(struct virtio_device *device)
{
	pthread_mutex_destroy(&console_of(device)->input_lock);
	g_free(device);
}

static const struct virtio_device_ops console_ops = {.name = "virtio-console",
                                                     .id = VIRTIO_ID_CONSOLE,
                                                     .n_queues = QUEUES,
                                                     .serve = console_serve,
                                                     .reset = console_reset,
                                                     .free = console_free};

struct virtio_device *virtio_console_new(const char *name, const struct virtio_console_host *host,
                                         const struct memory *memory, const struct virtio_line *line, GError **error)
{
	struct virtio_console *console = g_new0(struct virtio_console, 1);

	console->name = name;
	console->host = *host;
	console->config.max_nr_ports = 1;
	pthread_mutex_init(&console->input_lock, NULL);
	console->device.ops = &console_ops;
	console->device.features = FEATURE(VIRTIO_F_VERSION_1) | FEATURE(VIRTIO_CONSOLE_F_MULTIPORT);
	console->device.config = &console->config;
	console->device.config_bytes = sizeof(console->config);
	if (!virtio_device_start(&console->device, memory, line, error)) {
		virtio_device_free(&console->device);
		return NULL;
	}
	return &console->device;
}

bool virtio_console_is_open(struct virtio_device *device)
{
	return atomic_load_explicit(&console_of(device)->open, memory_order_acquire);
}

size_t virtio_console_input(struct virtio_device *device, const uint8_t *bytes, size_t n)
{
	struct virtio_console *console = console_of(device);

	pthread_mutex_lock(&console->input_lock);
	size_t taken = MIN(n, INPUT_BYTES - console->input_n);
	memcpy(console->input + console->input_n, bytes, taken);
	console->input_n += taken;
	pthread_mutex_unlock(&console->input_lock);
	virtio_device_wake(device);
	return taken;
}

void virtio_console_room(struct virtio_device *device)
{
	set_full(console_of(device), false);
	virtio_device_wake(device);
}

bool virtio_console_settle(struct virtio_device *device, gint64 until_us)
{
	return virtio_device_settle(device, until_us) && !is_full(console_of(device));
}
