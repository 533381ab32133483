// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_kernel.h"

#include <malloc.h>

#include "guest/os.h"
#include "guest/processor.h"

#define NO_ORC "cannot unwind by ORC: "

void session_kernel_init(struct session_kernel *kernel, struct guest *guest)
{
	*kernel = (struct session_kernel){
		.guest = guest,
		.os = guest->systems[0],
		.old = g_ptr_array_new_with_free_func((GDestroyNotify)os_parts_free),
	};
}

void session_kernel_deinit(struct session_kernel *kernel)
{
	session_kernel_forget(kernel);
	g_ptr_array_unref(kernel->old);
	user_text_free(kernel->text);
	g_free(kernel->orc_why);
}

/* Before anything of the kernel is loaded. */
static void os_settle(struct session_kernel *kernel, const struct image *image)
{
	if (!kernel->orc && !kernel->sites && !kernel->layout)
		kernel->os = os_of_image(kernel->guest->systems, image);
}

bool session_kernel_may_have_tables(const struct session_kernel *kernel)
{
	const struct os_unwinding *unwinding = kernel->os->unwinding;

	return unwinding && unwinding->has_tables[processor_of(kernel->guest->processor)->arch];
}

/*
 * Loads the kernel's ORC tables once. Without tables, frame pointers do unless ORC is required: a guest decides what is
 * in its tables, and is sampled all the same. `failure`: why there is no image; NULL.
 */
static bool orc_prepare(struct session_kernel *kernel, const struct image *image, const GError *failure, bool required,
                        GError **error)
{
	struct os_parts *parts = kernel->guest->kernel_parts;
	g_autoptr(GError) cause = failure ? g_error_copy(failure) : NULL;

	g_clear_pointer(&kernel->orc_why, g_free);
	/* Frame pointers are all that there is. */
	if (image && !session_kernel_may_have_tables(kernel) && !required)
		return true;
	if (!kernel->orc && parts && (parts->tables || parts->tables_why)) {
		kernel->orc = g_steal_pointer(&parts->tables);
		cause = parts->tables_why ? g_error_copy(parts->tables_why) : NULL;
	} else if (!kernel->orc && image && kernel->os->unwinding) {
		kernel->orc = kernel->os->unwinding->load(image, &cause);
	} else if (!kernel->orc && image) {
		g_set_error(&cause, UNWIND_ERROR, UNWIND_ERROR_NONE, "%s has none", kernel->os->name);
	}
	if (kernel->orc)
		return true;
	if (!cause)
		g_set_error_literal(&cause, SESSION_ERROR, SESSION_ERROR_RANGE,
		                    "the guest's kernel image is not known");
	else if (!g_error_matches(cause, UNWIND_ERROR, UNWIND_ERROR_NONE))
		kernel->orc_why = g_strdup(cause->message);
	if (required)
		g_propagate_prefixed_error(error, g_steal_pointer(&cause), NO_ORC);
	return !required;
}

/* For samples without a stack pointer, as this route may have them: what it is found by. */
static void search_prepare(struct session_kernel *kernel, const struct counter_route *route)
{
	struct os_parts *parts = kernel->guest->kernel_parts;

	if (!route || !route->lacks_stack || !route->lacks_stack(kernel->guest))
		return;
	if (!kernel->text)
		kernel->text = user_text_new();
	if (!kernel->sites && kernel->orc && parts)
		kernel->sites = g_steal_pointer(&parts->sites);
}

static bool unwind_prepare(struct session_kernel *kernel, const struct session_config *config,
                           const struct counter_route *route, const struct image *image, const GError *failure,
                           struct unwind_config *unwind, GError **error)
{
	bool frame_pointers = config->call_graph == SESSION_CALL_GRAPH_FP;

	os_settle(kernel, image);
	if (!session_config_has_chains(config))
		return true;
	if (!frame_pointers &&
	    !orc_prepare(kernel, image, failure, config->call_graph == SESSION_CALL_GRAPH_ORC, error))
		return false;
	if (!frame_pointers)
		search_prepare(kernel, route);
	*unwind = (struct unwind_config){
		.system = kernel->os->unwinding,
		.tables = frame_pointers ? NULL : kernel->orc,
		.sites = frame_pointers ? NULL : kernel->sites,
		.text = kernel->text,
		.user = !config->call_kernel_only,
		.depth = config->call_depth ? config->call_depth : UNWIND_DEPTH_DEFAULT,
	};
	return true;
}

static bool wants_orc(const struct session_kernel *kernel, const struct session_config *config)
{
	return !kernel->orc && session_config_has_chains(config) && config->call_graph != SESSION_CALL_GRAPH_FP;
}

/* A route needs the layout also for the stacks that it copies. */
static bool wants_layout(const struct session_kernel *kernel, const struct session_config *config,
                         const struct counter_route *route)
{
	return !kernel->layout && (!config->no_tasks || (route && session_config_has_chains(config)));
}

