// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vm.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "kvm/command_line.h"
#include "kvm/cpuid.h"
#include "kvm/vm_priv.h"

/* Three pages for VMX's real mode and one for its identity map, in the hole, below the firmware's place. */
#define TSS_GPA 0xfffbd000ul
#define IDENTITY_MAP_GPA UINT64_C(0xfffbc000)

#define PANIC_SILENCE_MS 2000
#define CONSOLE_FLUSH_MS 500u /* before the end is announced */

static struct vm *vm_of(struct guest *guest)
{
	return (struct vm *)guest;
}

static bool fail(GError **error, const char *what)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot %s: %s", what, g_strerror(errno));
	return false;
}

/* ---- the end ---- */

static char *default_message(enum guest_end_reason reason, uint32_t code)
{
	switch (reason) {
	case GUEST_END_POWER_OFF:
		return g_strdup("the guest powered off");
	case GUEST_END_REBOOT:
		return g_strdup("the guest asked for a reboot");
	case GUEST_END_EXIT_PORT:
		return g_strdup_printf("the guest wrote %u to the exit port", code);
	default:
		return g_strdup_printf("the guest ended: %s", guest_end_name(reason));
	}
}

static bool claim_end(struct vm *vm, enum guest_end_reason reason, uint32_t code, char *message)
{
	pthread_mutex_lock(&vm->end_lock);
	bool first = vm->end_reason == GUEST_END_NONE;
	if (first && vm->panic && reason == GUEST_END_REBOOT) {
		reason = GUEST_END_PANIC;
		message = g_strdup(vm->panic);
	}
	if (first) {
		vm->end_reason = reason;
		vm->end_code = code;
		vm->end_message = message ? message : default_message(reason, code);
		atomic_store_explicit(&vm->ending, true, memory_order_release);
	} else {
		g_free(message);
	}
	pthread_mutex_unlock(&vm->end_lock);
	return first;
}

void vm_end(struct vm *vm, enum guest_end_reason reason, uint32_t code, char *message)
{
	if (!claim_end(vm, reason, code, message))
		return;
	for (unsigned i = 0; i < vm->n_vcpus; i++)
		vcpu_kick(&vm->vcpus[i]);
}

void vm_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message)
{
	struct vm *vm = vcpu->vm;
	const struct kvm_run *run = vcpu->run;
	pthread_mutex_lock(&vm->end_lock);
	if (vm->end_reason == GUEST_END_NONE && !vm->crashed) {
		vm->crashed = true;
		vm->crash =
			(struct vm_crash){.vcpu = vcpu->index, .regs = run->s.regs.regs, .sregs = run->s.regs.sregs};
		if (run->exit_reason == KVM_EXIT_INTERNAL_ERROR &&
		    run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION && run->emulation_failure.ndata >= 3 &&
		    (run->emulation_failure.flags & KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES)) {
			vm->crash.code_bytes = MIN(run->emulation_failure.insn_size, sizeof(vm->crash.code));
			memcpy(vm->crash.code, run->emulation_failure.insn_bytes, vm->crash.code_bytes);
		}
	}
	pthread_mutex_unlock(&vm->end_lock);
	vm_end(vm, reason, 0, message);
}

static void join_threads(struct vm *vm)
{
	for (; vm->n_launched > 0; vm->n_launched--)
		vcpu_join(&vm->vcpus[vm->n_launched - 1]);
	if (vm->duration_source)
		g_source_remove(vm->duration_source);
	vm->duration_source = 0;
}

/* Main thread: every vCPU's thread has left or is about to. */
static gboolean finish(void *data)
{
	struct vm *vm = *(struct vm **)data;
	join_threads(vm);
	struct guest *guest = &vm->guest;
	console_flush(vm->consoles[0], CONSOLE_FLUSH_MS);
	guest->state = GUEST_ENDED;
	guest->end = (struct guest_end){.reason = vm->end_reason, .code = vm->end_code, .message = vm->end_message};
	if (vm->crashed)
		guest->end.details = vm_crash_report(vm);
	if (vm->phases_lost > 0)
		g_warning("%" G_GUINT64_FORMAT " marks on port 0x80 were lost: the guest sets them too fast",
		          vm->phases_lost);
	if (guest->on_ended)
		guest->on_ended(guest, guest->listener_data);
	return G_SOURCE_REMOVE;
}

/* Not g_main_context_invoke, which would run `fn` right here while the main loop is not running yet. */
static void on_main_thread(GSourceFunc fn, struct vm *vm)
{
	GSource *source = g_idle_source_new();
	g_source_set_priority(source, G_PRIORITY_DEFAULT);
	g_source_set_callback(source, fn, &vm->self, NULL);
	g_source_attach(source, NULL);
	g_source_unref(source);
}

