// SPDX-License-Identifier: BSD-2-Clause
/* query-vcpu-time, vcpu-time-reset */
#include <vprof/exit.h>

#include "control/method_priv.h"
#include "lib/record/exit_name.h"

#define VCPU_TIME_VERSION 3

static json_t *exit_json(const struct guest_exit *exit)
{
	const uint64_t detail = vprof_exit_detail(exit->ip);
	const bool other = detail == VPROF_EXIT_DETAIL_MASK;
	char name[EXIT_NAME_BYTES];

	exit_name_format(exit->ip, name);
	if (other)
		*strrchr(name, ':') = '\0';
	return json_pack("{s:s+, s:I, s:o, s:I, s:I}", "name", name, other ? ":other" : "", "reason",
	                 (json_int_t)vprof_exit_reason(exit->ip), "detail",
	                 other ? json_null() : json_integer((json_int_t)detail), "count", (json_int_t)exit->count, "ns",
	                 (json_int_t)exit->ns);
}

static json_t *kvm_exit_json(const struct guest_kvm_exit *exit)
{
	json_t *histogram = json_array();
	size_t n = GUEST_KVM_EXIT_BUCKETS;

	while (n > 0 && exit->histogram[n - 1] == 0)
		n--;
	for (size_t i = 0; i < n; i++)
		json_array_append_new(histogram, json_integer((json_int_t)exit->histogram[i]));
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "name", exit->name, "count",
	                 (json_int_t)exit->count, "ns", (json_int_t)exit->ns, "kvm-ns", (json_int_t)exit->kvm_ns,
	                 "vmm-ns", (json_int_t)exit->vmm_ns, "poll-ns", (json_int_t)exit->poll_ns, "halt-ns",
	                 (json_int_t)exit->halt_ns, "waiting-ns", (json_int_t)exit->waiting_ns, "max-ns",
	                 (json_int_t)exit->max_ns, "histogram", histogram);
}

static json_t *access_json(const struct guest_access_count *access)
{
	const char *space = access->mmio ? "mmio" : "ioport";

	if (access->other)
		return json_pack("{s:n, s:n, s:n, s:I, s:I}", "space", "address", "write", "count",
		                 (json_int_t)access->count, "ns", (json_int_t)access->ns);
	return json_pack("{s:s, s:I, s:b, s:I, s:I}", "space", space, "address", (json_int_t)access->address, "write",
	                 access->write, "count", (json_int_t)access->count, "ns", (json_int_t)access->ns);
}

static json_t *time_json(const struct guest_vcpu_time *vcpu)
{
	json_t *exits = json_array(), *counters = json_object(), *kvm_exits = json_array(), *accesses = json_array();

	for (size_t i = 0; i < vcpu->n_exits; i++)
		json_array_append_new(exits, exit_json(&vcpu->exits[i]));
	for (size_t i = 0; i < vcpu->n_kvm_exits; i++)
		json_array_append_new(kvm_exits, kvm_exit_json(&vcpu->kvm_exits[i]));
	for (size_t i = 0; i < vcpu->n_accesses; i++)
		json_array_append_new(accesses, access_json(&vcpu->accesses[i]));
	for (size_t i = 0; i < vcpu->n_counters; i++)
		json_object_set_new(counters, vcpu->counters[i].name,
		                    json_integer((json_int_t)vcpu->counters[i].value));

	json_t *times = json_object();
#define X(name, help) control_set_count(times, #name, vcpu->time.name##_ns);
	VCPU_TIMES(X)
#undef X
	return json_pack("{s:i, s:s?, s:s?, s:I, s:o, s:{s:I, s:I}, s:o, s:o, s:o, s:o}", "version", VCPU_TIME_VERSION,
	                 "missing", vcpu->missing, "untraced", vcpu->untraced, "lost", (json_int_t)vcpu->lost, "ns",
	                 times, "looks", "kernel", (json_int_t)vcpu->modes.kernel, "user", (json_int_t)vcpu->modes.user,
	                 "exits", exits, "kvm-exits", kvm_exits, "accesses", accesses, "counters", counters);
}

static bool has_clocks(const struct guest *guest, GError **error)
{
	if (guest->ops->vcpu_time)
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
	            "cannot account for the time of a guest of kind %s", guest->kind);
	return false;
}

static json_t *method_query_vcpu_time(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	json_int_t vcpu = json_integer_value(json_object_get(call->arguments, "vcpu"));
	g_autofree struct guest_vcpu_time *time = NULL;

	if (!has_clocks(guest, error) || !control_vcpu_check(guest, vcpu, error))
		return NULL;
	time = g_new(struct guest_vcpu_time, 1);
	guest->ops->vcpu_time(guest, (unsigned)vcpu, false, time);
	return time_json(time);
}

