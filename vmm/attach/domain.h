// SPDX-License-Identifier: BSD-2-Clause
/* libvirt's domains: finding one, its monitor, and what happens to it. Without libvirt every call says so. */
#ifndef VPROF_ATTACH_DOMAIN_H
#define VPROF_ATTACH_DOMAIN_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach/monitor.h"

#define DOMAIN_ERROR domain_error_quark()
GQuark domain_error_quark(void);
enum domain_error {
	DOMAIN_ERROR_CONNECT, /* no libvirt there, or not for us */
	DOMAIN_ERROR_NAME,    /* no such domain */
	DOMAIN_ERROR_STATE,   /* it does not run */
	DOMAIN_ERROR_LIBVIRT, /* another answer of libvirt's */
	DOMAIN_ERROR_ABSENT,  /* built without libvirt, or its library is missing */
};

/*
 * What libvirt tells about a domain, in one word of its own ("started", "suspended", "reset", "shutdown", ...);
 * "reconnected" when it could not tell for a while, because libvirtd was away.
 */
typedef void (*domain_event)(const char *what, void *data);

struct domain;

/*
 * `name`: a name, UUID or id; `uri`: a libvirt URI, or NULL for libvirt's own choice; `monitor`: whether its monitor is
 * wanted, for which libvirt asks more than for looking on. `event` is called from the default GMainContext. Errors:
 * DOMAIN_ERROR.
 */
struct domain *domain_open(const char *uri, const char *name, bool monitor, domain_event event, void *data,
                           GError **error);
void domain_close(struct domain *domain);

const char *domain_name(const struct domain *domain);
const char *domain_uuid(const struct domain *domain);
/* "kvm", "qemu": the type in its XML. */
const char *domain_type(const struct domain *domain);
/* "sev", "tdx", ...: how its memory is encrypted, as its XML says; NULL: it is not. */
const char *domain_security(const struct domain *domain);
/* The address of its vsock device; 0: it has none. */
uint32_t domain_vsock_cid(const struct domain *domain);
/* How many vCPUs it can have; 0: not known. */
unsigned domain_vcpus_max(const struct domain *domain);

/*
 * Its monitor, which is the domain's and lives as long. Commands mark the domain as tainted ("custom-monitor"), and
 * fail while libvirtd is away.
 */
struct monitor *domain_monitor(struct domain *domain);

/* An array of {"id", "name", "uuid", "state", "type", "vcpus", "memory-bytes"}, active domains only unless `all`. */
json_t *domain_list(const char *uri, GError **error);

/* Takes a list, which it frees; false ends it. */
typedef bool domain_list_take(json_t *list, void *data);
/*
 * The list at first, after each event of a domain's life, and whenever something can be read from `fd`; returns at the
 * end of that file. Runs the default main context. False and an error: libvirt has gone away, or was not there.
 */
bool domain_list_follow(const char *uri, int fd, domain_list_take *take, void *data, GError **error);

#endif
