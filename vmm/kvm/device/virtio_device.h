// SPDX-License-Identifier: BSD-2-Clause
/*
 * What virtio devices have in common (virtio 1.2): status, features, queues, interrupts, and a worker thread that
 * serves the queues, so that no vCPU waits for a disk or a reader. When the driver notifies a queue, the vCPU
 * only tells the worker.
 */
#ifndef VPROF_KVM_DEVICE_VIRTIO_DEVICE_H
#define VPROF_KVM_DEVICE_VIRTIO_DEVICE_H

#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>

#include "kvm/device/virtio_queue.h"

#define VIRTIO_QUEUES_MAX 4u

struct virtio_device;

struct virtio_device_ops {
	const char *name;  /* "virtio-blk", for messages */
	uint32_t id;       /* VIRTIO_ID_BLOCK, ... */
	unsigned n_queues; /* 1..VIRTIO_QUEUES_MAX */
	/*
	 * Worker: deals with what waits in a queue. Returns soon once virtio_device_cancelled. Also called for queue 0
	 * after virtio_device_wake.
	 */
	void (*serve)(struct virtio_device *device, unsigned queue);
	/* The driver has reset the device; the worker is idle, and the lock held. NULL: nothing to forget. */
	void (*reset)(struct virtio_device *device);
	/* Frees the device; the worker is gone. */
	void (*free)(struct virtio_device *device);
};

/* How a device reaches its interrupt line. */
struct virtio_line {
	void (*set)(void *data, unsigned irq, bool level);
	void *data;
	unsigned irq;
};

/*
 * [I] immutable once started, [D] under lock, [a] atomic. A queue that is ready is the worker's while it is busy:
 * no other thread touches it before the worker is idle (device_quiesce).
 */
struct virtio_device {
	const struct virtio_device_ops *ops; /* [I] */
	uint64_t features;                   /* [I] offered, VIRTIO_F_VERSION_1 among them */
	const void *config;                  /* [I] the device's own configuration space; it does not change */
	size_t config_bytes;                 /* [I] */
	struct virtio_line line;             /* [I] */
	pthread_t worker;                    /* [I] */
	bool started;                        /* [I] there is a worker */
	pthread_mutex_t lock;
	pthread_cond_t work;                           /* for the worker */
	pthread_cond_t idle;                           /* the worker has become idle */
	uint32_t status;                               /* [D] VIRTIO_CONFIG_S_* */
	uint32_t features_select, driver_select;       /* [D] */
	uint64_t driver_features;                      /* [D] */
	uint32_t queue_select;                         /* [D] */
	uint32_t interrupt_status;                     /* [D] VIRTIO_MMIO_INT_*; the line is up while it is not 0 */
	unsigned notified;                             /* [D] a bit for each queue */
	bool busy, quit;                               /* [D] */
	bool complained;                               /* [D] a broken rule is reported once */
	atomic_bool cancel;                            /* [a] the worker is waited for */
	struct virtio_queue queues[VIRTIO_QUEUES_MAX]; /* [D] */
};

/* For a device's own constructor, after it has filled ops, features and config. Then virtio_device_free frees it. */
bool virtio_device_start(struct virtio_device *device, const struct memory *memory, const struct virtio_line *line,
                         GError **error);
/* Stops the worker; from now on nothing is served. */
void virtio_device_stop(struct virtio_device *device);
/* Stops it if need be. NULL is fine. */
void virtio_device_free(struct virtio_device *device);

/* Has the worker look at queue 0. Any thread. */
void virtio_device_wake(struct virtio_device *device);
/*
 * The same, and waits until it has done all there is to do, or for a time of g_get_monotonic_time: false. Not the
 * worker.
 */
bool virtio_device_settle(struct virtio_device *device, gint64 until_us);

/* For `serve`, on the worker. */

/* The next request; false when there is none, the worker is waited for, or the driver broke a rule. */
bool virtio_device_pop(struct virtio_device *device, unsigned queue, struct virtio_chain *chain);
void virtio_device_push(struct virtio_device *device, unsigned queue, const struct virtio_chain *chain,
                        uint32_t written);
/* Whether the driver accepted feature bit `feature`. */
bool virtio_device_negotiated(struct virtio_device *device, unsigned feature);
/* Whether a thread waits for the worker to become idle. */
bool virtio_device_cancelled(const struct virtio_device *device);
/* The driver broke a rule: the device does nothing until it is reset (virtio 1.2, 2.1.2). */
void virtio_device_broken(struct virtio_device *device, const char *why);

/* virtio_mmio.c: the registers (virtio 1.2, 4.2.2). Accesses of 1, 2, 4 or 8 bytes; any thread. */
#define VIRTIO_MMIO_BYTES 0x1000u
void virtio_mmio_read(struct virtio_device *device, uint32_t offset, uint8_t *data, size_t bytes);
void virtio_mmio_write(struct virtio_device *device, uint32_t offset, const uint8_t *data, size_t bytes);

/* virtio_device.c, for virtio_mmio.c; with the lock held. */
void virtio_device_set_status(struct virtio_device *device, uint32_t status);
void virtio_device_set_ready(struct virtio_device *device, struct virtio_queue *queue, bool ready);
void virtio_device_notified(struct virtio_device *device, uint32_t queue);
void virtio_device_set_interrupt(struct virtio_device *device, uint32_t status);

#endif
