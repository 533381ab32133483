// SPDX-License-Identifier: BSD-2-Clause
/* What a session says of itself. */
#include "sample/session_priv.h"

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

const char *session_event_why(const struct session *session)
{
	return session->event_why;
}

const char *session_delivery(const struct session *session)
{
	const struct session_config *config = session_configuration(session);

	if (!config)
		return NULL;
	return config->route ? config->route : config->delivery;
}

uint64_t session_event_id(unsigned event, unsigned vcpu)
{
	/* Not 0, which perf takes for no id; and the same for every session. */
	return (uint64_t)event * GUEST_VCPUS_MAX + vcpu + 1;
}

struct ring *session_ring(const struct session *session, unsigned vcpu)
{
	return session->rings[vcpu];
}
