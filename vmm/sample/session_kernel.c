// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_kernel.h"

void session_kernel_init(struct session_kernel *kernel, struct guest *guest)
{
	*kernel = (struct session_kernel){
		.guest = guest,
		.old_layouts = g_ptr_array_new_with_free_func((GDestroyNotify)kernel_layout_free),
		.old_orcs = g_ptr_array_new_with_free_func((GDestroyNotify)orc_free),
	};
}

void session_kernel_deinit(struct session_kernel *kernel)
{
	g_ptr_array_unref(kernel->old_layouts);
	g_ptr_array_unref(kernel->old_orcs);
	orc_free(kernel->orc);
	g_free(kernel->orc_why);
	kernel_layout_free(kernel->layout);
}

/* Loads the kernel's ORC tables once; true without them if it has none and they are not required. */
static bool orc_prepare(struct session_kernel *kernel, const struct image *image, bool required, GError **error)
{
	g_autoptr(GError) failure = NULL;

	if (!kernel->orc && image)
		kernel->orc = orc_load(image, &failure);
	g_free(kernel->orc_why);
	kernel->orc_why = g_strdup(failure ? failure->message : image ? NULL : "the guest's kernel image is not known");
	if (kernel->orc || (!required && (!failure || g_error_matches(failure, ORC_ERROR, ORC_ERROR_NONE))))
		return true;
	if (failure)
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
	else
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot unwind by ORC: the guest's kernel image is not known");
	return false;
}

static bool unwind_prepare(struct session_kernel *kernel, const struct session_config *config,
                           const struct image *image, GError **error)
{
	bool frame_pointers = config->call_graph == SESSION_CALL_GRAPH_FP;

	if (!session_config_has_chains(config))
		return true;
	if (!frame_pointers && !orc_prepare(kernel, image, config->call_graph == SESSION_CALL_GRAPH_ORC, error))
		return false;
	kernel->unwind = (struct unwind_config){
		.orc = frame_pointers ? NULL : kernel->orc,
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
static bool wants_layout(const struct session_kernel *kernel, const struct session_config *config, bool by_route)
{
	return !kernel->layout && (!config->no_tasks || (by_route && session_config_has_chains(config)));
}

/* Finds out once where the kernel has its tasks. A guest without them is profiled all the same. */
static void layout_prepare(struct session_kernel *kernel, const struct image *image, const GError *failure)
{
	if (image)
		kernel->layout = kernel_layout_load(image);
	else
		kernel->layout =
			kernel_layout_none(failure ? failure->message : "the guest's kernel image is not known");
}

bool session_kernel_prepare(struct session_kernel *kernel, const struct session_config *config, bool by_route,
                            GError **error)
{
	const char *path = kernel->guest->kernel_path;
	g_autoptr(GError) failure = NULL;
	struct image *image = kernel->guest->kernel_image, *opened = NULL;

	if (!image && path && (wants_orc(kernel, config) || wants_layout(kernel, config, by_route)))
		image = opened = image_open(path, &failure);
	if (failure && wants_orc(kernel, config)) {
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
		return false;
	}
	bool done = unwind_prepare(kernel, config, image, error);

	if (done && wants_layout(kernel, config, by_route))
		layout_prepare(kernel, image, failure);
	image_free(opened);
	return done;
}

void session_kernel_forget(struct session_kernel *kernel)
{
	if (kernel->layout)
		g_ptr_array_add(kernel->old_layouts, g_steal_pointer(&kernel->layout));
	if (kernel->orc)
		g_ptr_array_add(kernel->old_orcs, g_steal_pointer(&kernel->orc));
}

const struct orc *session_kernel_orc(struct session_kernel *kernel)
{
	const struct guest *guest = kernel->guest;
	bool opens = !kernel->orc && !guest->kernel_image && guest->kernel_path;
	struct image *opened = opens ? image_open(guest->kernel_path, NULL) : NULL;

	orc_prepare(kernel, opened ? opened : guest->kernel_image, false, NULL);
	image_free(opened);
	return kernel->orc;
}