void vm_thread_left(struct vm *vm)
{
	if (atomic_fetch_sub_explicit(&vm->n_running, 1, memory_order_acq_rel) == 1)
		on_main_thread(finish, vm);
}

/* ---- what the devices ask for ---- */

static void device_irq(void *data, unsigned irq, bool level)
{
	const struct vm *vm = data;
	struct kvm_irq_level line = {.irq = irq, .level = level};
	if (ioctl(vm->fd, KVM_IRQ_LINE, &line) < 0)
		g_critical("cannot set interrupt line %u: %s", irq, g_strerror(errno));
}

static void device_ended(void *data, enum guest_end_reason reason, uint32_t code)
{
	vm_end(data, reason, code, NULL);
}

static gboolean report_phases(void *data)
{
	struct vm *vm = *(struct vm **)data;
	struct vm_phase phases[VM_PHASES_MAX];
	pthread_mutex_lock(&vm->phase_lock);
	size_t n = vm->n_phases;
	memcpy(phases, vm->phases, n * sizeof(*phases));
	vm->n_phases = 0;
	vm->phases_scheduled = false;
	pthread_mutex_unlock(&vm->phase_lock);
	struct guest *guest = &vm->guest;
	for (size_t i = 0; i < n && guest->on_phase; i++)
		guest->on_phase(guest, phases[i].vcpu, phases[i].value, phases[i].time_ns, guest->listener_data);
	return G_SOURCE_REMOVE;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A guest that uses port 0x80 for delays can outrun the main thread: what finds no room is counted. */
static void device_phase(void *data, unsigned vcpu, uint8_t value)
{
	struct vm *vm = data;
	pthread_mutex_lock(&vm->phase_lock);
	if (vm->n_phases < VM_PHASES_MAX)
		vm->phases[vm->n_phases++] = (struct vm_phase){vcpu, value, now_ns()};
	else
		vm->phases_lost++;
	bool schedule = !vm->phases_scheduled;
	vm->phases_scheduled = true;
	pthread_mutex_unlock(&vm->phase_lock);
	if (schedule)
		on_main_thread(report_phases, vm);
}

static void device_transmit(void *data, unsigned serial, uint8_t byte)
{
	struct vm *vm = data;
	console_put(vm->consoles[serial], byte);
}

/* Main thread: whether the panicking kernel has said all it has to say. */
static gboolean panic_over(void *data)
{
	struct vm *vm = *(struct vm **)data;
	pthread_mutex_lock(&vm->end_lock);
	bool silent = g_get_monotonic_time() - vm->panic_us >= PANIC_SILENCE_MS * 1000;
	char *message = silent ? g_strdup(vm->panic) : NULL;
	pthread_mutex_unlock(&vm->end_lock);
	if (!silent)
		return G_SOURCE_CONTINUE;
	vm_end(vm, GUEST_END_PANIC, 0, message);
	return G_SOURCE_REMOVE;
}

static gboolean await_end_of_panic(void *data)
{
	g_timeout_add(PANIC_SILENCE_MS, panic_over, data);
	return G_SOURCE_REMOVE;
}

/*
 * A panicking Linux prints this line and its report, and then resets (panic=N) or says no more (kernel/panic.c). So the
 * panic ends the guest at the reset or when the console has been silent for a while.
 */
static void watch_for_panic(const char *line, void *data)
{
	struct vm *vm = data;
	const char *begin = strstr(line, "Kernel panic - not syncing");
	pthread_mutex_lock(&vm->end_lock);
	bool begins = begin && !vm->panic;
	if (begins)
		vm->panic = g_strdup(begin);
	vm->panic_us = g_get_monotonic_time();
	pthread_mutex_unlock(&vm->end_lock);
	if (begins)
		on_main_thread(await_end_of_panic, vm);
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

/* ---- guest_ops ---- */

static gboolean duration_over(void *data)
{
	struct vm *vm = data;
	vm->duration_source = 0;
	vm_end(vm, GUEST_END_DURATION, 0, g_strdup_printf("the duration of %g s is over", vm->duration_s));
	return G_SOURCE_REMOVE;
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
	if (vm->duration_s > 0)
		vm->duration_source = g_timeout_add((guint)MIN(vm->duration_s * 1e3, G_MAXUINT), duration_over, vm);
	for (unsigned i = 0; i < vm->n_vcpus; i++)
		vcpu_go(&vm->vcpus[i]);
	return true;
}

static void vm_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	vm_end(vm_of(guest), reason, 0, g_strdup(message));
}

static bool vm_run_on_vcpu(struct guest *guest, unsigned vcpu, void (*fn)(void *data), void *data)
{
	struct vm *vm = vm_of(guest);
	return vcpu < vm->n_vcpus && vcpu_run_on(&vm->vcpus[vcpu], fn, data);
}

static bool vm_memory_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	const void *at = memory_at(vm_of(guest)->memory, from, bytes);
	if (!at)
		return false;
	memcpy(to, at, bytes);
	return true;
}

