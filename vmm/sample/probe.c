// SPDX-License-Identifier: BSD-2-Clause
#include "sample/probe.h"

#include <string.h>
#include <vprof/ring.h>

#include "sample/probe_priv.h"

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
	g_free(hub);
}

/* Loads what is known of the kernel's code. False after an error; without an image, hub->text stays NULL. */
static bool load_text(struct probe_hub *hub, GError **error)
{
	const struct guest *guest = hub->guest;

	if (hub->text || (!guest->kernel_path && !guest->kernel_image))
		return true;
	struct image *opened = guest->kernel_image ? NULL : image_open(guest->kernel_path, error);
	const struct image *image = opened ? opened : guest->kernel_image;
	if (image)
		hub->text = probe_text_load(image);
	image_free(opened);
	return hub->text != NULL;
}

const struct symtab *probe_hub_symtab(struct probe_hub *hub, GError **error)
{
	if (!load_text(hub, error))
		return NULL;
	if (hub->text)
		return probe_text_symtab(hub->text, error);
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
	            "cannot find functions: the guest's kernel image is not known");
	return NULL;
}

static bool is_msr_probe(const struct probe *probe)
{
	return g_str_equal(probe->spec.provider->name, "msr");
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

			if (!is_msr_probe(probe))
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

/* ---- probes of a set ---- */

struct probe_set *probe_set_new(struct probe_hub *hub)
{
	struct probe_set *set = g_new0(struct probe_set, 1);

	set->observer.exited = probe_event_exited;
	set->hub = hub;
	set->probes = g_ptr_array_new_with_free_func(g_free);
	set->rings = g_new0(struct ring *, hub->guest->vcpus);
	set->vcpus = g_new0(struct probe_vcpu, hub->guest->vcpus);
	set->claims = g_new0(struct task_claims, 1);
	g_ptr_array_add(hub->sets, set);
	return set;
}

static bool function_error(const struct probe_spec *spec, GError **error)
{
	g_set_error(
		error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
		"cannot place %s: the guest's kernel image has no function \"%s\"; it may have been inlined, or be in a module. `vprof probe list 'function:*NAME*'` shows what there is",
		spec->name, spec->symbol);
	return false;
}

static bool find_function(const struct symtab *symtab, const char *name, uint64_t *address)
{
	const struct symbol *symbol = symtab_find_name(symtab, name);

	if (!symbol || !strchr("tTwW", symbol->type))
		return false;
	*address = symbol->address;
	return true;
}

static bool find_syscall_entry(const struct symtab *symtab, uint64_t *address)
{
	for (size_t i = 0; probe_syscall_entries[i]; i++) {
		if (find_function(symtab, probe_syscall_entries[i], address))
			return true;
	}
	return false;
}

static bool find_address(struct probe_hub *hub, const struct probe_spec *spec, uint64_t *address, GError **error)
{
	bool by_number = g_str_equal(spec->provider->name, "function") && spec->symbol[0] == '\0';

	*address = 0;
	if (!by_number) {
		const struct symtab *symtab = probe_hub_symtab(hub, error);

		if (!symtab)
			return false;
		if (spec->symbol[0] != '\0' && !find_function(symtab, spec->symbol, address))
			return function_error(spec, error);
		if (spec->symbol[0] == '\0' && !find_syscall_entry(symtab, address)) {
			g_set_error(
				error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
				"cannot place %s: the guest's kernel has no function %s; only Linux has system calls that can be probed",
				spec->name, probe_syscall_entries[0]);
			return false;
		}
	}
	*address += spec->offset;
	return true;
}

static bool add_breakpoint(struct probe *probe, uint64_t address, enum guest_breakpoint_kind kind, GError **error)
{
	struct guest *guest = probe->set->hub->guest;

	probe->breakpoint = (struct guest_breakpoint){
		.at = {address}, .what = probe->spec.name, .kind = kind, .hit = probe_event_hit};
	return guest->debug->breakpoint_add(guest, &probe->breakpoint, error);
}

/* Where a patch has another place than a breakpoint of the processor, the latter is tried first. */
static bool place_breakpoint(struct probe *probe, GError **error)
{
	struct probe_hub *hub = probe->set->hub;
	enum guest_breakpoint_kind kind = probe->options.breakpoint;
	g_autoptr(GError) taken = NULL;
	uint64_t address;

	if (!load_text(hub, error) || !find_address(hub, &probe->spec, &address, error) ||
	    !probe_text_check(hub->text, hub->guest, probe->spec.name, address, error))
		return false;
	uint64_t patch = probe_text_patch(hub->text, address);
	if (kind == GUEST_BREAKPOINT_PROCESSOR || patch == address)
		return add_breakpoint(probe, address, kind, error);
	if (kind == GUEST_BREAKPOINT_PATCH)
		return add_breakpoint(probe, patch, kind, error);
	if (add_breakpoint(probe, address, GUEST_BREAKPOINT_PROCESSOR, &taken))
		return true;
	if (g_error_matches(taken, GUEST_ERROR, GUEST_ERROR_TAKEN))
		return add_breakpoint(probe, patch, GUEST_BREAKPOINT_ANY, error);
	g_propagate_error(error, g_steal_pointer(&taken));
	return false;
}

static bool place(struct probe *probe, GError **error)
{
	if (probe->spec.provider->trigger == PROBE_BY_BREAKPOINT)
		return place_breakpoint(probe, error);
	return !is_msr_probe(probe) || watch_msrs(probe->set->hub, error);
}

static bool may_change(const struct probe_set *set, GError **error)
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
	if (set->probes->len < PROBES_MAX)
		return true;
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_STATE, "cannot add %s: there are %u probes, the most there can be",
	            name, PROBES_MAX);
	return false;
}

