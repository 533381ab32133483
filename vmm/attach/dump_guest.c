// SPDX-License-Identifier: BSD-2-Clause
#include "attach/dump_guest.h"

#include <string.h>
#include <unistd.h>

#include "attach/core_file.h"
#include "attach/kernel_search.h"
#include "guest/os.h"

struct dump_guest {
	struct guest guest; /* first */
	struct core_file *core;
	char *kernel_path; /* NULL: what its memory holds */
	int kernel_file;   /* -1: none */
	struct kernel_found kernel;
	guint end_source;
	struct kernel_search *search; /* that goes on; NULL */
	void (*looked)(void *data, const GError *why);
	void *looked_data;
};

/* There is nothing to sample. */
static const struct counter_route *const routes[] = {NULL};

static struct dump_guest *dump_of(struct guest *guest)
{
	return (struct dump_guest *)guest;
}

/* ---- guest_ops ---- */

static bool dump_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	guest->state = GUEST_RUNNING;
	return true;
}

static gboolean tell_end(void *data)
{
	struct dump_guest *dump = data;

	dump->end_source = 0;
	dump->guest.on_ended(&dump->guest, dump->guest.listener_data);
	return G_SOURCE_REMOVE;
}

static void dump_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	struct dump_guest *dump = dump_of(guest);

	if (guest->state == GUEST_ENDED)
		return;
	guest->state = GUEST_ENDED;
	guest->end.reason = reason;
	guest->end.message = g_strdup(message);
	dump->end_source = g_idle_add(tell_end, dump);
}

static bool dump_run_on_vcpu(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                             void (*fn)(void *data) G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
	return false;
}

static bool dump_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	return core_file_read(dump_of(guest)->core, from, to, bytes);
}

static void dump_console_input(struct guest *guest G_GNUC_UNUSED, const uint8_t *bytes G_GNUC_UNUSED,
                               size_t n G_GNUC_UNUSED)
{
}

static void dump_vcpu_time(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED, bool reset G_GNUC_UNUSED,
                           struct guest_vcpu_time *out)
{
	memset(out, 0, sizeof(*out));
	out->missing = "a dump has no time";
	out->untraced = "it is a dump";
}

static void dump_vcpus_look(struct guest *guest, void (*look)(void *data, const struct guest_vcpu *vcpu), void *data)
{
	const struct core_file *core = dump_of(guest)->core;

	for (unsigned i = 0; i < core->n_vcpus; i++) {
		const struct guest_vcpu vcpu = {.apic_id = i, .whole = true, .regs = core->registers[i].regs};

		look(data, &vcpu);
	}
}

static const struct guest_ops dump_ops = {
	.start = dump_start,
	.stop = dump_stop,
	.run_on_vcpu = dump_run_on_vcpu,
	.memory_read = dump_read,
	.console_input = dump_console_input,
	.vcpu_time = dump_vcpu_time,
	.vcpus_look = dump_vcpus_look,
};

/* ---- the guest ---- */

static void kernel_take(struct dump_guest *dump, struct kernel_search_result *result)
{
	struct guest *guest = &dump->guest;

	if (result->why) {
		guest->kernel_why = g_strdup(result->why->message);
		return;
	}
	dump->kernel = result->found;
	result->found = (struct kernel_found){0};
	guest->kernel_parts = g_steal_pointer(&result->parts);
	guest->kernel_image = dump->kernel.image;
	guest->kernel_fd = dump->kernel.fd;
	guest->build_id = image_build_id_text(dump->kernel.image);
	guest->release = g_strdup(image_release(dump->kernel.image));
}

static void on_searched(void *data)
{
	struct dump_guest *dump = data;
	g_autoptr(GError) why = NULL;

	kernel_take(dump, kernel_search_result(dump->search));
	g_clear_pointer(&dump->search, kernel_search_free);
	if (dump->kernel_path && !dump->kernel.image)
		g_set_error_literal(&why, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER, dump->guest.kernel_why);
	dump->looked(dump->looked_data, why);
}

struct guest *dump_guest_new(const char *path, const char *kernel_path, const struct os_search *const *searches,
                             GError **error)
{
	struct core_file *core = core_file_open(path, error);

	if (!core)
		return NULL;
	struct dump_guest *dump = g_new0(struct dump_guest, 1);

	dump->core = core;
	dump->guest = (struct guest){.ops = &dump_ops,
	                             .kind = "dump",
	                             .name = g_path_get_basename(path),
	                             .vcpus = core->n_vcpus,
	                             .memory_bytes = core_file_memory_bytes(core),
	                             .routes = routes,
	                             .searches = searches};
	dump->kernel_path = g_strdup(kernel_path);
	dump->kernel_file = kernel_path ? image_open_kernel(kernel_path, error) : -1;
	if (!kernel_path || dump->kernel_file >= 0)
		return &dump->guest;
	dump_guest_free(&dump->guest);
	return NULL;
}

void dump_guest_begin(struct guest *guest, void (*looked)(void *data, const GError *why), void *data)
{
	struct dump_guest *dump = dump_of(guest);
	const struct kernel_search_config config = {
		.guest = guest,
		.registers = dump->core->registers,
		.n = dump->core->n_vcpus,
		.kernel_path = dump->kernel_path,
		.kernel_file = dump->kernel_file,
		.parts = true,
	};

	dump->looked = looked;
	dump->looked_data = data;
	dump->search = kernel_search_new(&config);
	kernel_search_begin(dump->search, on_searched, dump);
}

void dump_guest_end(struct guest *guest)
{
	g_clear_handle_id(&dump_of(guest)->end_source, g_source_remove);
}

void dump_guest_free(struct guest *guest)
{
	struct dump_guest *dump = guest ? dump_of(guest) : NULL;

	if (!dump)
		return;
	dump_guest_end(guest);
	kernel_search_free(dump->search);
	kernel_found_clear(&dump->kernel);
	os_parts_free(guest->kernel_parts);
	core_file_free(dump->core);
	if (dump->kernel_file >= 0)
		close(dump->kernel_file);
	g_free(dump->kernel_path);
	g_free(guest->name);
	g_free(guest->build_id);
	g_free(guest->release);
	g_free(guest->kernel_why);
	g_free(guest->end.message);
	g_free(dump);
}
