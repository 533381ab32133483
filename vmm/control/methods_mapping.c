// SPDX-License-Identifier: BSD-2-Clause
/* What is at an address of the guest: the bytes, the file, or the symbol of a module. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "control/method_priv.h"
#include "guest/guest_debug.h"
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
	page_walk_init(&walk, guest, regs.cr3, regs.la57);
	request->done = page_walk_read(&walk, (gva_t){request->address}, request->bytes, request->n);
}

static json_t *bytes_json(struct guest *guest, unsigned vcpu, uint64_t address, size_t n, GError **error)
{
	g_autofree uint8_t *bytes = g_malloc(n);
	struct bytes_request request = {.guest = guest, .vcpu = vcpu, .address = address, .n = n, .bytes = bytes};

	if (guest->debug && vcpu < guest->vcpus)
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

/* Up to Linux 6.14, per-CPU data is linked at 0; no CPU has it there (arch/x86/kernel/vmlinux.lds.S). */
static bool is_per_cpu(const struct image *image, const struct image_segment *segment)
{
	return image_is_linux(image) && segment->gva == 0;
}

static const struct image_segment *find_segment(const struct image *image, uint64_t address)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if (address - segments[i].gva < segments[i].memory_bytes && !is_per_cpu(image, &segments[i]))
			return &segments[i];
	}
	return NULL;
}

static json_t *segment_json(const struct guest *guest, const struct image *image, const struct image_segment *segment)
{
	return json_pack("{s:o, s:o, s:o, s:I, s:I, s:s?}", "path",
	                 control_text(guest->kernel_path, CONTROL_PATH_BYTES_MAX), "build-id",
	                 control_text(guest->build_id, CONTROL_PATH_BYTES_MAX), "start",
	                 control_hex_address(segment->gva), "length", (json_int_t)segment->memory_bytes, "offset",
	                 (json_int_t)segment->file_offset, "compression", image_compression(image));
}

static json_t *file_json(struct control_call *call, uint64_t address, GError **error)
{
	const struct guest *guest = call->server->guest;

	if (!guest->kernel_path) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		            "cannot return the guest's kernel image: it is not known");
		return NULL;
	}
	struct image *image = image_open(guest->kernel_path, error);
	const struct image_segment *segment = image ? find_segment(image, address) : NULL;
	json_t *answer = NULL;
	if (segment && (call->own_fd = open(guest->kernel_path, O_RDONLY | O_CLOEXEC)) >= 0) {
		call->fds[call->n_fds++] = call->own_fd;
		answer = segment_json(guest, image, segment);
	} else if (segment) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot open %s: %s", guest->kernel_path,
		            g_strerror(errno));
	} else if (image) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
		            "0x%" PRIx64
		            " is in no file that the engine knows; give \"bytes\" to read the guest's memory",
		            address);
	}
	image_free(image);
	return answer;
}

static json_t *method_mapping_read(struct control_call *call, GError **error)
{
	const json_t *bytes = json_object_get(call->arguments, "bytes");
	unsigned vcpu = (unsigned)json_integer_value(json_object_get(call->arguments, "vcpu"));
	uint64_t address = control_address(json_object_get(call->arguments, "address"));

	return bytes ? bytes_json(call->server->guest, vcpu, address, (size_t)json_integer_value(bytes), error)
	             : file_json(call, address, error);
}

/* ---- modules ---- */

static json_t *place_json(uint64_t address, const struct module_place *place)
{
	return json_pack("{s:o, s:o, s:o, s:I, s:I}", "address", control_hex_address(address), "module",
	                 control_text(place->module, MODULE_NAME_BYTES), "symbol",
	                 control_text(place->symbol, SYMBOL_BYTES_MAX), "offset", (json_int_t)place->file_offset,
	                 "bytes", (json_int_t)place->bytes);
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
	session_modules_free(modules);
	return json_pack("{s:o}", "symbols", symbols);
}

/* ---- the methods ---- */

static const struct method_argument mapping_read_arguments[] = {
	{"address", "guest virtual address", ARGUMENT_ADDRESS},
	{"bytes", "number of bytes of the guest's memory to read; by default, the mapped file is returned",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = MAPPING_BYTES_MAX},
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
	{"bytes", "the bytes that were asked for, in hexadecimal digits, instead of all other members", MEMBER_STRING,
         .optional = true},
	{0},
};

static const struct method_member symbol_members[] = {
	{"address", "address that was asked for", MEMBER_ADDRESS},
	{"module", "module at the address", MEMBER_STRING},
	{"symbol", "symbol at the address", MEMBER_STRING},
	{"offset", "offset of the symbol in the module's code, as in the mapping of the module", MEMBER_INTEGER},
	{"bytes", "size of the symbol", MEMBER_INTEGER},
	{0},
};

static const struct method_member symbols_members[] = {
	{"symbols", "symbols of those addresses that are in a module", MEMBER_OBJECTS, .members = symbol_members},
	{0},
};

const struct control_method mapping_methods[] = {
	{
		.name = "mapping-read",
		.summary = "returns the file that is mapped at a guest address, or the bytes there",
		.returns = mapping_members,
		.descriptors = "the file, unless bytes were asked for",
		.role = ROLE_INSTRUMENT,
		.arguments = mapping_read_arguments,
		.run = method_mapping_read,
	},
	{
		.name = "module-symbols",
		.summary =
			"looks up addresses in the symbols of the guest kernel's loadable modules, as they are now; a session must have taken a sample",
		.returns = symbols_members,
		.role = ROLE_INSTRUMENT,
		.arguments = module_symbols_arguments,
		.run = method_module_symbols,
	},
	{0},
};
