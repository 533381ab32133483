// SPDX-License-Identifier: BSD-2-Clause
#include "probe/probe.h"

#include <string.h>
#include <vprof/ring.h>

#include "guest/processor.h"
#include "guest/types.h"
#include "probe/user_priv.h"

/* ---- what the sets of an engine share ---- */

struct probe_hub *probe_hub_new(struct guest *guest, struct session *session)
{
	struct probe_hub *hub = g_new0(struct probe_hub, 1);

	hub->guest = guest;
	hub->session = session;
	hub->sets = g_ptr_array_new();
	return hub;
}

void probe_hub_free(struct probe_hub *hub)
{
	if (!hub)
		return;
	g_ptr_array_unref(hub->sets);
	probe_text_free(hub->text);
	if (hub->tracepoints)
		hub->os->tracepoints->free(hub->tracepoints);
	if (hub->calls)
		hub->os->calls->free(hub->calls);
	g_clear_error(&hub->tracepoints_why);
	btf_free(hub->btf);
	g_clear_pointer(&hub->btf_bytes, g_bytes_unref);
	g_free(hub);
}

/* The kernel's types, of which a copy is kept for its functions and trace points. */
static void load_btf(struct probe_hub *hub, const struct image *image)
{
	size_t n;
	const uint8_t *section = types_btf(image, &n, NULL);

	if (!section)
		return;
	hub->btf_bytes = g_bytes_new(section, n);
	hub->btf = btf_new(g_bytes_get_data(hub->btf_bytes, NULL), n, NULL);
}

static void load_tracepoints(struct probe_hub *hub, const struct image *image)
{
	const struct symtab *symtab = probe_text_symtab(hub->text, &hub->tracepoints_why);

	if (symtab && hub->os->tracepoints)
		hub->tracepoints = hub->os->tracepoints->load(image, symtab, &hub->tracepoints_why);
	else if (symtab)
		g_set_error_literal(&hub->tracepoints_why, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		                    hub->os->why_no_tracepoints);
	if (symtab && hub->os->calls)
		hub->calls = hub->os->calls->load(image, symtab);
	load_btf(hub, image);
}

/*
 * Reads what is known of the kernel's code, and if asked to of its trace points and types, once, since unpacking an
 * image takes longest. False after an error; without an image, there is nothing of all that.
 */
static bool load(struct probe_hub *hub, bool types, GError **error)
{
	const struct guest *guest = hub->guest;

	if ((hub->text && (!types || hub->has_types)) || (!guest->kernel_path && !guest->kernel_image))
		return true;
	struct image *opened = guest->kernel_image ? NULL : guest_image_open(guest, error);
	const struct image *image = opened ? opened : guest->kernel_image;

	if (image && !hub->text) {
		hub->os = os_of_image(guest->systems, image);
		hub->text = probe_text_load(hub->os, image);
	}
	if (image && types) {
		load_tracepoints(hub, image);
		hub->has_types = true;
	}
	image_free(opened);
	return image != NULL;
}

bool probe_hub_load_text(struct probe_hub *hub, GError **error)
{
	return load(hub, false, error);
}

const struct symtab *probe_hub_symtab(struct probe_hub *hub, GError **error)
{
	if (!probe_hub_load_text(hub, error))
		return NULL;
	if (hub->text)
		return probe_text_symtab(hub->text, error);
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
	            "cannot find functions: the guest's kernel image is not known");
	return NULL;
}

const struct tracepoints *probe_hub_tracepoints(struct probe_hub *hub, GError **error)
{
	if (!load(hub, true, error))
		return NULL;
	if (!hub->has_types)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot find trace points: the guest's kernel image is not known");
	else if (!hub->tracepoints && error)
		*error = g_error_copy(hub->tracepoints_why);
	return hub->tracepoints;
}

const struct btf *probe_hub_btf(struct probe_hub *hub)
{
	return load(hub, true, NULL) ? hub->btf : NULL;
}