size_t vm_serial_input(struct guest *guest, unsigned serial, const uint8_t *bytes, size_t n)
{
	return devices_input(&vm_of(guest)->devices, serial, bytes, n);
}

static void vm_console_input(struct guest *guest, const uint8_t *bytes, size_t n)
{
	vm_serial_input(guest, 0, bytes, n);
}

static const struct guest_ops vm_ops = {.start = vm_start,
                                        .stop = vm_stop,
                                        .run_on_vcpu = vm_run_on_vcpu,
                                        .memory_read = vm_memory_read,
                                        .console_input = vm_console_input};

/* ---- making it ---- */

static bool create_machine(struct vm *vm, GError **error)
{
	vm->fd = ioctl(vm->kvm_fd, KVM_CREATE_VM, 0);
	if (vm->fd < 0)
		return fail(error, "create a KVM virtual machine");
	if (ioctl(vm->fd, KVM_SET_TSS_ADDR, TSS_GPA) < 0)
		return fail(error, "set KVM's TSS address");
	uint64_t identity_map = IDENTITY_MAP_GPA;
	if (ioctl(vm->fd, KVM_SET_IDENTITY_MAP_ADDR, &identity_map) < 0)
		return fail(error, "set KVM's identity map address");
	if (ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0) < 0)
		return fail(error, "create the interrupt controllers");
	/* With the speaker's port 0x61 in the kernel too: its bit 4 follows the timer. */
	struct kvm_pit_config pit = {.flags = KVM_PIT_SPEAKER_DUMMY};
	if (ioctl(vm->fd, KVM_CREATE_PIT2, &pit) < 0)
		return fail(error, "create the timer");
	/* Best effort: CPUID tells the guest that there is none anyway. */
	struct kvm_enable_cap no_pmu = {.cap = KVM_CAP_PMU_CAPABILITY, .args = {KVM_PMU_CAP_DISABLE}};
	if (ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_PMU_CAPABILITY) & KVM_PMU_CAP_DISABLE)
		ioctl(vm->fd, KVM_ENABLE_CAP, &no_pmu);
	return true;
}

static bool create_vcpus(struct vm *vm, unsigned n, GError **error)
{
	int max = ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);
	if (n > GUEST_VCPUS_MAX || (int)n > max) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, "cannot make %u vCPUs: this host takes 1 to %d",
		            n, MIN(max, (int)GUEST_VCPUS_MAX));
		return false;
	}
	g_autofree struct kvm_cpuid2 *cpuid = cpuid_read(vm->kvm_fd, vm->quirks, error);
	if (!cpuid)
		return false;
	vm->vcpus = g_new0(struct vcpu, n);
	for (; vm->n_vcpus < n; vm->n_vcpus++) {
		cpuid_set_topology(cpuid, vm->n_vcpus, n);
		if (!vcpu_init(&vm->vcpus[vm->n_vcpus], vm, vm->n_vcpus, cpuid, error))
			return false;
	}
	return true;
}

static bool create_consoles(struct vm *vm, const struct vm_config *config, GError **error)
{
	bool connected[DEVICES_SERIALS];
	for (unsigned i = 0; i < DEVICES_SERIALS; i++) {
		/* The first UART has a reader even without a descriptor: the reports of failures. */
		connected[i] = i == 0 || config->serial_fds[i] >= 0;
		if (!connected[i])
			continue;
		vm->consoles[i] = console_new(config->serial_fds[i], error);
		if (!vm->consoles[i])
			return false;
	}
	if (config->stop_on_panic)
		console_on_line(vm->consoles[0], watch_for_panic, vm);
	const struct devices_host host = {.irq = device_irq,
	                                  .ended = device_ended,
	                                  .phase = device_phase,
	                                  .transmit = device_transmit,
	                                  .data = vm};
	devices_init(&vm->devices, &host, connected);
	return true;
}

