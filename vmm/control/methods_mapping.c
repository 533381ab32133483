// SPDX-License-Identifier: BSD-2-Clause
/* What is at an address of the guest: the bytes, the file, or the symbol of a module. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/method_priv.h"
#include "guest/guest_debug.h"
#include "guest/os.h"
#include "guest/page_walk.h"
#include "lib/symbol/image.h"
#include "sample/session_modules.h"

#define MAPPING_BYTES_MAX 4096
#define SYMBOL_BYTES_MAX 256u

/* ---- the bytes themselves ---- */

struct bytes_request {
	struct guest *guest;
	unsigned vcpu;
	uint64_t address;
	size_t n;
	uint8_t *bytes;
	bool done;
};

static void read_on_vcpu(void *data)
{
	struct bytes_request *request = data;
	struct guest *guest = request->guest;
	struct guest_regs regs;
	struct guest_gprs gprs;
	struct page_walk walk;

	if (!guest->debug->registers_read(guest, request->vcpu, &regs, &gprs))
		return;
	page_walk_init_regs(&walk, guest, &regs);
	request->done = page_walk_read(&walk, (gva_t){request->address}, request->bytes, request->n);
}

static json_t *bytes_json(struct guest *guest, unsigned vcpu, uint64_t address, size_t n, GError **error)
{
	g_autofree uint8_t *bytes = g_malloc(n);
	struct bytes_request request = {.guest = guest, .vcpu = vcpu, .address = address, .n = n, .bytes = bytes};

	if (guest->debug)
		guest->ops->run_on_vcpu(guest, vcpu, read_on_vcpu, &request);
	if (!request.done) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
		            "cannot read %zu bytes at 0x%" PRIx64
		            ": the page tables of vCPU %u do not map them to memory",
		            n, address, vcpu);
		return NULL;
	}
	return json_pack("{s:o}", "bytes", control_hex(bytes, n));
}

/* ---- the file ---- */

/* What is known of the kernel's file, which takes up to a second to find out: it may have to be unpacked. */
struct kernel_file {
	dev_t device;
	ino_t number;
	off_t bytes;
	struct timespec changed;
	struct image_segment segments[IMAGE_SEGMENTS_MAX];
	size_t n_segments;
	bool is_linux;
	const char *compression; /* static; NULL */
};

void kernel_file_free(struct kernel_file *file)
{
	g_free(file);
}

static struct kernel_file *kernel_file_new(const struct guest *guest, int fd, const struct stat *status, GError **error)
{
	struct image *image = image_open_fd(guest->kernel_path, IMAGE_KERNEL, fd, error);
	struct kernel_file *file = image ? g_new0(struct kernel_file, 1) : NULL;
	const struct image_segment *segments;

	if (!file)
		return NULL;
	file->device = status->st_dev;
	file->number = status->st_ino;
	file->bytes = status->st_size;
	file->changed = status->st_ctim;
	segments = image_segments(image, &file->n_segments);
	memcpy(file->segments, segments, file->n_segments * sizeof(*segments));
	file->is_linux = image_is_linux(image);
	file->compression = image_compression(image);
	image_free(image);
	return file;
}

static bool kernel_file_is(const struct kernel_file *file, const struct stat *status)
{
	return file->device == status->st_dev && file->number == status->st_ino && file->bytes == status->st_size &&
	       file->changed.tv_sec == status->st_ctim.tv_sec && file->changed.tv_nsec == status->st_ctim.tv_nsec;
}

/* Reads the file at `fd` unless it is the one that was read before. */
static const struct kernel_file *kernel_file_get(struct control_server *server, int fd, GError **error)
{
	struct stat status;

	if (fstat(fd, &status) != 0) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot open %s: %s",
		            server->guest->kernel_path, g_strerror(errno));
		return NULL;
	}
	if (!server->kernel_file || !kernel_file_is(server->kernel_file, &status)) {
		kernel_file_free(server->kernel_file);
		server->kernel_file = kernel_file_new(server->guest, fd, &status, error);
	}
	return server->kernel_file;
}

