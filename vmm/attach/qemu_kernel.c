// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include "attach/guest_memory.h"
#include "attach/kernel_memory.h"
#include "attach/qemu.h"
#include "attach/vcpu_arch.h"
#include "linux/kernel.h"

/* Steps of a search: all of the first ones, then one in so many. */
#define EAGER_TRIES 120u
#define LAZY_TRIES 10u

static void kernel_set(struct qemu_guest *qemu, struct kernel_found *found)
{
	struct guest *guest = &qemu->guest;

	kernel_found_clear(&qemu->kernel);
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

/*
 * Any vCPU will do. One that has not been started yet does not know the kernel, and what it says counts only if no
 * other says more.
 */
static bool kernel_find_by_any(struct qemu_guest *qemu, struct kernel_found *found, GError **error)
{
	struct hmp_registers registers[GUEST_VCPUS_MAX + 1];
	size_t n = qemu->view ? qemu_machine_registers(qemu, registers) : qemu_guest_registers(qemu, registers, error);

	n += vcpu_arch_scan(qemu, &registers[n]);
	g_autoptr(GError) why = NULL;

	for (size_t i = 0; i < n; i++) {
		g_autoptr(GError) own = NULL;

		if (kernel_find(&qemu->guest, &registers[i], qemu->kernel_path, qemu->kernel_file, found, &own))
			return true;
		if (why && g_error_matches(own, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY))
			continue;
		g_clear_error(&why);
		why = g_steal_pointer(&own);
	}
	if (why)
		g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

void qemu_kernel_look(struct qemu_guest *qemu)
{
	struct kernel_found found = {0};
	g_autoptr(GError) why = NULL;

	g_clear_pointer(&qemu->guest.kernel_why, g_free);
	if (!qemu->view && !qemu->monitor)
		qemu->guest.kernel_why = g_strdup_printf("neither KVM nor a monitor says where its memory is: %s; %s",
		                                         qemu->view_why, qemu->monitor_why);
	else if (!qemu->memory)
		qemu->guest.kernel_why = g_strdup(qemu->memory_why);
	else if (kernel_find_by_any(qemu, &found, &why))
		kernel_set(qemu, &found);
	else
		qemu->guest.kernel_why = g_strdup(why->message);
	qemu->kernel_early = g_error_matches(why, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY);
	qemu->kernel_sought = qemu->memory && !qemu->kernel.image;
}

size_t qemu_kernel_registers(struct qemu_guest *qemu, struct hmp_registers registers[GUEST_VCPUS_MAX + 1])
{
	size_t n = 0;

	if (qemu->view)
		n = qemu_machine_registers(qemu, registers);
	else if (qemu->monitor)
		n = qemu_guest_registers(qemu, registers, NULL);
	if (!qemu->scanned)
		return n;
	registers[n] = (struct hmp_registers){.regs = qemu->scanned_regs};
	return n + 1;
}

bool qemu_kernel_tables(struct qemu_guest *qemu, gva_t top, struct page_walk *walk)
{
	struct hmp_registers registers[GUEST_VCPUS_MAX + 1];
	size_t n = qemu_kernel_registers(qemu, registers);

	for (size_t i = 0; i < n; i++)
		if (kernel_tables_open(top, &qemu->guest, &registers[i].regs, walk))
			return true;
	return false;
}

/*
 * A reset of a guest without libvirt, and a kernel that starts another one by kexec, show in memory alone. What has no
 * build-id, or no vCPU of which the page tables are known, is taken to be there still.
 */
static bool kernel_has_gone(struct qemu_guest *qemu)
{
	struct hmp_registers registers[GUEST_VCPUS_MAX];
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

/* Where its first segment is in the guest. */
static uint64_t kernel_address(const struct image *image)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	return n > 0 ? segments[0].gva : 0;
}

struct image *qemu_kernel_running(struct qemu_guest *qemu)
{
	struct hmp_registers registers[GUEST_VCPUS_MAX + 1];
	struct image *image = NULL;
	struct page_walk walk;
	int fd;

	if (!qemu->kernel_path || !qemu->kernel.image)
		return NULL;
	size_t n = qemu_kernel_registers(qemu, registers);

	for (size_t i = 0; i < n && !image; i++) {
		page_walk_init_regs(&walk, &qemu->guest, &registers[i].regs);
		image = kernel_memory_image(&walk, kernel_address(qemu->kernel.image), "[guest memory]", &fd, NULL);
	}
	if (image)
		close(fd);
	return image;
}

static bool same_kernel(const struct kernel_found *one, const struct kernel_found *other)
{
	g_autofree char *id = one->image ? image_build_id_text(one->image) : NULL;
	g_autofree char *other_id = image_build_id_text(other->image);

	return one->image && kernel_address(one->image) == kernel_address(other->image) && g_strcmp0(id, other_id) == 0;
}

static void kernel_exchange(struct qemu_guest *qemu, struct kernel_found *found)
{
	struct guest *guest = &qemu->guest;

	guest->on_changing(guest, guest->listener_data);
	kernel_set(qemu, found);
	g_clear_pointer(&guest->kernel_why, g_free);
	guest->on_changed(guest, true, guest->listener_data);
}

/* It takes a while to boot, and one that never comes is not worth asking for every time. */
static bool is_due(struct qemu_guest *qemu)
{
	unsigned n = qemu->kernel_tries++;

	return n < EAGER_TRIES || n % LAZY_TRIES == 0;
}

void qemu_kernel_follow(struct qemu_guest *qemu)
{
	struct kernel_found found = {0};

	qemu->kernel_sought |= kernel_has_gone(qemu);
	if (!qemu->kernel_sought || !qemu_guest_runs(qemu) || !is_due(qemu))
		return;
	if (qemu_guest_monitor(qemu)) /* the old map stays if there is no new one */
		guest_memory_map(qemu->memory, qemu->monitor, NULL);
	if (!kernel_find_by_any(qemu, &found, NULL))
		return;
	qemu->kernel_sought = false;
	qemu->kernel_tries = 0;
	if (same_kernel(&qemu->kernel, &found))
		kernel_found_clear(&found);
	else
		kernel_exchange(qemu, &found);
}