static char *hex(const uint8_t *bytes, size_t n)
{
	GString *text = g_string_sized_new(2 * n);
	for (size_t i = 0; i < n; i++)
		g_string_append_printf(text, "%02x", bytes[i]);
	return g_string_free(text, FALSE);
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
	guest->command_line = command_line_build(image_is_linux(image), vm->quirks ? vm->quirks->options : NULL,
	                                         config->command_line);
	size_t bytes = 0;
	const uint8_t *build_id = image_build_id(image, &bytes);
	guest->build_id = build_id ? hex(build_id, bytes) : NULL;
	guest->release = g_strdup(image_release(image));
	guest->memory_bytes = config->memory_bytes;
	guest->vcpus = config->vcpus;
	guest->quirks = vm->quirks ? g_strdupv((char **)vm->quirks->sentences) : NULL;
}

static bool load(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	const struct boot_config boot = {.image = image,
	                                 .initrd_path = config->initrd_path,
	                                 .command_line = vm->guest.command_line,
	                                 .vcpus = config->vcpus,
	                                 .protocol = config->protocol,
	                                 .reserved = vm->quirks ? vm->quirks->reserved : (gpa_t){0},
	                                 .reserved_bytes = vm->quirks ? vm->quirks->reserved_bytes : 0};
	struct boot_state state;
	struct kvm_regs regs = {0};
	struct kvm_sregs sregs;
	if (!boot_load(vm->memory, &boot, &state, error) || !vcpu_get_sregs(&vm->vcpus[0], &sregs, error))
		return false;
	boot_registers(&state, &regs, &sregs);
	return vcpu_set_registers(&vm->vcpus[0], &regs, &sregs, error);
}

static bool set_up(struct vm *vm, const struct vm_config *config, const struct image *image, GError **error)
{
	vm->kvm_fd = host_open(error);
	if (vm->kvm_fd < 0)
		return false;
	vm->quirks = config->quirks ? host_quirks_find(host_kind()) : NULL;
	describe(vm, config, image);
	vm->memory = memory_new(config->memory_bytes, error);
	if (!vm->memory || !create_machine(vm, error) || !memory_register(vm->memory, vm->fd, error))
		return false;
	if (vm->quirks) {
		vm->quirk_state = vm->quirks->vm_init(vm->fd, vm->memory, error);
		if (!vm->quirk_state)
			return false;
	}
	return create_vcpus(vm, config->vcpus, error) && create_consoles(vm, config, error) &&
	       load(vm, config, image, error);
}

struct guest *vm_new(const struct vm_config *config, GError **error)
{
	struct image *image = image_open(config->kernel_path, error);
	if (!image)
		return NULL;
	struct vm *vm = g_new0(struct vm, 1);
	vm->guest.ops = &vm_ops;
	vm->self = vm;
	vm->duration_s = config->duration_s;
	vm->kvm_fd = vm->fd = -1;
	pthread_mutex_init(&vm->end_lock, NULL);
	pthread_mutex_init(&vm->phase_lock, NULL);
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

bool vm_launch(struct guest *guest, GError **error)
{
	struct vm *vm = vm_of(guest);
	/* All count from the beginning, so that a thread that ends at once does not look like the last one. */
	atomic_store(&vm->n_running, vm->n_vcpus);
	for (; vm->n_launched < vm->n_vcpus; vm->n_launched++) {
		if (!vcpu_launch(&vm->vcpus[vm->n_launched], error))
			return false;
	}
	return true;
}

void vm_shutdown(struct guest *guest)
{
	struct vm *vm = vm_of(guest);
	vm_end(vm, GUEST_END_STOPPED, 0, NULL);
	join_threads(vm);
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
	g_strfreev(guest->quirks);
	g_free(guest->end.details);
}

void vm_free(struct guest *guest)
{
	if (!guest)
		return;
	struct vm *vm = vm_of(guest);
	vm_shutdown(guest);
	for (unsigned i = 0; i < vm->n_vcpus; i++)
		vcpu_deinit(&vm->vcpus[i]);
	g_free(vm->vcpus);
	for (unsigned i = 0; i < DEVICES_SERIALS; i++)
		console_free(vm->consoles[i]);
	if (vm->consoles[0])
		devices_deinit(&vm->devices);
	if (vm->fd >= 0)
		close(vm->fd);
	if (vm->kvm_fd >= 0)
		close(vm->kvm_fd);
	g_free(vm->quirk_state);
	memory_free(vm->memory);
	free_description(guest);
	g_free(vm->end_message);
	g_free(vm->panic);
	pthread_mutex_destroy(&vm->phase_lock);
	pthread_mutex_destroy(&vm->end_lock);
	g_free(vm);
}

uint64_t vm_console_dropped(struct guest *guest)
{
	return console_dropped(vm_of(guest)->consoles[0]);
}
