// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a session knows of the guest's kernel: its unwind tables, where it keeps its tasks, mappings, cgroups and
 * modules, and why it does not know them.
 */
#include "sample/session_priv.h"

/* The kernel's ORC tables, once; true without them when it has none and they are not insisted on. */
static bool orc_prepare(struct session *session, const struct image *image, bool required, GError **error)
{
	g_autoptr(GError) failure = NULL;

	if (!session->orc && image)
		session->orc = orc_load(image, &failure);
	g_free(session->orc_why);
	session->orc_why = g_strdup(failure ? failure->message
	                            : image ? NULL
	                                    : "the guest's kernel image is not known");
	if (session->orc || (!required && (!failure || g_error_matches(failure, ORC_ERROR, ORC_ERROR_NONE))))
		return true;
	if (failure)
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
	else
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot unwind by ORC: the guest's kernel image is not known");
	return false;
}

static bool unwind_prepare(struct session *session, const struct session_config *config, const struct image *image,
                           GError **error)
{
	bool frame_pointers = config->call_graph == SESSION_CALL_GRAPH_FP;

	if (!session_config_has_chains(config))
		return true;
	if (!frame_pointers && !orc_prepare(session, image, config->call_graph == SESSION_CALL_GRAPH_ORC, error))
		return false;
	session->unwind = (struct unwind_config){
		.orc = frame_pointers ? NULL : session->orc,
		.user = !config->call_kernel_only,
		.depth = config->call_depth ? config->call_depth : UNWIND_DEPTH_DEFAULT,
	};
	return true;
}

static bool wants_orc(const struct session *session, const struct session_config *config)
{
	return !session->orc && session_config_has_chains(config) && config->call_graph != SESSION_CALL_GRAPH_FP;
}

/* With a route also for the sake of the stacks that it copies. */
static bool wants_layout(const struct session *session, const struct session_config *config)
{
	return !session->kernel && (!config->no_tasks || (session->route && session_config_has_chains(config)));
}

/* Where the kernel has its tasks, once. A guest without gets its profile all the same. */
static void layout_prepare(struct session *session, const struct image *image, const GError *failure)
{
	if (image)
		session->kernel = kernel_layout_load(image);
	else
		session->kernel =
			kernel_layout_none(failure ? failure->message : "the guest's kernel image is not known");
}

bool session_kernel_prepare(struct session *session, const struct session_config *config, GError **error)
{
	const char *path = session->guest->kernel_path;
	g_autoptr(GError) failure = NULL;
	struct image *image = session->guest->kernel_image, *opened = NULL;

	if (!image && path && (wants_orc(session, config) || wants_layout(session, config)))
		image = opened = image_open(path, &failure);
	if (failure && wants_orc(session, config)) {
		g_propagate_prefixed_error(error, g_steal_pointer(&failure), "cannot unwind by ORC: ");
		return false;
	}
	bool done = unwind_prepare(session, config, image, error);

	if (done && wants_layout(session, config))
		layout_prepare(session, image, failure);
	image_free(opened);
	return done;
}

void session_kernel_forget(struct session *session)
{
	if (session->kernel)
		g_ptr_array_add(session->old_kernels, g_steal_pointer(&session->kernel));
	if (session->orc)
		g_ptr_array_add(session->old_orcs, g_steal_pointer(&session->orc));
	session->claims = (struct task_claims){0};
}

const struct kernel_layout *session_kernel(struct session *session)
{
	const struct session_config tasks_only = {.call_graph = SESSION_CALL_GRAPH_NONE};

	session_kernel_prepare(session, &tasks_only, NULL);
	return session->kernel;
}

const struct orc *session_orc(struct session *session)
{
	const struct guest *guest = session->guest;
	bool opens = !session->orc && !guest->kernel_image && guest->kernel_path;
	struct image *opened = opens ? image_open(guest->kernel_path, NULL) : NULL;

	orc_prepare(session, opened ? opened : guest->kernel_image, false, NULL);
	image_free(opened);
	return session->orc;
}

bool session_kernel_walk(const struct session *session, struct page_walk *walk)
{
	for (unsigned i = 0; i < session->guest->vcpus; i++) {
		uint64_t tables = atomic_load_explicit(&session->samplers[i].page_tables, memory_order_relaxed);

		if (tables == 0)
			continue;
		page_walk_init(walk, session->guest, tables & ~UINT64_C(1), tables & 1);
		return true;
	}
	return false;
}

const char *session_unwinder(const struct session *session)
{
	if (!session_config_has_chains(&session->config))
		return NULL;
	return session->unwind.orc ? "orc" : "fp";
}

const char *session_unwinder_why(const struct session *session)
{
	return session->config.call_graph == SESSION_CALL_GRAPH_AUTO && !session->unwind.orc ? session->orc_why : NULL;
}

bool session_has_tasks(const struct session *session)
{
	return !session->config.no_tasks && session->kernel && session->kernel->has_tasks;
}

const char *session_tasks_why(const struct session *session)
{
	if (session->config.no_tasks)
		return session->config.no_tasks_why;
	return session->kernel ? session->kernel->tasks_why : NULL;
}

const char *session_mappings_why(const struct session *session)
{
	return session->config.no_tasks || !session->kernel ? NULL : session->kernel->mappings_why;
}

const char *session_cgroups_why(const struct session *session)
{
	return session->config.no_tasks || !session->kernel ? NULL : session->kernel->cgroups_why;
}

const char *session_modules_why(const struct session *session)
{
	return session->config.no_tasks || !session->kernel ? NULL : session->kernel->modules_why;
}