bool probe_hub_has_calls(struct probe_hub *hub)
{
	return load(hub, true, NULL) && hub->calls;
}

static GArray *probe_hub_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error)
{
	const struct probe_source *source = &probe_sources[spec->kind];

	return source->arguments ? source->arguments(hub, spec, error) : NULL;
}

bool probe_hub_fields(struct probe_hub *hub, const struct probe_spec *spec, struct probe_fields *fields, GError **error)
{
	g_autoptr(GError) why = NULL;
	g_autoptr(GArray) arguments = probe_hub_arguments(hub, spec, &why);

	if (why) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	if (arguments) {
		probe_fields_fill(arguments, fields);
		return true;
	}
	*fields = (struct probe_fields){.names = g_strdupv((char **)probe_providers[spec->kind].arguments),
	                                .types = probe_parameter_types(hub, spec)};
	return true;
}

static void list_calls(struct probe_hub *hub, void (*each)(void *data, const char *name, bool arguments), void *data)
{
	static const char *const prefixes[] = {"syscalls:sys_enter_", "syscalls:sys_exit_"};
	uint32_t number;

	each(data, "raw_syscalls:sys_enter", true);
	each(data, "raw_syscalls:sys_exit", true);
	for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++) {
		for (const char *const *name = hub->os->calls->names(hub->calls); *name; name++) {
			g_autofree char *text = g_strconcat(prefixes[i], *name, NULL);

			if (probe_call_number(*name, &number))
				each(data, text, true);
		}
	}
}

void probe_hub_list_tracepoints(struct probe_hub *hub, void (*each)(void *data, const char *name, bool arguments),
                                void *data)
{
	const struct tracepoints *tracepoints = probe_hub_tracepoints(hub, NULL);
	const GPtrArray *all = tracepoints ? hub->os->tracepoints->all(tracepoints) : NULL;

	for (guint i = 0; all && i < all->len; i++) {
		const struct tracepoint *tracepoint = g_ptr_array_index(all, i);

		if (tracepoint->sites->len > 0 && !tracepoint->needs_kernel)
			each(data, tracepoint->name, hub->os->tracepoints->has_arguments(tracepoint));
	}
	if (probe_hub_has_calls(hub))
		list_calls(hub, each, data);
}

/* ---- probes of a set ---- */

static void probe_free(gpointer data)
{
	struct probe *probe = data;

	probe_values_free(probe->values);
	g_clear_pointer(&probe->arguments, g_array_unref);
	probe_fields_clear(&probe->fields);
	g_free(probe->program);
	g_free(probe);
}

struct probe_set *probe_set_new(struct probe_hub *hub)
{
	struct probe_set *set = g_new0(struct probe_set, 1);

	set->observer.exited = probe_event_exited;
	set->hub = hub;
	set->probes = g_ptr_array_new_with_free_func(probe_free);
	set->rings = g_new0(struct ring *, hub->guest->vcpus);
	set->vcpus = g_new0(struct probe_vcpu, hub->guest->vcpus);
	set->claims = g_new0(struct task_claims, 1);
	g_ptr_array_add(hub->sets, set);
	return set;
}

static bool place(struct probe *probe, GError **error)
{
	const struct processor *processor = processor_of(probe->set->hub->guest->processor);

	if (probe_sources[probe->spec.kind].needs & ~processor->probes) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot place %s: guests of %s have no probes of this kind; probe function:NAME instead",
		            probe->spec.name, arch_name(processor->arch));
		return false;
	}
	return probe_placement_ops(probe)->place(probe, error);
}

bool probe_set_may_change(const struct probe_set *set, GError **error)
{
	const struct guest *guest = set->hub->guest;

	if (!guest->debug) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot probe guest %s: a guest of kind %s can only be sampled", guest->name, guest->kind);
		return false;
	}
	if (set->recording) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE,
		            "cannot change the probes while they record; execute probe-record with \"on\" false first");
		return false;
	}
	return true;
}

