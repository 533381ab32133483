// SPDX-License-Identifier: BSD-2-Clause
/* Probes that need no breakpoint: of what a vCPU leaves the guest for, of markers, and of the recording itself. */
#include <fnmatch.h>
#include <linux/kvm.h>

#include "probe/placement_priv.h"

#define MARK_PORT 0x80u

/* ---- exits ---- */

static bool in_range(const struct probe_spec *spec, uint64_t number)
{
	return number >= spec->first && number <= spec->last;
}

static bool exit_fires(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments)
{
	if (!occasion->access)
		return false;
	arguments[0] = occasion->access->reason;
	arguments[1] = occasion->access->address;
	return in_range(&self->probe->spec, occasion->access->reason);
}

const struct placement_ops placement_exit = {.place = placement_place, .remove = placement_free, .fires = exit_fires};

/* ---- reads and writes ---- */

static bool access_fires(const struct placement *self, const struct guest_access *access, uint64_t *arguments)
{
	const struct probe_spec *spec = &self->probe->spec;

	if (!in_range(spec, access->address) || !(access->write ? spec->write : spec->read))
		return false;
	arguments[0] = access->address;
	arguments[1] = access->value;
	arguments[2] = access->bytes;
	arguments[3] = access->write;
	return true;
}

static bool io_fires(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments)
{
	return occasion->access && occasion->access->reason == KVM_EXIT_IO &&
	       access_fires(self, occasion->access, arguments);
}

static bool mmio_fires(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments)
{
	return occasion->access && occasion->access->reason == KVM_EXIT_MMIO &&
	       access_fires(self, occasion->access, arguments);
}

static bool msr_fires(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments)
{
	return occasion->access &&
	       (occasion->access->reason == KVM_EXIT_X86_RDMSR || occasion->access->reason == KVM_EXIT_X86_WRMSR) &&
	       access_fires(self, occasion->access, arguments);
}

/* Makes the MSRs of all sets' msr probes exit. */
static bool watch_msrs(struct probe_hub *hub, GError **error)
{
	struct guest_msr_range ranges[GUEST_MSR_RANGES_MAX];
	size_t n = 0;

	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);

		for (guint j = 0; j < set->probes->len; j++) {
			const struct probe *probe = g_ptr_array_index(set->probes, j);

			if (!probe->placement || probe->placement->ops != &placement_msr)
				continue;
			if (n == G_N_ELEMENTS(ranges)) {
				g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
				            "cannot place %s: there are %u msr probes, the most there can be",
				            probe->spec.name, GUEST_MSR_RANGES_MAX);
				return false;
			}
			ranges[n++] = (struct guest_msr_range){(uint32_t)probe->spec.first, (uint32_t)probe->spec.last,
			                                       probe->spec.read, probe->spec.write};
		}
	}
	return hub->guest->debug->msrs_watch(hub->guest, ranges, n, error);
}

static bool msr_place(struct probe *probe, GError **error)
{
	placement_new(probe, sizeof(struct placement));
	if (watch_msrs(probe->set->hub, error))
		return true;
	placement_free(probe->placement);
	return false;
}

static void msr_remove(struct placement *self)
{
	struct probe_hub *hub = self->probe->set->hub;

	placement_free(self);
	watch_msrs(hub, NULL); /* fewer ranges than were there before */
}

const struct placement_ops placement_io = {.place = placement_place, .remove = placement_free, .fires = io_fires};
const struct placement_ops placement_mmio = {.place = placement_place, .remove = placement_free, .fires = mmio_fires};
const struct placement_ops placement_msr = {.place = msr_place, .remove = msr_remove, .fires = msr_fires};

/* ---- markers, of the guest and of clients ---- */

static bool marker_fires(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments)
{
	const struct probe_spec *spec = &self->probe->spec;
	const struct guest_access *access = occasion->access;

	if (occasion->marker) {
		arguments[0] = occasion->marker_number;
		arguments[1] = occasion->marker_ends ? PROBE_MARKER_END : PROBE_MARKER_BEGIN;
		return spec->symbol[0] != '\0' && fnmatch(spec->symbol, occasion->marker, 0) == 0;
	}
	if (!access || access->reason != KVM_EXIT_IO || access->address != MARK_PORT || !access->write)
		return false;
	arguments[0] = access->value;
	arguments[1] = PROBE_MARKER_PORT;
	return in_range(spec, access->value);
}

/* A call on the thread of the vCPU that the event belongs to. */
struct marker_call {
	struct probe *probe;
	uint64_t arguments[PROBE_ARGUMENTS_MAX];
};

static void marker_on_vcpu(void *data)
{
	const struct marker_call *call = data;

	probe_event_marker(call->probe, 0, call->arguments);
}

uint64_t probe_hub_add_marker(struct probe_hub *hub, const char *name, bool end)
{
	const struct probe_occasion occasion = {.marker = name, .marker_number = ++hub->markers, .marker_ends = end};

	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);

		for (guint j = 0; set->recording && j < set->probes->len; j++) {
			struct marker_call call = {.probe = g_ptr_array_index(set->probes, j)};

			if (probe_fires(call.probe, &occasion, call.arguments))
				hub->guest->ops->run_on_vcpu(hub->guest, 0, marker_on_vcpu, &call);
		}
	}
	return hub->markers;
}

const struct placement_ops placement_marker = {
	.place = placement_place, .remove = placement_free, .fires = marker_fires};

/* ---- the recording ---- */

static bool recording_fires(const struct placement *self, const struct probe_occasion *occasion,
                            uint64_t *arguments G_GNUC_UNUSED)
{
	const struct probe_spec *spec = &self->probe->spec;

	return (occasion->starts && spec->read) || (occasion->ends && spec->write);
}

const struct placement_ops placement_recording = {
	.place = placement_place, .remove = placement_free, .fires = recording_fires};
