// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include "kvm/vm_parts.h"

static void thread_ask(void *data)
{
	pid_t *thread = data;

	*thread = gettid();
}

static bool follow(struct vm *vm, struct vcpu *vcpu, GError **error)
{
	pid_t thread = 0;

	if (!vcpu_run_on(vcpu, thread_ask, &thread))
		return true; /* it has ended */
	if (!exit_trace_follow(vm->exits, vcpu->index, thread, error))
		return false;

	const struct exit_source source = exit_trace_source(vm->exits, vcpu->index);

	vcpu_time_trace(&vcpu->clocks, exit_clock_new(&source));
	return true;
}

static bool trace(struct vm *vm, GError **error)
{
	vm->exits = exit_trace_load(vm->machine.n_vcpus, error);
	if (!vm->exits || !exit_trace_attach(vm->exits, error))
		return false;
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++)
		if (!follow(vm, &vm->machine.vcpus[i], error))
			return false;
	return true;
}

void vm_exits_trace(struct vm *vm)
{
	g_autoptr(GError) why = NULL;

	if (trace(vm, &why))
		return;
	vm->exits_why = g_strdup(why->message);
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++) {
		vcpu_time_trace(&vm->machine.vcpus[i].clocks, NULL);
		vm->machine.vcpus[i].clocks.untraced = vm->exits_why;
	}
	g_clear_pointer(&vm->exits, exit_trace_free);
}
