// SPDX-License-Identifier: BSD-2-Clause
/* What the devices ask of the VM: interrupts, the end, phase marks, and where characters go. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/device/virtio_console.h"
#include "kvm/vm_arch.h"
#include "kvm/vm_parts.h"
#include "lib/record/clock.h"

static void set_irq(void *data, unsigned irq, bool level)
{
	const struct vm *vm = data;
	struct kvm_irq_level line = {.irq = vm_arch_irq(irq), .level = level};

	if (ioctl(vm->machine.fd, KVM_IRQ_LINE, &line) < 0)
		g_critical("cannot set interrupt line %u: %s", irq, g_strerror(errno));
}

static void device_ended(void *data, enum guest_end_reason reason, uint32_t code)
{
	vm_end(data, reason, code, NULL);
}

static gboolean report_phases(void *data)
{
	struct vm *vm = *(struct vm **)data;
	struct vm_phase phases[VM_PHASES_MAX];

	pthread_mutex_lock(&vm->phase_lock);
	size_t n = vm->n_phases;
	memcpy(phases, vm->phases, n * sizeof(*phases));
	vm->n_phases = 0;
	vm->phases_scheduled = false;
	pthread_mutex_unlock(&vm->phase_lock);
	struct guest *guest = &vm->guest;
	for (size_t i = 0; i < n && guest->on_phase; i++)
		guest->on_phase(guest, phases[i].vcpu, phases[i].value, phases[i].time_ns, guest->listener_data);
	return G_SOURCE_REMOVE;
}

/* A guest that uses port 0x80 for delays can outrun the main thread: what finds no room is counted. */
static void device_phase(void *data, unsigned vcpu, uint8_t value)
{
	struct vm *vm = data;

	pthread_mutex_lock(&vm->phase_lock);
	if (vm->n_phases < VM_PHASES_MAX)
		vm->phases[vm->n_phases++] = (struct vm_phase){vcpu, value, clock_ns(CLOCK_MONOTONIC)};
	else
		vm->phases_lost++;
	bool schedule = !vm->phases_scheduled;
	vm->phases_scheduled = true;
	pthread_mutex_unlock(&vm->phase_lock);
	if (schedule)
		vm_on_main_thread(report_phases, vm);
}

static bool device_transmit(void *data, unsigned serial, uint8_t byte)
{
	struct vm *vm = data;

	return console_put(vm->consoles[serial], byte);
}

static void second_serial_ready(void *data)
{
	struct vm *vm = data;

	devices_line_ready(&vm->devices, 1);
	if (vm->port)
		virtio_console_room(vm->port);
}

static void device_line(const char *line, void *data)
{
	struct vm *vm = data;
	struct guest *guest = &vm->guest;

	if (vm->on_panic != VM_PANIC_IGNORED)
		vm_watch_for_panic(line, vm);
	if (guest->on_console_line)
		guest->on_console_line(guest, line, guest->listener_data);
}

bool vm_devices_init(struct vm *vm, const struct vm_config *config, GError **error)
{
	bool connected[DEVICES_SERIALS];

	for (unsigned i = 0; i < DEVICES_SERIALS; i++) {
		/* The first UART has a reader even without a descriptor: the reports of failures. */
		connected[i] = i == 0 || config->serial_fds[i] >= 0;
		if (!connected[i])
			continue;
		vm->consoles[i] = console_new(config->serial_fds[i], error);
		if (!vm->consoles[i])
			return false;
	}
	vm->console_unseen = config->serial_fds[0] < 0;
	/* A slow reader of the console must not hold up the kernel's messages; the second port carries data. */
	if (vm->consoles[1])
		console_on_room(vm->consoles[1], second_serial_ready, vm);
	vm->on_panic = config->on_panic;
	vm->panicked = config->panicked;
	console_on_line(vm->consoles[0], device_line, vm);
	const struct devices_host host = {
		.irq = set_irq, .ended = device_ended, .phase = device_phase, .transmit = device_transmit, .data = vm};
	devices_init(&vm->devices, &host, vm->uart == BOOT_UART_PL011 ? &serial_pl011 : &serial_16550, connected);
	return true;
}

void vm_devices_deinit(struct vm *vm)
{
	for (unsigned i = 0; i < DEVICES_SERIALS; i++)
		console_free(vm->consoles[i]);
	if (vm->consoles[0])
		devices_deinit(&vm->devices);
	memset(vm->consoles, 0, sizeof(vm->consoles));
}
