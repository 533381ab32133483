// SPDX-License-Identifier: BSD-2-Clause
/* query-vcpu-time, vcpu-time-reset */
#include <vprof/exit.h>

#include "control/method_priv.h"
#include "lib/record/exit_name.h"

#define VCPU_TIME_VERSION 2

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

static json_t *time_json(const struct guest_vcpu_time *vcpu)
{
	json_t *exits = json_array(), *counters = json_object();

	for (size_t i = 0; i < vcpu->n_exits; i++)
		json_array_append_new(exits, exit_json(&vcpu->exits[i]));
	for (size_t i = 0; i < vcpu->n_counters; i++)
		json_object_set_new(counters, vcpu->counters[i].name,
		                    json_integer((json_int_t)vcpu->counters[i].value));

	json_t *times = json_object();
#define X(name, help) control_set_count(times, #name, vcpu->time.name##_ns);
	VCPU_TIMES(X)
#undef X
	return json_pack("{s:i, s:s?, s:o, s:{s:I, s:I}, s:o, s:o}", "version", VCPU_TIME_VERSION, "missing",
	                 vcpu->missing, "ns", times, "looks", "kernel", (json_int_t)vcpu->modes.kernel, "user",
	                 (json_int_t)vcpu->modes.user, "exits", exits, "counters", counters);
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
	struct guest_vcpu_time time;

	if (!has_clocks(guest, error) || !control_vcpu_check(guest, vcpu, error))
		return NULL;
	guest->ops->vcpu_time(guest, (unsigned)vcpu, false, &time);
	return time_json(&time);
}

static json_t *method_vcpu_time_reset(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	struct guest_vcpu_time time;

	if (!has_clocks(guest, error))
		return NULL;
	for (unsigned i = 0; i < guest->vcpus; i++)
		guest->ops->vcpu_time(guest, i, true, &time);
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

static const struct method_member kvm_counters_members[] = {
	{"*", "each counter that KVM has", MEMBER_INTEGER},
	{0},
};

static const struct method_member vcpu_time_members[] = {
	{"version", "version of this answer: 2", MEMBER_INTEGER},
	{"missing", "the clocks that this host does not have", MEMBER_STRING, .nullable = true},
	{"ns", "time by each clock", MEMBER_OBJECT, .members = clocks_members},
	{"looks", "looks at the running vCPU at random times", MEMBER_OBJECT, .members = looks_members},
	{"exits", "exits by reason and detail", MEMBER_OBJECTS, .members = exit_members},
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
