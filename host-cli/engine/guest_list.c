// SPDX-License-Identifier: BSD-2-Clause
#include "engine/guest_list.h"

#include <string.h>

#include "lib/process/kvm_process.h"
#include "lib/process/vmm_name.h"
#include "ui/message.h"
#include "ui/text.h"

#define PROC "/proc"

/* ---- libvirt's domains ---- */

json_t *guest_list_domains(const struct attach_engine_options *options, GError **error)
{
	const struct attach_engine_options libvirt = {.connect = options->connect};
	g_autofree char *said = NULL;
	g_autoptr(GError) why = NULL;
	json_t *domains = attach_engine_ask(&libvirt, NULL, &said, &why), *domain;
	size_t i;

	json_array_foreach(domains, i, domain)
		json_object_set_new(domain, "vmm", json_string(GUEST_LIST_DOMAINS_VMM));
	if (domains)
		return domains;
	if (options->connect) {
		g_set_error_literal(error, why->domain, why->code, said ? said : why->message);
		return NULL;
	}
	if (options->verbose)
		say("libvirt's domains are not known: %s", said ? said : why->message);
	return json_array();
}

/* ---- processes ---- */

/* "vm7", or "cloud-hypervisor-4711" for one without a name. New string. */
static char *guest_name(const struct vmm_name *vmm, pid_t pid)
{
	g_autofree char *lower = NULL;

	if (vmm->guest)
		return g_strdup(vmm->guest);
	lower = g_strdelimit(g_ascii_strdown(vmm->vmm, -1), " ", '-');
	return g_strdup_printf("%s-%d", lower, (int)pid);
}

/* The guest that has this value in a member; NULL: none has. */
static json_t *guest_with(const json_t *guests, const char *member, const char *value)
{
	json_t *guest;
	size_t i;

	json_array_foreach(guests, i, guest)
		if (value && g_strcmp0(member_text(guest, member), value) == 0)
			return guest;
	return NULL;
}

static void process_add(json_t *guests, const struct kvm_process *process)
{
	struct vmm_name vmm = vmm_name_read(PROC, process->pid);
	json_t *guest = strcmp(vmm.vmm, GUEST_LIST_DOMAINS_VMM) == 0 ? guest_with(guests, "uuid", vmm.uuid) : NULL;

	if (guest) {
		json_object_set_new(guest, "pid", json_integer(process->pid));
	} else {
		g_autofree char *name = guest_name(&vmm, process->pid);
		g_autofree char *unique = guest_with(guests, "name", name)
		                                  ? g_strdup_printf("%s-%d", name, (int)process->pid)
		                                  : g_strdup(name);

		json_array_append_new(guests, json_pack("{s:o, s:o, s:i, s:i}", "name", text_json(unique), "vmm",
		                                        text_json(vmm.vmm), "pid", (int)process->pid, "vcpus",
		                                        (int)process->n_vcpus));
	}
	vmm_name_clear(&vmm);
}

GArray *guest_list_processes(unsigned *denied)
{
	return kvm_process_list(PROC, denied);
}

json_t *guest_list_join(const json_t *domains, const GArray *processes)
{
	json_t *guests = domains ? json_deep_copy(domains) : json_array();

	for (guint i = 0; i < processes->len; i++)
		process_add(guests, &g_array_index(processes, struct kvm_process, i));
	return guests;
}

json_t *guest_list(const struct attach_engine_options *options, unsigned *denied, GError **error)
{
	json_t *domains = guest_list_domains(options, error), *guests;

	if (denied)
		*denied = 0;
	if (!domains || options->connect)
		return domains;
	g_autoptr(GArray) processes = guest_list_processes(denied);

	guests = guest_list_join(domains, processes);
	json_decref(domains);
	return guests;
}

/* ---- one of them ---- */

struct attach_engine_options guest_options(const struct attach_engine_options *options, const json_t *guest,
                                           const char **domain)
{
	struct attach_engine_options one = *options;

	*domain = member_text(guest, "uuid");
	one.pid = *domain ? 0 : member_number(guest, "pid", 0);
	return one;
}

/* The process id of the guest of that name; 0 for a domain, or if there is none. */
static uint64_t process_named(const json_t *guests, const char *name)
{
	const json_t *guest = guest_with(guests, "name", name);

	return member_text(guest, "uuid") ? 0 : member_number(guest, "pid", 0);
}

void guest_resolve(struct attach_engine_options *options, const char **name)
{
	if (options->connect || options->pid != 0)
		return;
	g_autoptr(GArray) processes = guest_list_processes(NULL);
	json_t *guests = guest_list_join(NULL, processes);

	/* libvirt's are processes with names as well: it is asked only if there is one. */
	if (process_named(guests, *name) != 0) {
		json_t *domains = guest_list_domains(options, NULL);

		json_decref(guests);
		guests = guest_list_join(domains, processes);
		json_decref(domains);
		options->pid = process_named(guests, *name);
	}
	if (options->pid != 0)
		*name = NULL;
	json_decref(guests);
}

void guest_probe(const struct attach_engine_options *options, json_t *guest)
{
	const char *domain;
	const struct attach_engine_options one = guest_options(options, guest, &domain);
	g_autofree char *said = NULL;
	g_autoptr(GError) error = NULL;
	json_t *probe = attach_engine_ask(&one, domain, &said, &error);

	if (probe)
		json_object_update_missing(guest, probe);
	else
		json_object_set_new(guest, "why", text_json(said ? said : error->message));
	json_decref(probe);
}