/* Up to Linux 6.14, per-CPU data is linked at 0; no CPU has it there (arch/x86/kernel/vmlinux.lds.S). */
static bool is_per_cpu(const struct kernel_file *file, const struct image_segment *segment)
{
	return file->is_linux && segment->gva == 0;
}

static const struct image_segment *find_segment(const struct kernel_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct image_segment *segment = &file->segments[i];

		if (address - segment->gva < segment->memory_bytes && !is_per_cpu(file, segment))
			return segment;
	}
	return NULL;
}

static json_t *segment_json(const struct guest *guest, const struct kernel_file *file,
                            const struct image_segment *segment)
{
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:s?}", "path",
	                 control_text(guest->kernel_path, CONTROL_PATH_BYTES_MAX), "build-id",
	                 control_text(guest->build_id, CONTROL_PATH_BYTES_MAX), "start",
	                 control_hex_address(segment->gva), "length", (json_int_t)segment->memory_bytes, "offset",
	                 (json_int_t)segment->file_offset, "compression", file->compression);
}

/* The answer, to which the descriptor goes. */
static json_t *kernel_json(struct control_call *call, int fd, uint64_t address, GError **error)
{
	const struct kernel_file *file = kernel_file_get(call->server, fd, error);
	const struct image_segment *segment = file ? find_segment(file, address) : NULL;

	if (segment)
		return segment_json(call->server->guest, file, segment);
	if (file)
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
		            "0x%" PRIx64
		            " is in no file that the engine knows; give \"bytes\" to read the guest's memory",
		            address);
	return NULL;
}

static json_t *file_json(struct control_call *call, uint64_t address, GError **error)
{
	const char *path = call->server->guest->kernel_path;
	json_t *answer;
	int fd;

	if (!path) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		            "cannot return the guest's kernel image: it is not known");
		return NULL;
	}
	fd = guest_kernel_file(call->server->guest);
	if (fd < 0) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot open %s: %s", path, g_strerror(errno));
		return NULL;
	}
	answer = kernel_json(call, fd, address, error);
	if (!answer) {
		close(fd);
		return NULL;
	}
	call->fds[call->n_fds++] = fd;
	call->owns_fds = true;
	return answer;
}

/* ---- the file of a process ---- */

/* A mapping of a file at an address. */
struct mapping_look {
	uint64_t address;
	struct os_mapping found;
	bool is_there;
};

static bool mapping_take(const struct os_mapping *mapping, void *data)
{
	struct mapping_look *look = data;

	look->is_there = look->address - mapping->start < mapping->end - mapping->start;
	if (look->is_there)
		look->found = *mapping;
	return !look->is_there;
}

/* The address space of a process; 0: there is no such process, or it has none. */
static uint64_t process_find(const struct os_kernel *kernel, struct page_walk *walk, uint32_t pid)
{
	struct task_list list;
	uint64_t mm = 0;

	kernel->list->read(kernel, walk, &list);
	for (guint i = 0; i < list.tasks->len && mm == 0; i++) {
		const struct task *task = &g_array_index(list.tasks, struct listed_task, i).task;

		if (task->pid == pid)
			mm = task->mm;
	}
	task_list_clear(&list);
	return mm;
}

/* NULL: `look` has a file; else why not. */
static const char *process_look(const struct os_kernel *kernel, struct page_walk *walk, uint32_t pid,
                                struct mapping_look *look)
{
	const uint64_t mm = process_find(kernel, walk, pid);

	if (mm == 0)
		return "there is no such process, or it has no memory of its own";
	kernel->mappings->each(kernel, walk, mm, mapping_take, look);
	if (!look->is_there)
		return "it has nothing mapped there";
	return look->found.file == 0 ? "what is mapped there is no file" : NULL;
}

static const char *process_file_open(const struct os_kernel *kernel, struct page_walk *walk, uint32_t pid,
                                     struct mapping_look *look, struct file_copy *copy)
{
	const char *why = process_look(kernel, walk, pid, look);

	if (why)
		return why;
	if (!kernel->mappings->file_pages(kernel, walk, look->found.file, &copy->mapping))
		return "the pages of its file cannot be found";
	copy->files = kernel->files;
	copy->file = kernel->files->open(kernel, walk, copy->mapping, &copy->bytes);
	return copy->file ? NULL : "the guest does not have the file in memory any more";
}