static bool is_new(const struct probe_set *set, const char *name, GError **error)
{
	for (guint i = 0; i < set->probes->len; i++) {
		const struct probe *probe = g_ptr_array_index(set->probes, i);

		if (!g_str_equal(probe->spec.name, name))
			continue;
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_EXISTS, "there is a probe %s already; its id is %u", name,
		            probe->id);
		return false;
	}
	if (set->probes->len < VPROF_PROBES_MAX)
		return true;
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE, "cannot add %s: there are %u probes, the most there can be",
	            name, VPROF_PROBES_MAX);
	return false;
}

static const char *const no_types[] = {NULL};

static void fill_info(const struct probe *probe, struct probe_info *info)
{
	*info = (struct probe_info){.id = probe->id,
	                            .spec = &probe->spec,
	                            .options = probe->options,
	                            .events = atomic_load_explicit(&probe->events, memory_order_relaxed),
	                            .fields = {(char **)probe_providers[probe->spec.kind].arguments, (char **)no_types},
	                            .intact = true};
	if (probe->arguments)
		info->fields = probe->fields;
	info->paths = probe_values_paths(probe->values, &info->n_paths);
	if (probe->placement->ops->describe)
		probe->placement->ops->describe(probe->placement, info);
}

/* Removes it from the guest and the set. */
static void drop(struct probe_set *set, struct probe *probe)
{
	probe->placement->ops->remove(probe->placement);
	g_ptr_array_remove(set->probes, probe);
}

bool probe_set_add(struct probe_set *set, const char *text, const struct probe_options *options,
                   struct probe_info *info, GError **error)
{
	struct probe_spec spec;

	if (!probe_set_may_change(set, error) || !probe_spec_parse(text, &spec, error) ||
	    !is_new(set, spec.name, error))
		return false;
	struct probe *probe = g_new0(struct probe, 1);
	probe->set = set;
	probe->spec = spec;
	probe->options = *options;
	probe->id = set->last_id + 1;
	g_ptr_array_add(set->probes, probe);
	if (!place(probe, error)) {
		g_ptr_array_remove(set->probes, probe);
		return false;
	}
	probe->options.fields = NULL;
	probe->options.binary = NULL;
	if (!probe->arguments)
		probe->arguments = probe_hub_arguments(set->hub, &probe->spec, NULL);
	probe->n_arguments = probe->arguments ? probe->arguments->len
	                                      : g_strv_length((char **)probe_providers[probe->spec.kind].arguments);
	if (probe->arguments)
		probe_fields_fill(probe->arguments, &probe->fields);
	if (!probe_values_new(probe, options->fields, error)) {
		drop(set, probe);
		return false;
	}
	set->last_id = probe->id;
	fill_info(probe, info);
	return true;
}

struct probe *probe_set_find(const struct probe_set *set, unsigned id, GError **error)
{
	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe->id == id)
			return probe;
	}
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN, "there is no probe with id %u", id);
	return NULL;
}

bool probe_set_remove(struct probe_set *set, unsigned id, GError **error)
{
	struct probe *probe = probe_set_may_change(set, error) ? probe_set_find(set, id, error) : NULL;

	if (probe)
		drop(set, probe);
	return probe != NULL;
}

size_t probe_set_count(const struct probe_set *set)
{
	return set->probes->len;
}

void probe_set_info(const struct probe_set *set, size_t index, struct probe_info *info)
{
	fill_info(g_ptr_array_index(set->probes, index), info);
}

/* ---- recording ---- */

struct vcpu_call {
	struct probe_set *set;
	unsigned vcpu;
	bool is_gone; /* its thread has ended */
};

static void fire_edges(struct probe_set *set, const struct probe_occasion *edge, bool knows)
{
	uint64_t none[PROBE_ARGUMENTS_MAX];

	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe_fires(probe, edge, none))
			probe_event_edge(probe, 0, knows);
	}
}

