// SPDX-License-Identifier: BSD-2-Clause
/* query-vcpu-time, vcpu-time-reset */
#include <vprof/exit.h>

#include "control/method_priv.h"
#include "lib/record/exit_name.h"

#define VCPU_TIME_VERSION 2

const struct method_argument query_vcpu_time_arguments[] = {
	{"vcpu", "number of the vCPU", ARGUMENT_INTEGER, .min = 0, .max = GUEST_VCPUS_MAX - 1},
	{0},
};

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

static void set(json_t *times, const char *name, uint64_t ns)
{
	g_autofree char *spelled = g_strdelimit(g_strdup(name), "_", '-');
	json_object_set_new(times, spelled, json_integer((json_int_t)ns));
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
#define X(name, help) set(times, #name, vcpu->time.name##_ns);
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

json_t *method_query_vcpu_time(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	json_int_t vcpu = json_integer_value(json_object_get(call->arguments, "vcpu"));
	struct guest_vcpu_time time;

	if (!has_clocks(guest, error))
		return NULL;
	if (vcpu >= (json_int_t)guest->vcpus) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "there is no vCPU %lld: guest %s has %u", (long long)vcpu, guest->name, guest->vcpus);
		return NULL;
	}
	guest->ops->vcpu_time(guest, (unsigned)vcpu, false, &time);
	return time_json(&time);
}

json_t *method_vcpu_time_reset(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	struct guest_vcpu_time time;

	if (!has_clocks(guest, error))
		return NULL;
	for (unsigned i = 0; i < guest->vcpus; i++)
		guest->ops->vcpu_time(guest, i, true, &time);
	return json_object();
}
