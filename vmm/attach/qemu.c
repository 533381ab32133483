// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu.h"

G_DEFINE_QUARK(vprof_qemu_guest_error, qemu_guest_error)

struct monitor *qemu_guest_monitor(const struct qemu_guest *qemu)
{
	return qemu->view ? NULL : qemu->monitor;
}

bool qemu_guest_runs(const struct qemu_guest *qemu)
{
	return atomic_load_explicit(&qemu->runs, memory_order_relaxed);
}

bool qemu_guest_says(struct qemu_guest *qemu, enum monitor_command command, const char *member)
{
	json_t *answer = monitor_ask(qemu->monitor, command, NULL);
	bool says = json_is_true(json_object_get(answer, member));

	json_decref(answer);
	return says;
}

size_t qemu_guest_registers(struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX], GError **error)
{
	const struct monitor_request request = {.command = MONITOR_REGISTERS};
	g_autofree char *text = monitor_human(qemu->monitor, &request, error);
	size_t n = text ? hmp_parse_registers(text, registers, qemu->guest.vcpus) : 0;

	if (text && n == 0)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER,
		            "QEMU's `info registers` shows no registers of an x86 vCPU");
	return n;
}
