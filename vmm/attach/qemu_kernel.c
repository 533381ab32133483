// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <unistd.h>

#include "attach/guest_memory.h"
#include "attach/qemu.h"
#include "attach/vcpu_arch.h"
#include "guest/os.h"

static void kernel_set(struct qemu_guest *qemu, struct kernel_found *found, struct os_parts *parts)
{
	struct guest *guest = &qemu->guest;

	kernel_found_clear(&qemu->kernel);
	os_parts_free(guest->kernel_parts);
	guest->kernel_parts = parts;
	qemu->kernel = *found;
	guest->kernel_image = found->image;
	guest->kernel_fd = found->fd;
	qemu->kernel_uses = 0;
	g_free(guest->build_id);
	guest->build_id = image_build_id_text(found->image);
	g_free(guest->release);
	guest->release = g_strdup(image_release(found->image));
}

void qemu_kernel_used(struct guest *guest, enum guest_kernel_use use)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;

	qemu->kernel_uses |= use;
	if (!qemu->lean || qemu->kernel_uses != (GUEST_KERNEL_LOADED | GUEST_KERNEL_GIVEN) || guest->kernel_fd < 0)
		return;
	image_forget(guest->kernel_image);
	close(guest->kernel_fd);
	guest->kernel_fd = qemu->kernel.fd = -1;
}

/* ---- a search ---- */

/* Whether a route has samples without a stack pointer, which the sites of calls help to find. */
static bool lacks_stack(struct guest *guest)
{
	for (const struct counter_route *const *route = guest->routes; *route; route++)
		if ((*route)->lacks_stack && (*route)->lacks_stack(guest))
			return true;
	return false;
}

/* One by these registers, of any vCPU. */
static struct kernel_search *search_new(struct qemu_guest *qemu, const struct seen_vcpu *registers, size_t n,
                                        bool parts)
{
	struct kernel_search_config config = {
		.guest = &qemu->guest,
		.registers = registers,
		.n = n,
		.kernel_path = qemu->kernel_path,
		.kernel_file = qemu->kernel_file,
		.parts = parts,
		.sites = parts && lacks_stack(&qemu->guest),
		.scan = qemu->kernel_scan,
	};

	if (qemu->view && vcpu_arch_scans(&qemu->machine, &config.five_levels))
		config.memory = qemu->memory;
	qemu->n_kernel_marks = n;
	for (size_t i = 0; i < n; i++)
		qemu->kernel_marks[i] = kernel_find_mark(&qemu->guest, &registers[i]);
	return kernel_search_new(&config);
}

/* Without a monitor or KVM's view, none: see kernel_why. */
static size_t registers_now(struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX], GError **error)
{
	return qemu->view ? qemu_machine_registers(qemu, registers) : qemu_guest_registers(qemu, registers, error);
}

/* Once, as a guest can go on with it. */
static void say_given_up(struct qemu_guest *qemu, const struct kernel_search_result *result)
{
	if (!result->gave_up || qemu->kernel_given_up)
		return;
	qemu->kernel_given_up = true;
	fprintf(stderr, "vprof-attach: %s: %s\n", qemu->guest.name, result->why->message);
}

/* What it has found; false, and what the next one is to know, when that is nothing. */
static bool search_take(struct qemu_guest *qemu, struct kernel_search *search, struct kernel_found *found,
                        struct os_parts **parts)
{
	struct kernel_search_result *result = kernel_search_result(search);

	qemu->kernel_scan = result->scan;
	qemu->scanned = result->scanned.long_mode;
	qemu->scanned_regs = result->scanned.regs;
	qemu->kernel_early = g_error_matches(result->why, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY);
	*found = result->found;
	result->found = (struct kernel_found){0};
	*parts = g_steal_pointer(&result->parts);
	if (found->image) {
		qemu->kernel_pace = (struct look_pace){0};
		qemu->kernel_given_up = false;
		return true;
	}
	look_pace_failed(&qemu->kernel_pace, g_get_monotonic_time(), result->took_us, qemu->kernel_marks,
	                 qemu->n_kernel_marks, result->scan.from != 0);
	say_given_up(qemu, result);
	if (!qemu->kernel.image) {
		g_free(qemu->guest.kernel_why);
		qemu->guest.kernel_why = g_strdup(result->why->message);
	}
	return false;
}

/* ---- the first one ---- */

/* NULL: none can be made, as kernel_why says. */
static struct kernel_search *first_new(struct qemu_guest *qemu, bool parts)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX];
	g_autoptr(GError) why = NULL;
	size_t n = 0;

	if (!qemu->view && !qemu->monitor)
		qemu->guest.kernel_why = g_strdup_printf("neither KVM nor a monitor says where its memory is: %s; %s",
		                                         qemu->view_why, qemu->monitor_why);
	else if (!qemu->memory)
		qemu->guest.kernel_why = g_strdup(qemu->memory_why);
	else
		n = registers_now(qemu, registers, &why);
	qemu->kernel_sought = qemu->memory != NULL;
	if (why)
		qemu->guest.kernel_why = g_strdup(why->message);
	return qemu->guest.kernel_why ? NULL : search_new(qemu, registers, n, parts);
}

static void first_take(struct qemu_guest *qemu, struct kernel_search *search)
{
	struct os_parts *parts;
	struct kernel_found found;

	if (search_take(qemu, search, &found, &parts)) {
		kernel_set(qemu, &found, parts);
		qemu->kernel_sought = false;
	}
	kernel_search_free(search);
}