/* What process_file_open needs; NULL: it is all there. */
static const char *process_files_why(const struct session *session, const struct os_kernel *kernel,
                                     struct page_walk *walk)
{
	if (!kernel->list)
		return kernel->why[OS_LIST] ? kernel->why[OS_LIST] : "the guest's tasks cannot be read";
	if (!kernel->mappings)
		return kernel->why[OS_MAPPINGS] ? kernel->why[OS_MAPPINGS] : "the guest's mappings cannot be read";
	if (!kernel->files)
		return "its kernel does not say where its page cache is";
	return session_kernel_walk(session, walk) ? NULL : "the guest's page tables are not known";
}

/* The copy has the size of the file, and of its pages those of the mapping, as many as may be copied. */
static void part_choose(struct file_copy *copy, const struct mapping_look *look)
{
	const struct os_mapping *mapping = &look->found;
	const uint64_t page = (look->address - mapping->start) & ~UINT64_C(4095);
	const uint64_t before = MIN(page, VPROF_FILE_READ_BYTES_MAX / 2);

	copy->size = copy->bytes;
	copy->from = MIN(mapping->file_offset + page - before, copy->bytes);
	copy->end = MIN(mapping->file_offset + mapping->end - mapping->start, copy->from + VPROF_FILE_READ_BYTES_MAX);
	copy->end = MIN(copy->end, copy->bytes);
}

static json_t *process_file_json(struct control_call *call, uint32_t pid, uint64_t address, GError **error)
{
	struct session *session = call->server->session;
	const struct os_kernel *kernel = session_kernel(session);
	struct file_copy copy = {.guest = call->server->guest};
	struct mapping_look look = {.address = address};
	char name[OS_FILE_NAME_BYTES];
	struct page_walk walk;
	const char *needs = process_files_why(session, kernel, &walk);
	const char *why = needs ? needs : process_file_open(kernel, &walk, pid, &look, &copy);

	if (why) {
		g_set_error(error, CONTROL_ERROR, needs ? CONTROL_ERROR_UNSUPPORTED : CONTROL_ERROR_STATE,
		            "cannot return the file at 0x%" PRIx64 " of process %u: %s", address, pid, why);
		return NULL;
	}
	part_choose(&copy, &look);
	const bool copied = control_file_copy(call, &copy, error);

	copy.files->close(copy.file);
	if (!copied)
		return NULL;
	return json_pack(
		"{s:o, s:n, s:o, s:I, s:I, s:n, s:I}", "path",
		control_text(kernel->mappings->file_name(kernel, &walk, look.found.file, name), CONTROL_PATH_BYTES_MAX),
		"build-id", "start", control_hex_address(look.found.start), "length",
		(json_int_t)(look.found.end - look.found.start), "offset", (json_int_t)look.found.file_offset,
		"compression", "pages", (json_int_t)copy.pages);
}

static json_t *method_mapping_read(struct control_call *call, GError **error)
{
	const json_t *bytes = json_object_get(call->arguments, "bytes");
	const json_t *pid = json_object_get(call->arguments, "pid");
	unsigned vcpu = (unsigned)json_integer_value(json_object_get(call->arguments, "vcpu"));
	uint64_t address = control_address(json_object_get(call->arguments, "address"));

	if (pid && (bytes || json_object_get(call->arguments, "vcpu"))) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "argument \"pid\" of mapping-read excludes \"bytes\" and \"vcpu\"");
		return NULL;
	}
	if (pid)
		return process_file_json(call, (uint32_t)json_integer_value(pid), address, error);
	if (!control_vcpu_check(call->server->guest, vcpu, error))
		return NULL;
	return bytes ? bytes_json(call->server->guest, vcpu, address, (size_t)json_integer_value(bytes), error)
	             : file_json(call, address, error);
}

/* ---- modules ---- */

static json_t *place_json(uint64_t address, const struct module_place *place)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "address", control_hex_address(address), "module",
	                 control_text(place->module, MODULE_NAME_BYTES), "symbol",
	                 control_text(place->symbol, SYMBOL_BYTES_MAX), "start", control_hex_address(place->address),
	                 "offset", (json_int_t)place->file_offset, "bytes", (json_int_t)place->bytes);
}

