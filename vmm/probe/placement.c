// SPDX-License-Identifier: BSD-2-Clause
/* What all kinds of placement have in common. */
#include "probe/placement_priv.h"

struct placement *placement_new(struct probe *probe, size_t bytes)
{
	struct placement *self = g_malloc0(bytes);

	self->ops = probe_placement_ops(probe);
	self->probe = probe;
	probe->placement = self;
	return self;
}

bool placement_place(struct probe *probe, GError **error G_GNUC_UNUSED)
{
	placement_new(probe, sizeof(struct placement));
	return true;
}

void placement_free(struct placement *self)
{
	self->probe->placement = NULL;
	g_free(self);
}

void probe_sites_remove(const struct probe *probe, struct probe_site *sites, size_t n)
{
	struct guest *guest = probe->set->hub->guest;

	for (size_t i = 0; i < n; i++)
		guest->debug->breakpoint_remove(guest, &sites[i].breakpoint);
}

void probe_sites_describe(const struct probe *probe, const struct probe_site *sites, size_t n, struct probe_info *info)
{
	struct guest *guest = probe->set->hub->guest;

	info->breakpoint = GUEST_BREAKPOINT_PROCESSOR;
	for (size_t i = 0; i < n; i++) {
		info->intact &= guest->debug->breakpoint_intact(guest, &sites[i].breakpoint);
		if (sites[i].breakpoint.patched)
			info->breakpoint = GUEST_BREAKPOINT_PATCH;
	}
}
