// SPDX-License-Identifier: BSD-2-Clause
#include "export/export_samples.h"

#include "lib/profile/chain.h"

struct samples_walk {
	const struct export_profile *profile;
	export_visitor *visit;
	void *data;
	struct chain_frame chain[CHAIN_FRAMES_MAX];
	struct export_frame frames[CHAIN_FRAMES_MAX];
};

static void frame_resolve(const struct input *input, const struct record_sample *sample, const struct chain_frame *from,
                          struct export_frame *frame)
{
	frame->ip = from->ip;
	frame->mode = profile_mode_of(from->misc);
	input_find_place(input, sample, frame->mode, from->ip, &frame->place);
}

static bool walk_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct samples_walk *walk = data;
	const struct export_profile *profile = walk->profile;
	uint32_t n;

	if (event != profile->event_number)
		return true;
	n = chain_frames(sample, walk->chain);
	for (uint32_t i = 0; i < n; i++)
		frame_resolve(profile->input, sample, &walk->chain[i], &walk->frames[i]);
	return walk->visit(sample, names_comm(profile->input->names, sample->tid, sample->time_ns), walk->frames, n,
	                   walk->data);
}

void export_samples_each(const struct export_profile *profile, export_visitor *visit, void *data)
{
	static const struct input_visitor visitor = {.sample = walk_sample};
	struct samples_walk *walk = g_new(struct samples_walk, 1);

	walk->profile = profile;
	walk->visit = visit;
	walk->data = data;
	input_walk(profile->input, &visitor, walk);
	g_free(walk);
}
