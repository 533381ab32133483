// SPDX-License-Identifier: BSD-2-Clause
/* mapping-read: what is behind an address of the guest, for a client that looks symbols up elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "control/control_priv.h"
#include "guest/guest_debug.h"
#include "guest/page_walk.h"
#include "lib/symbol/image.h"

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
		            ": they are not memory in the page tables that vCPU %u "
		            "uses now",
		            n, address, vcpu);
		return NULL;
	}
	return json_pack("{s:o}", "bytes", control_hex(bytes, n));
}

/* ---- the file ---- */

static const struct image_segment *find_segment(const struct image *image, uint64_t address)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);
	for (size_t i = 0; i < n; i++) {
		if (address - segments[i].gva < segments[i].memory_bytes)
			return &segments[i];
	}
	return NULL;
}

static json_t *segment_json(const struct guest *guest, const struct image *image, const struct image_segment *segment)
{
	char start[24];
	g_snprintf(start, sizeof(start), "0x%" PRIx64, segment->gva);
	return json_pack("{s:o, s:o, s:s, s:I, s:I, s:s?}", "path",
	                 control_text(guest->kernel_path, CONTROL_PATH_BYTES_MAX), "build-id",
	                 control_text(guest->build_id, CONTROL_PATH_BYTES_MAX), "start", start, "length",
	                 (json_int_t)segment->memory_bytes, "offset", (json_int_t)segment->file_offset, "compression",
	                 image_compression(image));
}

static json_t *file_json(struct control_call *call, uint64_t address, GError **error)
{
	const struct guest *guest = call->server->guest;
	if (!guest->kernel_path) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		            "cannot hand out the guest's kernel image: it is not known");
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
		            "0x%" PRIx64 " is in no file that the engine knows; with \"bytes\", mapping-read reads the "
		            "guest's memory",
		            address);
	}
	image_free(image);
	return answer;
}

json_t *method_mapping_read(struct control_call *call, GError **error)
{
	const json_t *bytes = json_object_get(call->arguments, "bytes");
	unsigned vcpu = (unsigned)json_integer_value(json_object_get(call->arguments, "vcpu"));
	uint64_t address = control_address(json_object_get(call->arguments, "address"));
	return bytes ? bytes_json(call->server->guest, vcpu, address, (size_t)json_integer_value(bytes), error)
	             : file_json(call, address, error);
}
