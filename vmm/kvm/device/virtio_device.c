// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/virtio_device.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_mmio.h>
#include <stdio.h>

#include "kvm/host/thread.h"

#define STACK_BYTES (128u << 10)
#define FEATURE(bit) (UINT64_C(1) << (bit))

void virtio_device_set_interrupt(struct virtio_device *device, uint32_t status)
{
	bool was = device->interrupt_status != 0, is = status != 0;

	device->interrupt_status = status;
	if (is != was)
		device->line.set(device->line.data, device->line.irq, is);
}

/* Waits until the worker has nothing in hand. Lock held, but not while waiting. */
static void quiesce(struct virtio_device *device)
{
	while (device->busy) {
		atomic_store_explicit(&device->cancel, true, memory_order_relaxed);
		pthread_cond_wait(&device->idle, &device->lock);
	}
	atomic_store_explicit(&device->cancel, false, memory_order_relaxed);
	pthread_cond_signal(&device->work);
}

static void reset(struct virtio_device *device)
{
	quiesce(device);
	for (unsigned i = 0; i < device->ops->n_queues; i++)
		virtio_queue_reset(&device->queues[i]);
	device->status = device->notified = 0;
	device->driver_features = 0;
	device->features_select = device->driver_select = device->queue_select = 0;
	virtio_device_set_interrupt(device, 0);
	if (device->ops->reset)
		device->ops->reset(device);
}

static void mark_broken(struct virtio_device *device, const char *why)
{
	device->status |= VIRTIO_CONFIG_S_NEEDS_RESET;
	virtio_device_set_interrupt(device, device->interrupt_status | VIRTIO_MMIO_INT_CONFIG);
	if (!device->complained)
		fprintf(stderr,
		        "vprof-vmm: %s: the guest's driver broke a rule: %s; the device stops until it is reset\n",
		        device->ops->name, why);
	device->complained = true;
}

void virtio_device_broken(struct virtio_device *device, const char *why)
{
	pthread_mutex_lock(&device->lock);
	mark_broken(device, why);
	pthread_mutex_unlock(&device->lock);
}

/* Features are settled only if they are a set that we offered (virtio 1.2, 3.1.1). */
void virtio_device_set_status(struct virtio_device *device, uint32_t status)
{
	if (status == 0) {
		reset(device);
		return;
	}
	uint64_t accepted = device->driver_features;
	if ((accepted & ~device->features) != 0 || !(accepted & FEATURE(VIRTIO_F_VERSION_1)))
		status &= ~(uint32_t)VIRTIO_CONFIG_S_FEATURES_OK;
	device->status = status | (device->status & VIRTIO_CONFIG_S_NEEDS_RESET);
	pthread_cond_signal(&device->work);
}

void virtio_device_set_ready(struct virtio_device *device, struct virtio_queue *queue, bool ready)
{
	quiesce(device);
	if (!ready)
		queue->ready = false;
	else if (!queue->ready && !virtio_queue_start(queue))
		mark_broken(device, "a queue with an invalid size or place");
}

void virtio_device_notified(struct virtio_device *device, uint32_t queue)
{
	if (queue >= device->ops->n_queues)
		return;
	device->notified |= 1u << queue;
	pthread_cond_signal(&device->work);
}

void virtio_device_wake(struct virtio_device *device)
{
	pthread_mutex_lock(&device->lock);
	virtio_device_notified(device, 0);
	pthread_mutex_unlock(&device->lock);
}

static bool has_work(const struct virtio_device *device)
{
	return device->notified != 0 && !virtio_device_cancelled(device) &&
	       (device->status & VIRTIO_CONFIG_S_DRIVER_OK) && !(device->status & VIRTIO_CONFIG_S_NEEDS_RESET);
}

