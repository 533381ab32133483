// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu.h"

static struct vcpu_account_source account_source(const struct qemu_guest *qemu, unsigned vcpu)
{
	return (struct vcpu_account_source){
		.pid = qemu->pid,
		.thread = qemu->threads[vcpu],
		.view = qemu->view,
		.id = qemu_machine_id(qemu, vcpu),
		.monitor = qemu_guest_monitor(qemu),
		.path = qemu->paths[vcpu],
		.kvm = g_strcmp0(qemu->accelerator, "kvm") == 0,
		.vcpu = vcpu,
		.exits = qemu->exits,
		.untraced = qemu->exits_why,
	};
}

void qemu_clocks_prepare(struct qemu_guest *qemu)
{
	g_autoptr(GError) why = NULL;

	if (g_strcmp0(qemu->accelerator, "tcg") == 0)
		qemu->exits_why = g_strdup("the guest does not run under KVM");
	else if (!(qemu->exits = exit_trace_load(qemu->guest.vcpus, &why)))
		qemu->exits_why = g_strdup(why->message);
}

/* Brings it up to now; it begins now if there is none, or none of the thread that the vCPU has. */
static void account_update(struct vcpu_account **account, const struct vcpu_account_source *source)
{
	struct vcpu_account *before = *account;

	if (before && (!source->thread || vcpu_account_thread(before) == source->thread)) {
		vcpu_account_update(before, source);
		return;
	}
	*account = vcpu_account_new(source, before);
	vcpu_account_free(before);
}

void qemu_clocks_read(struct guest *guest, unsigned vcpu, bool reset, struct guest_vcpu_time *out)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	const struct vcpu_account_source source = account_source(qemu, vcpu);
	struct vcpu_account **account = &qemu->accounts[vcpu];

	account_update(account, &source);
	vcpu_account_read(*account, source.kvm, out);
	if (!reset)
		return;
	vcpu_account_free(*account);
	*account = vcpu_account_new(&source, NULL);
}

void qemu_clocks_update(struct qemu_guest *qemu)
{
	for (unsigned i = 0; i < qemu->guest.vcpus; i++) {
		const struct vcpu_account_source source = account_source(qemu, i);

		if (qemu->accounts[i])
			account_update(&qemu->accounts[i], &source);
	}
}

void qemu_clocks_clear(struct qemu_guest *qemu)
{
	for (size_t i = 0; i < GUEST_VCPUS_MAX; i++)
		g_clear_pointer(&qemu->accounts[i], vcpu_account_free);
	g_clear_pointer(&qemu->exits, exit_trace_free);
	g_clear_pointer(&qemu->exits_why, g_free);
}
