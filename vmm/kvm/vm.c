// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vm.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kvm/boot/boot.h"
#include "kvm/boot/command_line.h"
#include "kvm/device/virtio_console.h"
#include "kvm/host/cpuid.h"
#include "kvm/vcpu/vcpu_pmu.h"
#include "kvm/vcpu/vcpu_run.h"
#include "kvm/vm_parts.h"
#include "kvm/vm_pmu.h"

/* Three pages for VMX's real mode and one for its identity map, in the hole, below the firmware's place. */
#define TSS_GPA 0xfffbd000ul
#define IDENTITY_MAP_GPA UINT64_C(0xfffbc000)

static bool fail(GError **error, const char *what)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot %s: %s", what, g_strerror(errno));
	return false;
}

static bool vm_start(struct guest *guest, GError **error)
{
	struct vm *vm = vm_of(guest);

	if (guest->state != GUEST_CREATED) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot start guest %s: it has been started already",
		            guest->name);
		return false;
	}
	guest->state = GUEST_RUNNING;
	vm_limit_duration(vm, vm->duration_s);
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++)
		vcpu_go(&vm->machine.vcpus[i]);
	return true;
}

static void vm_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	vm_end(vm_of(guest), reason, 0, g_strdup(message));
}

static bool vm_run_on_vcpu(struct guest *guest, unsigned vcpu, void (*fn)(void *data), void *data)
{
	struct vm *vm = vm_of(guest);

	return vcpu < vm->machine.n_vcpus && vcpu_run_on(&vm->machine.vcpus[vcpu], fn, data);
}

static void vm_vcpu_time(struct guest *guest, unsigned vcpu, bool reset, struct guest_vcpu_time *out)
{
	vcpu_read_time(&vm_of(guest)->machine.vcpus[vcpu], reset, out);
}

static bool vm_memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	const void *at = memory_at(vm_of(guest)->machine.memory, from, bytes);
	if (!at)
		return false;
	memcpy(to, at, bytes);
	return true;
}

size_t vm_serial_input(struct guest *guest, unsigned serial, const uint8_t *bytes, size_t n)
{
	struct vm *vm = vm_of(guest);

	if (serial == 1 && vm->port && virtio_console_is_open(vm->port))
		return virtio_console_input(vm->port, bytes, n);
	return devices_input(&vm->devices, serial, bytes, n);
}

static void vm_console_input(struct guest *guest, const uint8_t *bytes, size_t n)
{
	vm_serial_input(guest, 0, bytes, n);
}

static const struct guest_ops vm_ops = {.start = vm_start,
                                        .stop = vm_stop,
                                        .run_on_vcpu = vm_run_on_vcpu,
                                        .memory_read = vm_memory_read,
                                        .console_input = vm_console_input,
                                        .vcpu_time = vm_vcpu_time};

static bool create_machine(struct vm *vm, GError **error)
{
	vm->machine.fd = ioctl(vm->machine.kvm_fd, KVM_CREATE_VM, 0);
	if (vm->machine.fd < 0)
		return fail(error, "create a KVM virtual machine");
	if (ioctl(vm->machine.fd, KVM_SET_TSS_ADDR, TSS_GPA) < 0)
		return fail(error, "set KVM's TSS address");
	uint64_t identity_map = IDENTITY_MAP_GPA;
	if (ioctl(vm->machine.fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map) < 0)
		return fail(error, "set KVM's identity map address");
	if (ioctl(vm->machine.fd, KVM_CREATE_IRQCHIP, 0) < 0)
		return fail(error, "create the interrupt controllers");
	/* With the speaker's port 0x61 in the kernel too: its bit 4 follows the timer. */
	struct kvm_pit_config pit = {.flags = KVM_PIT_SPEAKER_DUMMY};
	if (ioctl(vm->machine.fd, KVM_CREATE_PIT2, &pit) < 0)
		return fail(error, "create the timer");
	return true;
}

/* The host's CPUID as the guest may see it. */
static struct kvm_cpuid2 *guest_cpuid(const struct vm *vm, GError **error)
{
	struct kvm_cpuid2 *cpuid = cpuid_read(vm->machine.kvm_fd, error);

	if (!cpuid)
		return NULL;
	vm_pmu_cpuid(vm, cpuid);
	if (vm->machine.quirks)
		vm->machine.quirks->cpuid(cpuid);
	return cpuid;
}