static void fill_info(const struct probe *probe, struct probe_info *info)
{
	struct guest *guest = probe->set->hub->guest;

	*info = (struct probe_info){.id = probe->id,
	                            .spec = &probe->spec,
	                            .options = probe->options,
	                            .events = atomic_load_explicit(&probe->events, memory_order_relaxed),
	                            .intact = true};
	if (probe->spec.provider->trigger != PROBE_BY_BREAKPOINT)
		return;
	info->breakpoint = probe->breakpoint.patched ? GUEST_BREAKPOINT_PATCH : GUEST_BREAKPOINT_PROCESSOR;
	info->intact = guest->debug->breakpoint_intact(guest, &probe->breakpoint);
}

bool probe_set_add(struct probe_set *set, const char *text, const struct probe_options *options,
                   struct probe_info *info, GError **error)
{
	struct probe_spec spec;

	if (!may_change(set, error) || !probe_spec_parse(text, &spec, error) || !is_new(set, spec.name, error))
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
	set->last_id = probe->id;
	fill_info(probe, info);
	return true;
}

/* Removes it from the guest and the set. */
static void drop(struct probe_set *set, struct probe *probe)
{
	struct guest *guest = set->hub->guest;
	bool msr = is_msr_probe(probe);

	if (probe->spec.provider->trigger == PROBE_BY_BREAKPOINT)
		guest->debug->breakpoint_remove(guest, &probe->breakpoint);
	g_ptr_array_remove(set->probes, probe);
	if (msr)
		watch_msrs(set->hub, NULL); /* fewer ranges than were there before */
}

bool probe_set_remove(struct probe_set *set, unsigned id, GError **error)
{
	if (!may_change(set, error))
		return false;
	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		if (probe->id != id)
			continue;
		drop(set, probe);
		return true;
	}
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN, "there is no probe with id %u", id);
	return false;
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
};

static void start_on_vcpu(void *data)
{
	const struct vcpu_call *call = data;
	struct probe_vcpu *cpu = &call->set->vcpus[call->vcpu];

	cpu->ring = call->set->rings[call->vcpu];
	cpu->announcer = (struct announcer){.ring = cpu->ring};
	if (call->set->kernel)
		namer_init(&cpu->namer, call->set->kernel, call->set->claims, &cpu->announcer);
	atomic_store(&cpu->event, 0);
	atomic_store(&cpu->dropevt, 0);
	atomic_store(&cpu->quirk, 0);
	atomic_store(&cpu->no_task, 0);
	cpu->recording = true;
}

static void stop_on_vcpu(void *data)
{
	const struct vcpu_call *call = data;
	struct probe_vcpu *cpu = &call->set->vcpus[call->vcpu];

	if (!cpu->recording)
		return;
	cpu->recording = false;
	probe_event_finish(cpu, call->vcpu);
}

static void free_rings(struct probe_set *set)
{
	for (unsigned i = 0; i < set->hub->guest->vcpus; i++)
		ring_free(g_steal_pointer(&set->rings[i]));
}

static bool make_rings(struct probe_set *set, size_t ring_bytes, GError **error)
{
	free_rings(set);
	for (unsigned i = 0; i < set->hub->guest->vcpus; i++) {
		set->rings[i] = ring_new(ring_bytes ? ring_bytes : VPROF_RING_DATA_BYTES_DEFAULT, error);
		if (!set->rings[i]) {
			free_rings(set);
			return false;
		}
	}
	return true;
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
		if (probe->spec.provider->trigger == PROBE_BY_TIMER)
			probe->timer = probe_timer_start(probe);
	}
}

bool probe_set_record(struct probe_set *set, size_t ring_bytes, GError **error)
{
	struct guest *guest = set->hub->guest;

	if (!may_record(set, error) || !make_rings(set, ring_bytes, error) ||
	    !guest->debug->observer_add(guest, &set->observer, error))
		return false;
	const struct kernel_layout *kernel = session_kernel(set->hub->session);
	set->kernel = kernel->has_tasks ? kernel : NULL;
	memset(set->claims, 0, sizeof(*set->claims));
	set->orc = wants_stack(set) ? session_orc(set->hub->session) : NULL;
	set->skiptick = 0;
	for (unsigned i = 0; i < guest->vcpus; i++) {
		struct vcpu_call call = {set, i};

		guest->ops->run_on_vcpu(guest, i, start_on_vcpu, &call);
	}
	set->recording = true;
	start_probes(set);
	return true;
}

/* When its thread is gone, the state of a vCPU belongs to the main thread. */
void probe_set_pause(struct probe_set *set)
{
	struct guest *guest = set->hub->guest;

	if (!set->recording)
		return;
	for (guint i = 0; i < set->probes->len; i++) {
		struct probe *probe = g_ptr_array_index(set->probes, i);

		probe_timer_stop(g_steal_pointer(&probe->timer));
	}
	for (unsigned i = 0; i < guest->vcpus; i++) {
		struct vcpu_call call = {set, i};

		if (!guest->ops->run_on_vcpu(guest, i, stop_on_vcpu, &call))
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
	free_rings(set);
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
	}
}
