// SPDX-License-Identifier: BSD-2-Clause
/* In place of domain.c where libvirt was not there to build with. */
#include "attach/domain.h"

G_DEFINE_QUARK(vprof_domain_error, domain_error)

static void *absent(GError **error)
{
	g_set_error_literal(
		error, DOMAIN_ERROR, DOMAIN_ERROR_ABSENT,
		"this vprof-attach was built without libvirt; build it with libvirt-dev, or attach by --pid PID --qmp SOCKET");
	return NULL;
}

struct domain *domain_open(const char *uri G_GNUC_UNUSED, const char *name G_GNUC_UNUSED, bool monitor G_GNUC_UNUSED,
                           domain_event event G_GNUC_UNUSED, void *data G_GNUC_UNUSED, GError **error)
{
	return absent(error);
}

void domain_close(struct domain *domain G_GNUC_UNUSED)
{
}

const char *domain_name(const struct domain *domain G_GNUC_UNUSED)
{
	return NULL;
}

const char *domain_uuid(const struct domain *domain G_GNUC_UNUSED)
{
	return NULL;
}

const char *domain_type(const struct domain *domain G_GNUC_UNUSED)
{
	return NULL;
}

const char *domain_security(const struct domain *domain G_GNUC_UNUSED)
{
	return NULL;
}

uint32_t domain_vsock_cid(const struct domain *domain G_GNUC_UNUSED)
{
	return 0;
}

unsigned domain_vcpus_max(const struct domain *domain G_GNUC_UNUSED)
{
	return 0;
}

struct monitor *domain_monitor(struct domain *domain G_GNUC_UNUSED)
{
	return NULL;
}

json_t *domain_list(const char *uri G_GNUC_UNUSED, GError **error)
{
	return absent(error);
}

bool domain_list_follow(const char *uri G_GNUC_UNUSED, int fd G_GNUC_UNUSED, domain_list_take *take G_GNUC_UNUSED,
                        void *data G_GNUC_UNUSED, GError **error)
{
	return absent(error) != NULL;
}