static bool create_vcpus(struct vm *vm, unsigned n, GError **error)
{
	int max = ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);

	if (n > GUEST_VCPUS_MAX || (int)n > max) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, "cannot make %u vCPUs: this host takes 1 to %d",
		            n, MIN(max, (int)GUEST_VCPUS_MAX));
		return false;
	}
	g_autofree struct kvm_cpuid2 *cpuid = guest_cpuid(vm, error);
	if (!cpuid)
		return false;
	vm->machine.vcpus = g_new0(struct vcpu, n);
	while (vm->machine.n_vcpus < n) {
		struct vcpu *vcpu = &vm->machine.vcpus[vm->machine.n_vcpus];

		cpuid_set_topology(cpuid, vm->machine.n_vcpus, n);
		if (!vcpu_init(vcpu, &vm->machine, vm->machine.n_vcpus, cpuid, error))
			return false;
		vm->machine.n_vcpus++;
		if (vm->pmu_kind == VM_PMU_EMULATED && !vcpu_pmu_init(vcpu, &vm->pmu_events, error))
			return false;
	}
	return true;
}

static char *default_name(const char *kernel_path)
{
	g_autofree char *base = g_path_get_basename(kernel_path);

	return g_strdup_printf("%s-%d", base, (int)getpid());
}

static void describe(struct vm *vm, const struct vm_config *config, const struct image *image)
{
	struct guest *guest = &vm->guest;

	guest->kind = "kvm";
	guest->name = config->name ? g_strdup(config->name) : default_name(config->kernel_path);
	guest->kernel_path = g_canonicalize_filename(config->kernel_path, NULL);
	guest->initrd_path = config->initrd_path ? g_canonicalize_filename(config->initrd_path, NULL) : NULL;
	guest->command_line =
		command_line_build(image_is_linux(image), vm->machine.quirks ? vm->machine.quirks->options : NULL,
	                           vm_virtio_count(config), config->command_line);
	guest->build_id = image_build_id_text(image);
	guest->release = g_strdup(image_release(image));
	guest->memory_bytes = config->memory_bytes;
	guest->vcpus = config->vcpus;
	guest->quirks = vm->machine.quirks ? g_strdupv((char **)vm->machine.quirks->sentences) : NULL;
}

static bool load(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	const struct boot_config boot = {.image = image,
	                                 .initrd_path = config->initrd_path,
	                                 .command_line = vm->guest.command_line,
	                                 .vcpus = config->vcpus,
	                                 .n_virtio = vm_virtio_count(config),
	                                 .protocol = config->protocol,
	                                 .reserved = vm->machine.quirks ? vm->machine.quirks->reserved : (gpa_t){0},
	                                 .reserved_bytes = vm->machine.quirks ? vm->machine.quirks->reserved_bytes : 0};
	struct boot_state state;
	struct kvm_regs regs = {0};
	struct kvm_sregs sregs;

	if (!boot_load(vm->machine.memory, &boot, &state, error) ||
	    !vcpu_get_sregs(&vm->machine.vcpus[0], &sregs, error))
		return false;
	if (!vm_pmu_loaded(vm, image, error))
		return false;
	boot_registers(&state, &regs, &sregs);
	return vcpu_set_registers(&vm->machine.vcpus[0], &regs, &sregs, error);
}

static bool set_up(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	vm->machine.kvm_fd = host_open(error);
	if (vm->machine.kvm_fd < 0)
		return false;
	vm->machine.quirks = config->quirks ? host_quirks_find(host_kind()) : NULL;
	describe(vm, config, image);
	vm->machine.memory = memory_new(config->memory_bytes, error);
	if (!vm->machine.memory || !create_machine(vm, error) ||
	    !memory_register(vm->machine.memory, vm->machine.fd, error))
		return false;
	vm->machine.step_control = vm_step_control(vm->machine.kvm_fd);
	vm->msr_filter = (struct msr_filter){.vm_fd = vm->machine.fd};
	if (vm->machine.quirks) {
		vm->machine.quirk_state = vm->machine.quirks->vm_init(vm->machine.fd, vm->machine.memory, error);
		if (!vm->machine.quirk_state ||
		    !msr_filter_set(&vm->msr_filter, MSR_OWNER_QUIRKS, vm->machine.quirks->msrs,
		                    vm->machine.quirks->msrs_n, error))
			return false;
	}
	return vm_pmu_init(vm, config, error) && create_vcpus(vm, config->vcpus, error) &&
	       vm_devices_init(vm, config, error) && vm_virtio_init(vm, config, error) &&
	       load(vm, config, image, error);
}

