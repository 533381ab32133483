// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's command line: our defaults and the host quirks' options, each of which the user's text overrides. */
#ifndef VPROF_KVM_BOOT_COMMAND_LINE_H
#define VPROF_KVM_BOOT_COMMAND_LINE_H

#include <stdbool.h>

/*
 * For Linux: "console=ttyS0" (output on the first UART), "panic=-1" (a panicking kernel asks for a reboot at once,
 * which ends the guest) and "reboot=k" (by the keyboard controller, the only way there is), then `options` (NAME=VALUE
 * or NAME, NULL-terminated, may be NULL), then `user` (may be NULL). An option with a NAME that the user gives is left
 * to the user. In between it is told of the virtio devices, 0..BOOT_VIRTIO_MAX, which a kernel without ACPI finds in no
 * other way. Other kernels get `user` alone. New string.
 */
char *command_line_build(bool is_linux, const char *const *options, unsigned n_virtio, const char *user);

#endif
