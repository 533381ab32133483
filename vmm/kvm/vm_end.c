// SPDX-License-Identifier: BSD-2-Clause
/* The ways a VM ends, and how its end reaches the main thread. */
#include <stdlib.h>
#include <string.h>

#include "kvm/vcpu/vcpu_run.h"
#include "kvm/vm_parts.h"
#include "lib/process/watchdog.h"

#define PANIC_SILENCE_MS 2000
#define CONSOLE_FLUSH_MS 500u /* before the end is announced */

static char *default_message(enum guest_end_reason reason, uint32_t code)
{
	switch (reason) {
	case GUEST_END_POWER_OFF:
		return g_strdup("the guest powered off");
	case GUEST_END_REBOOT:
		return g_strdup("the guest asked for a reboot");
	case GUEST_END_EXIT_PORT:
		return g_strdup_printf("the guest wrote %u to the exit port", code);
	default:
		return g_strdup_printf("the guest ended: %s", guest_end_name(reason));
	}
}

/* Makes it the end if it is the first. Steals message, and what the crash has; crash: NULL, or for the vCPU's report.
 */
static void end(struct vm *vm, enum guest_end_reason reason, uint32_t code, char *message, const struct vm_crash *crash)
{
	pthread_mutex_lock(&vm->end_lock);
	bool first = vm->end_reason == GUEST_END_NONE;
	if (first && vm->panic && (reason == GUEST_END_REBOOT || vm->on_panic == VM_PANIC_KEEP)) {
		reason = GUEST_END_PANIC;
		g_free(message);
		message = g_strdup(vm->panic);
	}
	if (first) {
		vm->end_reason = reason;
		vm->end_code = code;
		vm->end_message = message ? message : default_message(reason, code);
		vm->crashed = crash != NULL;
		if (crash)
			vm->crash = *crash;
		atomic_store_explicit(&vm->machine.ending, true, memory_order_release);
	} else {
		g_free(message);
		if (crash)
			g_free(crash->state.text);
	}
	pthread_mutex_unlock(&vm->end_lock);
	for (unsigned i = 0; first && i < vm->machine.n_vcpus; i++)
		vcpu_kick(&vm->machine.vcpus[i]);
}

void vm_end(struct vm *vm, enum guest_end_reason reason, uint32_t code, char *message)
{
	end(vm, reason, code, message, NULL);
}

void vm_on_main_thread(GSourceFunc fn, struct vm *vm)
{
	GSource *source = g_idle_source_new();

	g_source_set_priority(source, G_PRIORITY_DEFAULT);
	g_source_set_callback(source, fn, &vm->self, NULL);
	g_source_attach(source, NULL);
	g_source_unref(source);
}

void vm_join(struct vm *vm)
{
	for (; vm->n_launched > 0; vm->n_launched--)
		vcpu_join(&vm->machine.vcpus[vm->n_launched - 1]);
	if (vm->duration_source)
		g_source_remove(vm->duration_source);
	vm->duration_source = 0;
}

/* Main thread: every vCPU's thread has left or is about to. */
static gboolean finish(void *data)
{
	struct vm *vm = *(struct vm **)data;

	vm_join(vm);
	struct guest *guest = &vm->guest;
	vm_virtio_flush(vm, CONSOLE_FLUSH_MS);
	vm_virtio_stop(vm);
	for (unsigned i = 0; i < DEVICES_SERIALS; i++)
		if (vm->consoles[i])
			console_flush(vm->consoles[i], CONSOLE_FLUSH_MS);
	guest->state = GUEST_ENDED;
	guest->end = (struct guest_end){.reason = vm->end_reason, .code = vm->end_code, .message = vm->end_message};
	if (vm->crashed)
		guest->end.details = vm_crash_report(vm);
	else if (vm->console_unseen)
		guest->end.console = vm_console_lines(vm);
	if (vm->phases_lost > 0)
		g_warning("%" G_GUINT64_FORMAT " marks on port 0x80 were lost: the guest sets them too fast",
		          vm->phases_lost);
	if (guest->on_ended)
		guest->on_ended(guest, guest->listener_data);
	return G_SOURCE_REMOVE;
}

static void ended(struct vcpu_machine *machine, enum guest_end_reason reason, char *message)
{
	vm_end(vm_of(machine->guest), reason, 0, message);
}

static void crashed(struct vcpu *vcpu, enum guest_end_reason reason, char *message)
{
	struct vm_crash crash = {.vcpu = vcpu->index};

	vcpu_arch_describe(vcpu, &crash.state);
	end(vm_of(vcpu->machine->guest), reason, 0, message, &crash);
}

static void thread_left(struct vcpu_machine *machine)
{
	struct vm *vm = vm_of(machine->guest);

	if (atomic_fetch_sub_explicit(&vm->n_running, 1, memory_order_acq_rel) == 1)
		vm_on_main_thread(finish, vm);
}

const struct vcpu_machine_ops vm_machine_ops = {.ended = ended, .crashed = crashed, .left = thread_left};

static gboolean duration_over(void *data)
{
	struct vm *vm = data;

	vm->duration_source = 0;
	vm_end(vm, GUEST_END_DURATION, 0, g_strdup_printf("the duration of %g s is over", vm->duration_s));
	return G_SOURCE_REMOVE;
}

void vm_limit_duration(struct vm *vm, double duration_s)
{
	if (duration_s <= 0)
		return;
	vm->duration_s = duration_s;
	vm->duration_source = g_timeout_add((guint)(duration_s * 1e3), duration_over, vm);
	watchdog_limit((guint64)(duration_s * 1e3), EXIT_FAILURE);
}

/* Main thread: whether the panicking kernel has said all it has to say. */
static gboolean panic_over(void *data)
{
	struct vm *vm = *(struct vm **)data;

	pthread_mutex_lock(&vm->end_lock);
	bool silent = g_get_monotonic_time() - vm->panic_us >= PANIC_SILENCE_MS * 1000;
	char *message = silent ? g_strdup(vm->panic) : NULL;
	pthread_mutex_unlock(&vm->end_lock);
	if (!silent)
		return G_SOURCE_CONTINUE;
	if (vm->on_panic == VM_PANIC_END) {
		vm_end(vm, GUEST_END_PANIC, 0, message);
	} else {
		if (vm->panicked)
			vm->panicked(&vm->guest, message);
		g_free(message);
	}
	return G_SOURCE_REMOVE;
}

static gboolean await_end_of_panic(void *data)
{
	g_timeout_add(PANIC_SILENCE_MS, panic_over, data);
	return G_SOURCE_REMOVE;
}

void vm_watch_for_panic(const char *line, void *data)
{
	struct vm *vm = data;
	const char *begin = strstr(line, "Kernel panic - not syncing");

	pthread_mutex_lock(&vm->end_lock);
	bool begins = begin && !vm->panic;
	if (begins)
		vm->panic = g_strdup(begin);
	vm->panic_us = g_get_monotonic_time();
	pthread_mutex_unlock(&vm->end_lock);
	if (begins)
		vm_on_main_thread(await_end_of_panic, vm);
}