struct guest *vm_new(const struct vm_config *config, GError **error)
{
	struct image *image = image_open(config->kernel_path, error);

	if (!image)
		return NULL;
	struct vm *vm = g_new0(struct vm, 1);
	vm->guest.ops = &vm_ops;
	vm->guest.debug = &vm_debug_ops;
	vm->self = vm;
	vm->duration_s = config->duration_s;
	vm->machine = (struct vcpu_machine){
		.ops = &vm_machine_ops, .guest = &vm->guest, .kvm_fd = -1, .fd = -1, .devices = &vm->devices};
	pthread_mutex_init(&vm->end_lock, NULL);
	pthread_mutex_init(&vm->phase_lock, NULL);
	patches_init(&vm->machine.patches);
	bool done = set_up(vm, config, image, error);
	/* The image is as large as the guest's kernel; give it back before the guest runs. */
	image_free(image);
	malloc_trim(0);
	if (!done) {
		vm_free(&vm->guest);
		return NULL;
	}
	return &vm->guest;
}

static void nothing(void *data)
{
	(void)data;
}

bool vm_launch(struct guest *guest, GError **error)
{
	struct vm *vm = vm_of(guest);

	/* All count from the beginning, so that a thread that ends at once does not look like the last one. */
	atomic_store(&vm->n_running, vm->machine.n_vcpus);
	for (; vm->n_launched < vm->machine.n_vcpus; vm->n_launched++) {
		if (!vcpu_launch(&vm->machine.vcpus[vm->n_launched], error))
			return false;
	}
	/* A thread that serves requests has opened what it needs. */
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++)
		vcpu_run_on(&vm->machine.vcpus[i], nothing, NULL);
	return true;
}

void vm_shutdown(struct guest *guest)
{
	struct vm *vm = vm_of(guest);

	vm_end(vm, GUEST_END_STOPPED, 0, NULL);
	vm_join(vm);
	/* Phases or the end, on their way to a main loop that no longer turns. */
	while (g_source_remove_by_user_data(&vm->self))
		;
}

static void free_description(struct guest *guest)
{
	g_free(guest->name);
	g_free(guest->kernel_path);
	g_free(guest->initrd_path);
	g_free(guest->command_line);
	g_free(guest->build_id);
	g_free(guest->release);
	g_free(guest->pmu);
	g_strfreev(guest->quirks);
	g_free(guest->end.details);
	g_free(guest->end.console);
}

void vm_release(struct guest *guest)
{
	struct vm *vm = vm_of(guest);

	vm_shutdown(guest);
	/* A port's worker writes to a console, and the console's thread wakes the worker. */
	vm_virtio_stop(vm);
	vm_devices_deinit(vm);
	vm_virtio_deinit(vm);
}

void vm_free(struct guest *guest)
{
	if (!guest)
		return;
	struct vm *vm = vm_of(guest);
	vm_release(guest);
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++) {
		vcpu_pmu_deinit(&vm->machine.vcpus[i]);
		vcpu_deinit(&vm->machine.vcpus[i]);
	}
	g_free(vm->machine.vcpus);
	if (vm->machine.fd >= 0)
		close(vm->machine.fd);
	if (vm->machine.kvm_fd >= 0)
		close(vm->machine.kvm_fd);
	g_free(vm->machine.quirk_state);
	memory_free(vm->machine.memory);
	free_description(guest);
	g_free(vm->end_message);
	g_free(vm->panic);
	patches_deinit(&vm->machine.patches);
	pthread_mutex_destroy(&vm->phase_lock);
	pthread_mutex_destroy(&vm->end_lock);
	g_free(vm);
}

uint64_t vm_console_dropped(struct guest *guest)
{
	return console_dropped(vm_of(guest)->consoles[0]);
}

int vm_exit_status(const struct guest_end *end)
{
#define X(id, name, status) [id] = status,
	static const int statuses[] = {VPROF_GUEST_ENDS(X)};
#undef X
	if (end->reason == GUEST_END_EXIT_PORT)
		return (int)((end->code << 1 | 1) & 0xff); /* QEMU's isa-debug-exit */
	return statuses[end->reason];
}
