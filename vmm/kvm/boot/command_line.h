// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's command line: our defaults and the host quirks' options, each of which the user's text overrides. */
#ifndef VPROF_KVM_BOOT_COMMAND_LINE_H
#define VPROF_KVM_BOOT_COMMAND_LINE_H

#include <glib.h>
#include <stdbool.h>

#include "kvm/boot/boot_devices.h"

/* Options for Linux, of this architecture, after the console; NULL-terminated. */
extern const char *const boot_linux_defaults[];
/* Tells Linux of its virtio devices, where no table does. */
void boot_append_devices(GString *text, unsigned n_virtio);

/*
 * For Linux: console=NAME for the first UART, boot_linux_defaults, then `options` (NAME=VALUE or NAME, NULL-terminated,
 * may be NULL), then `user` (may be NULL). An option with a NAME that the user gives is left to the user. In between it
 * is told of the virtio devices, 0..BOOT_VIRTIO_MAX. Other kernels get `user` alone. New string.
 */
char *command_line_build(bool is_linux, enum boot_uart uart, const char *const *options, unsigned n_virtio,
                         const char *user);

#endif