/* Finds out once where the kernel has its tasks. A guest without them is profiled all the same. */
static void layout_prepare(struct session_kernel *kernel, const struct image *image, const GError *failure)
{
	struct os_parts *parts = kernel->guest->kernel_parts;

	if (parts && parts->kernel)
		kernel->layout = g_steal_pointer(&parts->kernel);
	else if (image)
		kernel->layout = kernel->os->load(image);
	else
		kernel->layout = kernel->os->none(failure ? failure->message : "the guest's kernel image is not known");
}

/* What was needed to load tables from the image is many times as large as they are, and not needed again soon. */
static void memory_return(struct guest *guest)
{
	if (guest->kernel_image) {
		image_rest(guest->kernel_image);
		if (guest->ops->kernel_used)
			guest->ops->kernel_used(guest, GUEST_KERNEL_LOADED);
	}
	malloc_trim(0);
}

bool session_kernel_prepare(struct session_kernel *kernel, const struct session_config *config,
                            const struct counter_route *route, GError **error)
{
	const char *path = kernel->guest->kernel_path;
	g_autoptr(GError) failure = NULL;
	struct image *image = kernel->guest->kernel_image, *opened = NULL;

	if (!image && path && (wants_orc(kernel, config) || wants_layout(kernel, config, route)))
		image = opened = guest_image_open(kernel->guest, &failure);
	const bool loads = wants_orc(kernel, config) || wants_layout(kernel, config, route);
	bool done = unwind_prepare(kernel, config, route, image, failure, &kernel->unwind, error);

	if (done && wants_layout(kernel, config, route))
		layout_prepare(kernel, image, failure);
	if (kernel->layout)
		kernel->unwind.entry_record = kernel->layout->entry_record;
	image_free(opened);
	if (loads)
		memory_return(kernel->guest);
	return done;
}

bool session_kernel_unwind(struct session_kernel *kernel, const struct session_config *config,
                           struct unwind_config *unwind, GError **error)
{
	const struct guest *guest = kernel->guest;
	g_autoptr(GError) failure = NULL;
	struct image *opened = NULL;

	if (wants_orc(kernel, config) && !guest->kernel_image && guest->kernel_path)
		opened = guest_image_open(guest, &failure);
	bool done = unwind_prepare(kernel, config, NULL, opened ? opened : guest->kernel_image, failure, unwind, error);

	image_free(opened);
	return done;
}

void session_kernel_forget(struct session_kernel *kernel)
{
	const struct os_parts old = {.os = kernel->os,
	                             .kernel = g_steal_pointer(&kernel->layout),
	                             .tables = g_steal_pointer(&kernel->orc),
	                             .sites = g_steal_pointer(&kernel->sites)};

	if (old.kernel || old.tables || old.sites)
		g_ptr_array_add(kernel->old, g_memdup2(&old, sizeof(old)));
}

struct unwind_config session_kernel_unwinding(struct session_kernel *kernel)
{
	const struct guest *guest = kernel->guest;
	bool opens = !kernel->orc && !guest->kernel_image && guest->kernel_path;
	struct image *opened = opens ? guest_image_open(guest, NULL) : NULL;

	os_settle(kernel, opened ? opened : guest->kernel_image);
	orc_prepare(kernel, opened ? opened : guest->kernel_image, NULL, false, NULL);
	image_free(opened);
	return (struct unwind_config){.system = kernel->os->unwinding,
	                              .tables = kernel->orc,
	                              .depth = UNWIND_DEPTH_DEFAULT,
	                              .entry_record = kernel->layout ? kernel->layout->entry_record : 0};
}

struct tables_look {
	const struct os_kernel *layout;
	struct guest *guest;
	struct page_walk walk;
	bool found;
};

/* The tables of a process will do where a kernel does not say where its own are. */
static void tables_look(void *data, const struct guest_vcpu *vcpu)
{
	struct tables_look *look = data;
	const struct os_kernel *layout = look->layout;
	struct guest_regs regs = vcpu->regs;

	if (look->found)
		return;
	look->found = page_walk_init_kernel(&look->walk, layout->page_tables, look->guest, &vcpu->regs);
	if (look->found || layout->page_tables.value != 0 || !layout->list)
		return;
	processor_of(regs.processor)->memory->kernels(look->guest, layout->page_tables.value, &regs);
	page_walk_init_regs(&look->walk, look->guest, &regs);
	look->found = layout->list->is_there(layout, &look->walk);
}

bool session_kernel_tables(const struct os_kernel *layout, struct guest *guest, struct page_walk *walk)
{
	struct tables_look look = {.layout = layout, .guest = guest};

	if (layout && guest->ops->vcpus_look)
		guest->ops->vcpus_look(guest, tables_look, &look);
	if (look.found)
		*walk = look.walk;
	return look.found;
}