bool virtio_device_settle(struct virtio_device *device, gint64 until_us)
{
	const struct timespec until = {.tv_sec = until_us / G_USEC_PER_SEC,
	                               .tv_nsec = until_us % G_USEC_PER_SEC * 1000};
	bool late = false;

	pthread_mutex_lock(&device->lock);
	virtio_device_notified(device, 0);
	while (!late && (device->busy || has_work(device)))
		late = pthread_cond_timedwait(&device->idle, &device->lock, &until) == ETIMEDOUT;
	pthread_mutex_unlock(&device->lock);
	return !late;
}

bool virtio_device_negotiated(struct virtio_device *device, unsigned feature)
{
	pthread_mutex_lock(&device->lock);
	bool negotiated = (device->driver_features & FEATURE(feature)) != 0;
	pthread_mutex_unlock(&device->lock);
	return negotiated;
}

bool virtio_device_cancelled(const struct virtio_device *device)
{
	return atomic_load_explicit(&device->cancel, memory_order_relaxed);
}

bool virtio_device_pop(struct virtio_device *device, unsigned queue, struct virtio_chain *chain)
{
	const char *why;

	if (virtio_device_cancelled(device) || !device->queues[queue].ready)
		return false;
	enum virtio_pop pop = virtio_queue_pop(&device->queues[queue], chain, &why);
	if (pop == VIRTIO_POP_BROKEN)
		virtio_device_broken(device, why);
	return pop == VIRTIO_POP_CHAIN;
}

void virtio_device_push(struct virtio_device *device, unsigned queue, const struct virtio_chain *chain,
                        uint32_t written)
{
	if (!virtio_queue_push(&device->queues[queue], chain->head, written))
		return;
	pthread_mutex_lock(&device->lock);
	virtio_device_set_interrupt(device, device->interrupt_status | VIRTIO_MMIO_INT_VRING);
	pthread_mutex_unlock(&device->lock);
}

static void *work_loop(void *data)
{
	struct virtio_device *device = data;

	pthread_mutex_lock(&device->lock);
	while (!device->quit) {
		if (!has_work(device)) {
			pthread_cond_wait(&device->work, &device->lock);
			continue;
		}
		unsigned queue = (unsigned)__builtin_ctz(device->notified);
		device->notified &= ~(1u << queue);
		device->busy = true;
		pthread_mutex_unlock(&device->lock);
		thread_works(THREAD_DEVICE);
		device->ops->serve(device, queue);
		pthread_mutex_lock(&device->lock);
		device->busy = false;
		if (virtio_device_cancelled(device)) /* it may have left something */
			device->notified |= 1u << queue;
		pthread_cond_broadcast(&device->idle);
	}
	pthread_mutex_unlock(&device->lock);
	return NULL;
}

bool virtio_device_start(struct virtio_device *device, const struct memory *memory, const struct virtio_line *line,
                         GError **error)
{
	pthread_condattr_t monotonic;

	device->line = *line;
	for (unsigned i = 0; i < device->ops->n_queues; i++)
		device->queues[i].memory = memory;
	pthread_mutex_init(&device->lock, NULL);
	pthread_cond_init(&device->work, NULL);
	/* By the clock of g_get_monotonic_time. */
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&device->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int failed = thread_start(&device->worker, STACK_BYTES, work_loop, device);
	if (failed) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(failed),
		            "cannot start the thread of %s: %s", device->ops->name, g_strerror(failed));
		return false;
	}
	device->started = true;
	pthread_setname_np(device->worker, device->ops->name);
	return true;
}

void virtio_device_stop(struct virtio_device *device)
{
	if (!device->started)
		return;
	pthread_mutex_lock(&device->lock);
	device->quit = true;
	quiesce(device);
	pthread_mutex_unlock(&device->lock);
	pthread_join(device->worker, NULL);
	device->started = false;
}

void virtio_device_free(struct virtio_device *device)
{
	if (!device)
		return;
	virtio_device_stop(device);
	pthread_cond_destroy(&device->idle);
	pthread_cond_destroy(&device->work);
	pthread_mutex_destroy(&device->lock);
	device->ops->free(device);
}