void qemu_kernel_look(struct qemu_guest *qemu)
{
	struct kernel_search *search = first_new(qemu, false);

	if (!search)
		return;
	kernel_search_run(search);
	first_take(qemu, search);
}

static gboolean tell_looked(void *data)
{
	struct qemu_guest *qemu = data;
	void (*looked)(void *) = qemu->looked;

	qemu->looked_source = 0;
	qemu->looked = NULL;
	looked(qemu->looked_data);
	return G_SOURCE_REMOVE;
}

static void on_first(void *data)
{
	struct qemu_guest *qemu = data;

	first_take(qemu, g_steal_pointer(&qemu->kernel_search));
	tell_looked(qemu);
}

void qemu_kernel_begin(struct qemu_guest *qemu, void (*looked)(void *data), void *data)
{
	qemu->looked = looked;
	qemu->looked_data = data;
	qemu->kernel_search = first_new(qemu, true);
	if (qemu->kernel_search)
		kernel_search_begin(qemu->kernel_search, on_first, qemu);
	else
		qemu->looked_source = g_idle_add(tell_looked, qemu);
}

void qemu_kernel_end(struct qemu_guest *qemu)
{
	kernel_search_free(g_steal_pointer(&qemu->kernel_search));
	g_clear_handle_id(&qemu->looked_source, g_source_remove);
}

/* ---- its page tables ---- */

size_t qemu_kernel_registers(struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX + 1])
{
	size_t n = 0;

	if (qemu->view)
		n = qemu_machine_registers(qemu, registers);
	else if (qemu->monitor)
		n = qemu_guest_registers(qemu, registers, NULL);
	if (!qemu->scanned)
		return n;
	registers[n] = (struct seen_vcpu){.regs = qemu->scanned_regs};
	return n + 1;
}

bool qemu_kernel_tables(struct qemu_guest *qemu, gva_t top, struct page_walk *walk)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX + 1];
	size_t n = qemu_kernel_registers(qemu, registers);

	for (size_t i = 0; i < n; i++)
		if (page_walk_init_kernel(walk, top, &qemu->guest, &registers[i].regs))
			return true;
	return false;
}

/*
 * A reset of a guest without libvirt, and a kernel that starts another one by kexec, show in memory alone. What has no
 * build-id, or no vCPU of which the page tables are known, is taken to be there still.
 */
static bool kernel_has_gone(struct qemu_guest *qemu)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX];
	size_t n = qemu->view ? qemu_machine_registers(qemu, registers) : 0, n_known = 0;

	if (!qemu->kernel.image || !qemu->guest.build_id || qemu->domain)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!vcpu_arch_current(&qemu->machine.vcpus[i]))
			continue;
		if (kernel_find_again(&qemu->guest, &registers[i], &qemu->kernel))
			return false;
		n_known++;
	}
	return n_known > 0;
}

static bool same_kernel(const struct kernel_found *one, const struct kernel_found *other)
{
	g_autofree char *id = one->image ? image_build_id_text(one->image) : NULL;
	g_autofree char *other_id = image_build_id_text(other->image);

	return one->image && kernel_find_address(one->image) == kernel_find_address(other->image) &&
	       g_strcmp0(id, other_id) == 0;
}

static void kernel_exchange(struct qemu_guest *qemu, struct kernel_found *found, struct os_parts *parts)
{
	struct guest *guest = &qemu->guest;

	guest->on_changing(guest, guest->listener_data);
	kernel_set(qemu, found, parts);
	g_clear_pointer(&guest->kernel_why, g_free);
	guest->on_changed(guest, true, guest->listener_data);
}

static void on_found(void *data)
{
	struct qemu_guest *qemu = data;
	struct kernel_search *search = g_steal_pointer(&qemu->kernel_search);
	struct os_parts *parts;
	struct kernel_found found;
	const bool done = search_take(qemu, search, &found, &parts);

	kernel_search_free(search);
	if (!done)
		return;
	qemu->kernel_sought = qemu->kernel_again; /* what was found may be what was there before */
	qemu->kernel_again = false;
	if (qemu->guest.state != GUEST_ENDED && !same_kernel(&qemu->kernel, &found)) {
		kernel_exchange(qemu, &found, parts);
		return;
	}
	kernel_found_clear(&found);
	os_parts_free(parts);
}

void qemu_kernel_seek(struct qemu_guest *qemu)
{
	qemu->kernel_sought = true;
	qemu->kernel_again = qemu->kernel_search != NULL;
	look_pace_news(&qemu->kernel_pace);
}

/* Whether it is worth a search, by these registers: it may take a while to boot, or be no Linux. */
static bool is_due(struct qemu_guest *qemu, const struct seen_vcpu *registers, size_t n)
{
	uint64_t marks[GUEST_VCPUS_MAX];

	for (size_t i = 0; i < n; i++)
		marks[i] = kernel_find_mark(&qemu->guest, &registers[i]);
	return look_pace_due(&qemu->kernel_pace, g_get_monotonic_time(), marks, n);
}

void qemu_kernel_follow(struct qemu_guest *qemu)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX];

	if (qemu->kernel_search)
		return;
	qemu->kernel_sought |= kernel_has_gone(qemu);
	if (!qemu->kernel_sought || !qemu_guest_runs(qemu))
		return;
	const size_t n = registers_now(qemu, registers, NULL);

	if (!is_due(qemu, registers, n))
		return;
	if (qemu_guest_monitor(qemu)) /* the old map stays if there is no new one */
		guest_memory_map(qemu->memory, qemu->monitor, NULL);
	qemu->kernel_search = search_new(qemu, registers, n, true);
	kernel_search_begin(qemu->kernel_search, on_found, qemu);
}