static json_t *method_vcpu_time_reset(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	g_autofree struct guest_vcpu_time *time = NULL;

	if (!has_clocks(guest, error))
		return NULL;
	time = g_new(struct guest_vcpu_time, 1);
	for (unsigned i = 0; i < guest->vcpus; i++)
		guest->ops->vcpu_time(guest, i, true, time);
	return json_object();
}

/* ---- the methods ---- */

static const struct method_argument query_vcpu_time_arguments[] = {
	{"vcpu", "number of the vCPU", ARGUMENT_INTEGER, .min = 0, .max = GUEST_VCPUS_MAX - 1},
	{0},
};

static const struct method_member clocks_members[] = {
	{"*", "each clock", MEMBER_INTEGER, .names = "vcpu-times"},
	{0},
};

static const struct method_member looks_members[] = {
	{"kernel", "looks that found the guest in its kernel", MEMBER_INTEGER},
	{"user", "looks that found the guest in user space", MEMBER_INTEGER},
	{0},
};

static const struct method_member exit_members[] = {
	{"name", "name of the exit, for example exit:io:0x3f8", MEMBER_STRING},
	{"reason", "KVM's number of the exit reason", MEMBER_INTEGER},
	{"detail", "port, address or register; null: several of them together", MEMBER_INTEGER, .nullable = true},
	{"count", "number of exits", MEMBER_INTEGER},
	{"ns", "time that the VMM spent on them", MEMBER_INTEGER},
	{0},
};

static const struct method_member kvm_exit_members[] = {
	{"name", "the processor's exit reason, as asm/vmx.h and asm/svm.h name it; other: several of them",
         MEMBER_STRING},
	{"count", "number of exits that are over", MEMBER_INTEGER},
	{"ns", "time from leaving the guest to entering it again, with that of an exit that is not over",
         MEMBER_INTEGER},
	{"kvm-ns", "of it, KVM", MEMBER_INTEGER},
	{"vmm-ns", "of it, the VMM", MEMBER_INTEGER},
	{"poll-ns", "of it, KVM was awake because the vCPU was halted", MEMBER_INTEGER},
	{"halt-ns", "of it, KVM slept because the vCPU was halted", MEMBER_INTEGER},
	{"waiting-ns", "of it, waiting for a host CPU", MEMBER_INTEGER},
	{"max-ns", "the longest since the guest's start", MEMBER_INTEGER},
	{"histogram", "number of exits of 2^n ns and more, by n; 31 has no end", MEMBER_INTEGERS},
	{0},
};

static const struct method_member access_members[] = {
	{"space", "ioport or mmio; null: several together", MEMBER_STRING, .nullable = true},
	{"address", "port or guest physical address", MEMBER_INTEGER, .nullable = true},
	{"write", "whether the guest wrote", MEMBER_BOOLEAN, .nullable = true},
	{"count", "number of accesses", MEMBER_INTEGER},
	{"ns", "time of their exits", MEMBER_INTEGER},
	{0},
};

static const struct method_member kvm_counters_members[] = {
	{"*", "each counter that KVM has", MEMBER_INTEGER},
	{0},
};

static const struct method_member vcpu_time_members[] = {
	{"version", "version of this answer: 3", MEMBER_INTEGER},
	{"missing", "the clocks that this host does not have", MEMBER_STRING, .nullable = true},
	{"untraced", "why KVM's trace points are not read", MEMBER_STRING, .nullable = true},
	{"lost", "records of KVM's trace points that were lost: exits that are not counted", MEMBER_INTEGER},
	{"ns", "time by each clock", MEMBER_OBJECT, .members = clocks_members},
	{"looks", "looks at the running vCPU at random times", MEMBER_OBJECT, .members = looks_members},
	{"exits", "exits by reason and detail", MEMBER_OBJECTS, .members = exit_members},
	{"kvm-exits", "exits of the processor by reason; none without trace points", MEMBER_OBJECTS,
         .members = kvm_exit_members},
	{"accesses", "ports and addresses that are emulated; none without trace points", MEMBER_OBJECTS,
         .members = access_members},
	{"counters", "KVM's own counters of the vCPU", MEMBER_OBJECT, .members = kvm_counters_members},
	{0},
};

const struct control_method time_methods[] = {
	{
		.name = "query-vcpu-time",
		.summary =
			"returns where the time of a vCPU went since its start or the last reset, by independent clocks",
		.returns = vcpu_time_members,
		.role = ROLE_OBSERVE,
		.arguments = query_vcpu_time_arguments,
		.run = method_query_vcpu_time,
	},
	{
		.name = "vcpu-time-reset",
		.summary = "resets the times, exits and counters of query-vcpu-time to 0 on every vCPU",
		.role = ROLE_INSTRUMENT,
		.run = method_vcpu_time_reset,
	},
	{0},
};
