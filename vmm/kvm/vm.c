// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vm.h"

#include <malloc.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kvm/boot/command_line.h"
#include "kvm/device/virtio_console.h"
#include "kvm/host/host.h"
#include "kvm/vcpu/vcpu_run.h"
#include "kvm/vm_arch.h"
#include "kvm/vm_parts.h"

static void forget_unpacked(struct guest *guest)
{
	if (guest->kernel_unpacked > 0)
		close(guest->kernel_unpacked);
	guest->kernel_unpacked = 0;
}

static bool vm_start(struct guest *guest, GError **error)
{
	struct vm *vm = vm_of(guest);

	if (guest->state != GUEST_CREATED) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot start guest %s: it has been started already",
		            guest->name);
		return false;
	}
	forget_unpacked(guest);
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

struct vcpu_look {
	const struct vcpu *vcpu;
	unsigned number;
	void (*look)(void *data, const struct guest_vcpu *vcpu);
	void *data;
};

/* On the vCPU's thread. The number is the APIC id. */
static void look_on_vcpu(void *data)
{
	const struct vcpu_look *call = data;
	const struct guest_vcpu vcpu = {
		.apic_id = call->number, .whole = call->vcpu->regs.valid, .regs = call->vcpu->regs};

	if (call->vcpu->clocks.begun && call->vcpu->clocks.online)
		call->look(call->data, &vcpu);
}

static void vm_vcpus_look(struct guest *guest, void (*look)(void *data, const struct guest_vcpu *vcpu), void *data)
{
	struct vm *vm = vm_of(guest);

	for (unsigned i = 0; i < vm->machine.n_vcpus; i++) {
		struct vcpu_look call = {.vcpu = &vm->machine.vcpus[i], .number = i, .look = look, .data = data};

		vcpu_run_on(&vm->machine.vcpus[i], look_on_vcpu, &call);
	}
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
                                        .vcpu_time = vm_vcpu_time,
                                        .vcpus_look = vm_vcpus_look};

static bool create_vcpus(struct vm *vm, unsigned n, GError **error)
{
	int max = ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);

	if (n > GUEST_VCPUS_MAX || (int)n > max) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, "cannot make %u vCPUs: this host takes 1 to %d",
		            n, MIN(max, (int)GUEST_VCPUS_MAX));
		return false;
	}
	vm->machine.vcpus = g_new0(struct vcpu, n);
	for (; vm->machine.n_vcpus < n; vm->machine.n_vcpus++)
		if (!vm_arch_vcpu(vm, n, error))
			return false;
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
	guest->command_line = command_line_build(image_is_linux(image), vm->uart, vm_arch_options(vm),
	                                         vm_virtio_count(config), config->command_line);
	guest->build_id = image_build_id_text(image);
	image_find_start(image, &guest->start);
	guest->release = g_strdup(image_release(image));
	guest->memory_bytes = config->memory_bytes;
	guest->vcpus = config->vcpus;
	guest->quirks = g_strdupv((char **)vm_arch_quirks(vm));
}

/* What no kernel changes. */
static bool create(struct vm *vm, const struct vm_config *config, GError **error)
{
	vm->machine.kvm_fd = host_open(error);
	if (vm->machine.kvm_fd < 0)
		return false;
	vm_arch_new(vm, config);
	vm->machine.memory = memory_new(config->memory_bytes, error);
	return vm->machine.memory && vm_arch_create(vm, config, error) && create_vcpus(vm, config->vcpus, error);
}

static bool set_up(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	if (!boot_choose_uart(image, config->uart, &vm->uart, error))
		return false;
	describe(vm, config, image);
	return vm_devices_init(vm, config, error) && vm_virtio_init(vm, config, error) &&
	       vm_arch_load(vm, config, image, error);
}

static void keep_unpacked(struct vm *vm, const struct image *image)
{
	const int unpacked = image_compression(image) ? image_memory(image, &(uint64_t){0}, NULL) : -1;

	vm->guest.kernel_unpacked = unpacked >= 0 ? unpacked : 0;
}

struct creation {
	struct vm *vm;
	const struct vm_config *config;
	bool done;
	GError *error;
};

static void *create_beside(void *data)
{
	struct creation *creation = data;

	creation->done = create(creation->vm, creation->config, &creation->error);
	return NULL;
}

/* Both take time: to read the kernel, and what it does not change. */
static bool make(struct vm *vm, const struct vm_config *config, GError **error)
{
	struct creation creation = {.vm = vm, .config = config};
	GThread *thread = g_thread_new("create", create_beside, &creation);
	g_autoptr(GError) why = NULL;
	struct image *image = image_open_fd(config->kernel_path, IMAGE_KERNEL, vm->guest.kernel_file, &why);
	bool done = false;

	g_thread_join(thread);
	if (!creation.done)
		g_propagate_error(error, creation.error);
	else if (!image)
		g_propagate_error(error, g_steal_pointer(&why));
	else
		done = image_check_arch(image, arch_here(), "this host", error);
	if (done) {
		keep_unpacked(vm, image);
		done = set_up(vm, config, image, error);
	}
	/* The image is as large as the guest's kernel; give it back before the guest runs. */
	image_free(image);
	malloc_trim(0);
	return done;
}

struct guest *vm_new(const struct vm_config *config, GError **error)
{
	int file = image_open_kernel(config->kernel_path, error);

	if (file < 0)
		return NULL;
	struct vm *vm = g_new0(struct vm, 1);
	vm->guest.kernel_file = file;
	vm->guest.ops = &vm_ops;
	vm->self = vm;
	vm->duration_s = config->duration_s;
	vm->machine.ops = &vm_machine_ops;
	vm->machine.guest = &vm->guest;
	vm->machine.kvm_fd = vm->machine.fd = -1;
	vm->machine.devices = &vm->devices;
	vm->guest.debug = &vm_debug_ops;
	patches_init(&vm->machine.patches, &vcpu_arch_trap);
	file_patches_init(&vm->machine.file_patches, &vm->guest, (uint8_t)vcpu_arch_trap.code, vm_file_memory);
	pthread_mutex_init(&vm->end_lock, NULL);
	pthread_mutex_init(&vm->phase_lock, NULL);
	if (make(vm, config, error))
		return &vm->guest;
	vm_free(&vm->guest);
	return NULL;
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
	vm_exits_trace(vm);
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
	close(guest->kernel_file);
	forget_unpacked(guest);
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
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++)
		vcpu_deinit(&vm->machine.vcpus[i]);
	g_free(vm->machine.vcpus);
	if (vm->machine.fd >= 0)
		close(vm->machine.fd);
	if (vm->machine.kvm_fd >= 0)
		close(vm->machine.kvm_fd);
	vm_arch_free(vm);
	patches_deinit(&vm->machine.patches);
	vm_file_patches_end(vm);
	memory_free(vm->machine.memory);
	free_description(guest);
	exit_trace_free(vm->exits);
	g_free(vm->exits_why);
	g_free(vm->end_message);
	g_free(vm->panic);
	g_free(vm->crash.state.text);
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