static json_t *method_module_symbols(struct control_call *call, GError **error)
{
	struct session_modules *modules = session_modules_read(call->server->session, error);
	json_t *symbols = json_array(), *address;
	struct module_place place;
	size_t i;

	if (!modules)
		return json_decref(symbols), NULL;
	json_array_foreach(json_object_get(call->arguments, "addresses"), i, address) {
		uint64_t value = control_address(address);

		if (session_modules_find(modules, value, &place))
			json_array_append_new(symbols, place_json(value, &place));
	}
	const uint64_t left_out = session_modules_left_out(modules);

	session_modules_free(modules);
	return json_pack("{s:o, s:I}", "symbols", symbols, "left-out", (json_int_t)left_out);
}

/* ---- the methods ---- */

static const struct method_argument mapping_read_arguments[] = {
	{"address", "guest virtual address", ARGUMENT_ADDRESS},
	{"bytes", "number of bytes of the guest's memory to read; by default, the mapped file is returned",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = MAPPING_BYTES_MAX},
	{"pid",
         "process of the guest: the file that it has mapped at the address, if the guest's kernel is known with its types",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = UINT32_MAX},
	{"vcpu", "vCPU with the page tables to use; by default, vCPU 0", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = GUEST_VCPUS_MAX - 1},
	{0},
};

static const struct method_argument module_symbols_arguments[] = {
	{"addresses", "guest virtual addresses, \"0x\" and hexadecimal digits", ARGUMENT_STRINGS, .min = 1,
         .max = VPROF_MODULE_SYMBOLS_MAX},
	{0},
};

static const struct method_member mapping_members[] = {
	{"path", "path of the file", MEMBER_STRING, .optional = true, .nullable = true},
	{"build-id", "build-id of the file", MEMBER_STRING, .optional = true, .nullable = true},
	{"start", "guest virtual address of the begin of the mapping", MEMBER_ADDRESS, .optional = true},
	{"length", "bytes of the mapping", MEMBER_INTEGER, .optional = true},
	{"offset", "offset in the file, after decompression", MEMBER_INTEGER, .optional = true},
	{"compression", "compression of the file; null: none", MEMBER_STRING, .optional = true, .nullable = true},
	{"pages",
         "with pid: pages of the mapping that the guest has in memory and the descriptor has, at most 2 MiB around the address; the others are holes",
         MEMBER_INTEGER, .optional = true},
	{"bytes", "the bytes that were asked for, in hexadecimal digits, instead of all other members", MEMBER_STRING,
         .optional = true},
	{0},
};

static const struct method_member symbol_members[] = {
	{"address", "address that was asked for", MEMBER_ADDRESS},
	{"module", "module at the address", MEMBER_STRING},
	{"symbol", "symbol at the address", MEMBER_STRING},
	{"start", "where the symbol begins", MEMBER_ADDRESS},
	{"offset", "offset of the symbol in the module's code, as in the mapping of the module", MEMBER_INTEGER},
	{"bytes", "size of the symbol", MEMBER_INTEGER},
	{0},
};

static const struct method_member symbols_members[] = {
	{"symbols", "symbols of those addresses that are in a module", MEMBER_OBJECTS, .members = symbol_members},
	{"left-out", "symbols of these modules that do not fit into the memory for them", MEMBER_INTEGER},
	{0},
};

const struct control_method mapping_methods[] = {
	{
		.name = "mapping-read",
		.summary = "returns the file that is mapped at a guest address, or the bytes there",
		.returns = mapping_members,
		.descriptors = "the file, unless bytes were asked for; with pid, memory of its size",
		.role = ROLE_INSTRUMENT,
		.arguments = mapping_read_arguments,
		.run = method_mapping_read,
	},
	{
		.name = "module-symbols",
		.summary = "looks up addresses in the symbols of the guest kernel's loadable modules, as they are now",
		.returns = symbols_members,
		.role = ROLE_INSTRUMENT,
		.arguments = module_symbols_arguments,
		.run = method_module_symbols,
	},
	{0},
};