static void start_on_vcpu(void *data)
{
	const struct vcpu_call *call = data;
	struct probe_vcpu *cpu = &call->set->vcpus[call->vcpu];

	atomic_store(&cpu->event, 0);
	atomic_store(&cpu->dropevt, 0);
	atomic_store(&cpu->quirk, 0);
	atomic_store(&cpu->no_task, 0);
	atomic_store(&cpu->no_arguments, 0);
	atomic_store(&cpu->fault, 0);
	atomic_store(&cpu->hit, 0);
	cpu->recording = true;
	/* The first vCPU begins first: nothing else has fired yet. */
	if (call->vcpu == 0)
		fire_edges(call->set, &(struct probe_occasion){.starts = true}, true);
}

static void stop_on_vcpu(void *data)
{
	const struct vcpu_call *call = data;
	struct probe_vcpu *cpu = &call->set->vcpus[call->vcpu];

	if (!cpu->recording)
		return;
	if (call->vcpu == 0)
		fire_edges(call->set, &(struct probe_occasion){.ends = true}, !call->is_gone);
	cpu->recording = false;
	probe_event_finish(cpu, call->vcpu);
}

static bool may_record(const struct probe_set *set, GError **error)
{
	if (set->recording || set->probes->len == 0) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE, "cannot record: %s",
		            set->recording ? "the probes do already" : "there is no probe; execute probe-add first");
		return false;
	}
	if (set->hub->guest->state == GUEST_ENDED) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE, "cannot record: the guest has ended");
		return false;
	}
	return true;
}

static bool wants_stack(const struct probe_set *set)
{
	for (guint i = 0; i < set->probes->len; i++) {
		const struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe->options.stack)
			return true;
	}
	return false;
}

static void start_probes(struct probe_set *set)
{
	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		atomic_store_explicit(&probe->events, 0, memory_order_relaxed);
		if (probe->placement->ops->start)
			probe->placement->ops->start(probe->placement);
	}
}

bool probe_set_record(struct probe_set *set, size_t ring_bytes, GError **error)
{
	struct guest *guest = set->hub->guest;

	if (!may_record(set, error) ||
	    !sample_rings_make(set->rings, guest->vcpus, ring_bytes ? ring_bytes : VPROF_RING_DATA_BYTES_DEFAULT,
	                       error) ||
	    !guest->debug->observer_add(guest, &set->observer, error))
		return false;
	const struct os_kernel *kernel = session_kernel(set->hub->session);
	set->kernel = kernel->tasks ? kernel : NULL;
	memset(set->claims, 0, sizeof(*set->claims));
	const struct sample_stream_config stream = {
		.kernel = set->kernel,
		.claims = set->claims,
		.tables = session_tables(set->hub->session),
		.mappings = wants_stack(set),
	};

	set->unwind = stream.mappings ? session_unwinding(set->hub->session) : (struct unwind_config){.depth = 0};
	set->skiptick = 0;
	set->exited = false;
	for (unsigned i = 0; i < set->n_maps; i++)
		program_map_clear(set->maps[i], false);
	for (unsigned i = 0; i < guest->vcpus; i++) {
		struct vcpu_call call = {set, i, false};

		sample_stream_deinit(&set->vcpus[i].stream);
		sample_stream_init(&set->vcpus[i].stream, &stream, set->rings[i]);
		guest->ops->run_on_vcpu(guest, i, start_on_vcpu, &call);
	}
	set->recording = true;
	start_probes(set);
	set->watch = probe_user_watch(set);
	return true;
}

