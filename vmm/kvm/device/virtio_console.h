// SPDX-License-Identifier: BSD-2-Clause
/*
 * A named port of a virtio console (virtio 1.2, 5.3, with VIRTIO_CONSOLE_F_MULTIPORT), which carries bytes both ways:
 * Linux makes it /dev/vport*, and udev /dev/virtio-ports/NAME. It is not a console.
 */
#ifndef VPROF_KVM_DEVICE_VIRTIO_CONSOLE_H
#define VPROF_KVM_DEVICE_VIRTIO_CONSOLE_H

#include "kvm/device/virtio_device.h"

/* Where the guest's bytes go. */
struct virtio_console_host {
	/* On the worker. False: no more for now; the rest stays in the guest until virtio_console_room. */
	bool (*output)(void *data, const uint8_t *bytes, size_t n);
	void *data;
};

/* name: the port's, static text. */
struct virtio_device *virtio_console_new(const char *name, const struct virtio_console_host *host,
                                         const struct memory *memory, const struct virtio_line *line, GError **error);

/* Whether a program of the guest has the port open. Any thread. */
bool virtio_console_is_open(struct virtio_device *device);
/* Bytes for the guest; returns how many found room. Any thread. */
size_t virtio_console_input(struct virtio_device *device, const uint8_t *bytes, size_t n);
/* `output` takes more again. Any thread. */
void virtio_console_room(struct virtio_device *device);
/*
 * Waits until the worker has taken what the guest had sent; false: it has not by that time (g_get_monotonic_time), or
 * `output` takes no more until virtio_console_room.
 */
bool virtio_console_settle(struct virtio_device *device, gint64 until_us);

#endif
