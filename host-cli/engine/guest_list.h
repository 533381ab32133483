// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guests of this host that can be attached to: libvirt's domains, and processes that have vCPUs of KVM. Each is an
 * object with "name", which no other one has, "vmm", "vcpus", and
 *  - of a domain: "uuid" and what else `vprof-attach --list` prints;
 *  - of a process of this host: "pid".
 */
#ifndef VPROF_CLI_ENGINE_GUEST_LIST_H
#define VPROF_CLI_ENGINE_GUEST_LIST_H

#include <glib.h>
#include <jansson.h>

#include "engine/attach_engine.h"

#define GUEST_LIST_DOMAINS_VMM "QEMU" /* vprof-attach asks libvirt for domains of this one only */

/*
 * All of them, with options->connect the domains of that libvirt only; new reference. Where libvirt is not named and
 * does not answer, its guests are listed as processes. *denied: how many processes of other users could not be looked
 * into; may be NULL.
 */
json_t *guest_list(const struct attach_engine_options *options, unsigned *denied, GError **error);

/* The parts of it: domains; processes, as kvm_process_list finds them; and both (domains may be NULL; borrowed). */
json_t *guest_list_domains(const struct attach_engine_options *options, GError **error);
GArray *guest_list_processes(unsigned *denied);
json_t *guest_list_join(const json_t *domains, const GArray *processes);

/*
 * A guest is also named by *name as listed, unless options->connect or options->pid (then *name may be NULL) says
 * otherwise: if it is a process that is no domain, options->pid becomes its, and *name NULL. Other names, also unknown
 * ones, are for libvirt.
 */
void guest_resolve(struct attach_engine_options *options, const char **name);

/* Adds to a guest what `vprof-attach --probe` finds out, or "why" it cannot be attached to. */
void guest_probe(const struct attach_engine_options *options, json_t *guest);

/* The options that lead to this guest; *domain: NULL if options.pid does. Both borrow from `guest` and `options`. */
struct attach_engine_options guest_options(const struct attach_engine_options *options, const json_t *guest,
                                           const char **domain);

#endif