/* When its thread is gone, the state of a vCPU belongs to the main thread. */
void probe_set_pause(struct probe_set *set)
{
	struct guest *guest = set->hub->guest;

	if (!set->recording)
		return;
	if (set->watch)
		g_source_destroy(set->watch);
	g_clear_pointer(&set->watch, g_source_unref);
	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe->placement->ops->stop)
			probe->placement->ops->stop(probe->placement);
	}
	/* The first vCPU last, with the end of the recording. */
	for (unsigned i = guest->vcpus; i-- > 0;) {
		struct vcpu_call call = {set, i, false};

		if (guest->ops->run_on_vcpu(guest, i, stop_on_vcpu, &call))
			continue;
		call.is_gone = true;
		stop_on_vcpu(&call);
	}
	guest->debug->observer_remove(guest, &set->observer);
	set->recording = false;
}

void probe_set_free(struct probe_set *set)
{
	if (!set)
		return;
	probe_set_pause(set);
	while (set->probes->len > 0)
		drop(set, g_ptr_array_index(set->probes, set->probes->len - 1));
	g_ptr_array_remove(set->hub->sets, set);
	g_ptr_array_unref(set->probes);
	sample_rings_free(set->rings, set->hub->guest->vcpus);
	probe_program_free_maps(set);
	for (unsigned i = 0; i < set->hub->guest->vcpus; i++)
		sample_stream_deinit(&set->vcpus[i].stream);
	g_free(set->claims);
	g_free(set->rings);
	g_free(set->vcpus);
	g_free(set);
}

bool probe_set_recording(const struct probe_set *set)
{
	return set->recording;
}

bool probe_set_has_tasks(const struct probe_set *set)
{
	return set->kernel != NULL;
}

struct ring *probe_set_ring(const struct probe_set *set, unsigned vcpu)
{
	return set->rings[vcpu];
}

#define VIEW_BYTES 65536u

/* Counts without the records that name tasks. */
static uint64_t unread_events(const struct ring *ring)
{
	g_autofree uint64_t *bytes = g_malloc(VIEW_BYTES);
	uint64_t offset = ring_head(ring) - ring_unread(ring), end = ring_head(ring), events = 0;
	size_t n;

	/* Never past the end, even if producer and reader go on meanwhile. */
	while (end - offset - 1 < ring_data_bytes(ring) && (n = ring_view_read(ring, &offset, bytes, VIEW_BYTES)) > 0) {
		const struct perf_event_header *record;

		for (size_t at = 0; (record = record_check((const uint8_t *)bytes + at, n - at)); at += record->size)
			events += record->type == PERF_RECORD_SAMPLE;
		offset += n;
	}
	return events;
}

void probe_set_statistics(const struct probe_set *set, struct probe_statistics *out)
{
	*out = (struct probe_statistics){.skiptick = set->skiptick};
	for (guint i = 0; i < set->probes->len; i++) {
		const struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe->placement->ops->count)
			probe->placement->ops->count(probe->placement, out);
	}
	for (unsigned i = 0; i < set->n_maps; i++)
		out->map_full += program_map_dropped(set->maps[i]);
	for (unsigned i = 0; i < set->hub->guest->vcpus; i++) {
		const struct probe_vcpu *cpu = &set->vcpus[i];
		uint64_t dropevt = atomic_load_explicit(&cpu->dropevt, memory_order_relaxed);
		uint64_t event = atomic_load_explicit(&cpu->event, memory_order_relaxed);
		uint64_t waiting = set->rings[i] ? unread_events(set->rings[i]) : 0;

		out->event += event;
		out->dropevt += dropevt;
		out->readevt += event - MIN(event, dropevt + waiting);
		out->quirk += atomic_load_explicit(&cpu->quirk, memory_order_relaxed);
		out->no_task += atomic_load_explicit(&cpu->no_task, memory_order_relaxed);
		out->hit += atomic_load_explicit(&cpu->hit, memory_order_relaxed);
		out->fault += atomic_load_explicit(&cpu->fault, memory_order_relaxed);
		out->no_arguments += atomic_load_explicit(&cpu->no_arguments, memory_order_relaxed);
	}
}
