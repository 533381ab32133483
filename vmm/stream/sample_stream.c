// SPDX-License-Identifier: BSD-2-Clause
#include "stream/sample_stream.h"

bool sample_rings_make(struct ring **rings, unsigned n, size_t data_bytes, GError **error)
{
	struct ring *made[GUEST_VCPUS_MAX] = {NULL};

	for (unsigned i = 0; i < n; i++) {
		made[i] = ring_new(data_bytes, error);
		if (made[i])
			continue;
		sample_rings_free(made, i);
		return false;
	}
	sample_rings_free(rings, n);
	for (unsigned i = 0; i < n; i++)
		rings[i] = made[i];
	return true;
}

void sample_rings_free(struct ring **rings, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ring_free(g_steal_pointer(&rings[i]));
}

void sample_stream_init(struct sample_stream *stream, const struct sample_stream_config *config, struct ring *ring)
{
	const struct os_kernel *kernel = config->kernel;

	*stream = (struct sample_stream){.ring = ring, .kernel = kernel, .announcer.ring = ring};
	namer_init(&stream->namer, kernel, config->claims, &stream->announcer, config->by_switches);
	if (!kernel)
		return;
	if (config->mappings && kernel->mappings) {
		stream->mapper = g_new(struct mapper, 1);
		mapper_init(stream->mapper, kernel, &stream->announcer, config->tables);
	}
	if (config->groups && kernel->groups) {
		stream->cgroups = g_new(struct cgroup_namer, 1);
		cgroup_namer_init(stream->cgroups, kernel, &stream->announcer);
	}
	if (config->modules && kernel->modules) {
		stream->modules = g_new(struct module_mapper, 1);
		module_mapper_init(stream->modules, kernel, &stream->announcer);
	}
}

void sample_stream_deinit(struct sample_stream *stream)
{
	g_clear_pointer(&stream->mapper, g_free);
	g_clear_pointer(&stream->cgroups, g_free);
	g_clear_pointer(&stream->modules, g_free);
}

struct sample_facts sample_stream_announce(struct sample_stream *stream, struct page_walk *walk,
                                           const struct task *task, const struct record_id *id, bool code,
                                           uint64_t user_ip)
{
	struct sample_facts facts = {0};

	namer_task(&stream->namer, walk, task, id);
	if (code && stream->mapper)
		facts.code = mapper_task(stream->mapper, walk, task, id, user_ip);
	if (stream->cgroups)
		facts.group = cgroup_namer_task(stream->cgroups, walk, task, id);
	facts.modules_read = stream->modules && module_mapper_sample(stream->modules, walk, id);
	return facts;
}

bool sample_stream_write(struct sample_stream *stream, const struct record_sample *sample, bool with_chain)
{
	const struct record_id id = {.pid = sample->pid,
	                             .tid = sample->tid,
	                             .time_ns = sample->time_ns,
	                             .cpu = sample->cpu,
	                             .id = sample->id};
	uint64_t record[SAMPLE_STREAM_BYTES_MAX / sizeof(uint64_t)];
	const size_t bytes = record_sample_encode(sample, with_chain, record, sizeof(record));

	return ring_write(stream->ring, record, bytes, &id);
}
