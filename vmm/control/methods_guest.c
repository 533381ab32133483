// SPDX-License-Identifier: BSD-2-Clause
/* query-guest, guest-start, guest-stop, kernel-image */
#include <fcntl.h>

#include "control/method_priv.h"

/* For the greeting, too: enough to recognise a guest. */
json_t *control_guest_summary(const struct guest *guest)
{
	return json_pack("{s:o, s:s, s:o, s:I, s:i}", "name", control_text(guest->name, CONTROL_PATH_BYTES_MAX), "kind",
	                 guest->kind, "kernel", control_text(guest->kernel_path, CONTROL_PATH_BYTES_MAX),
	                 "memory-bytes", (json_int_t)guest->memory_bytes, "vcpus", (int)guest->vcpus);
}

static json_t *method_query_guest(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	const struct guest *guest = call->server->guest;
	json_t *answer = control_guest_summary(guest);

	const struct {
		const char *name, *text;
	} texts[] = {
		{"initrd", guest->initrd_path},
		{"command-line", guest->command_line},
		{"build-id", guest->build_id},
		{"release", guest->release},
		{"pmu", guest->pmu},
	};
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		json_object_set_new(answer, texts[i].name, control_text(texts[i].text, CONTROL_PATH_BYTES_MAX));

	json_object_set_new(answer, "vsock-cid", guest->vsock_cid ? json_integer(guest->vsock_cid) : json_null());

	json_t *quirks = json_array();
	for (char **quirk = guest->quirks; quirk && *quirk; quirk++)
		json_array_append_new(quirks, control_text(*quirk, CONTROL_PATH_BYTES_MAX));
	json_object_set_new(answer, "quirks", quirks);
	return answer;
}

static json_t *method_guest_start(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;

	if (guest->state != GUEST_CREATED) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE, "cannot start guest %s: it %s", guest->name,
		            guest->state == GUEST_RUNNING ? "is already running" : "has ended");
		return NULL;
	}
	return guest->ops->start(guest, error) ? json_object() : NULL;
}

static json_t *method_guest_stop(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	struct guest *guest = call->server->guest;

	if (guest->state != GUEST_ENDED)
		guest->ops->stop(guest, GUEST_END_STOPPED, "stopped by a client");
	return json_object();
}

static json_t *kernel_image_json(const char *path, uint64_t slide)
{
	return json_pack("{s:o, s:o}", "path", control_text(path, CONTROL_PATH_BYTES_MAX), "slide",
	                 control_hex_address(slide));
}

static json_t *method_kernel_image(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	struct image *image = guest->kernel_image;

	if (guest->kernel_unpacked > 0) {
		call->fds[call->n_fds++] = guest->kernel_unpacked;
		return kernel_image_json(guest->kernel_path, 0);
	}
	if (!image) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED, "%s",
		            guest->kernel_why ? guest->kernel_why
		                              : "the kernel is a file that was given to the engine");
		return NULL;
	}
	if (guest->kernel_fd < 0) {
		g_set_error_literal(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED,
		                    "the engine has given the kernel to its client, and keeps no copy (--lean)");
		return NULL;
	}
	call->fds[call->n_fds++] = fcntl(guest->kernel_fd, F_DUPFD_CLOEXEC, 0);
	call->fds[call->n_fds] = image_take_symbols(image);
	call->n_fds += call->fds[call->n_fds] >= 0;
	call->owns_fds = true;
	if (guest->ops->kernel_used)
		guest->ops->kernel_used(guest, GUEST_KERNEL_GIVEN);
	return kernel_image_json(image_path(image), image_slide(image));
}

/* ---- the methods ---- */

static const struct method_member guest_members[] = {
	{"name", "name of the guest", MEMBER_STRING},
	{"kind", "kind of the guest: kvm, qemu, or dump: a file", MEMBER_STRING},
	{"kernel", "path of the kernel image", MEMBER_STRING, .nullable = true},
	{"memory-bytes", "size of the guest's memory", MEMBER_INTEGER},
	{"vcpus", "number of vCPUs", MEMBER_INTEGER},
	{"initrd", "path of the initial RAM disk", MEMBER_STRING, .nullable = true},
	{"command-line", "command line of the kernel", MEMBER_STRING, .nullable = true},
	{"build-id", "build-id of the kernel", MEMBER_STRING, .nullable = true},
	{"release", "release of the kernel, as `uname -r` prints it", MEMBER_STRING, .nullable = true},
	{"pmu", "kind of PMU that the guest has", MEMBER_STRING, .nullable = true},
	{"vsock-cid", "the guest's address for vsock connections", MEMBER_INTEGER, .nullable = true},
	{"quirks", "host quirks, and how the engine handles each", MEMBER_STRINGS},
	{0},
};

static const struct method_member kernel_image_members[] = {
	{"path", "path of the image", MEMBER_STRING},
	{"slide", "offset to add to the addresses in the image", MEMBER_ADDRESS},
	{0},
};

const struct control_method guest_methods[] = {
	{
		.name = "query-guest",
		.summary = "describes the guest; what the engine does not know is null",
		.returns = guest_members,
		.role = ROLE_OBSERVE,
		.run = method_query_guest,
	},
	{
		.name = "kernel-image",
		.summary = "returns the kernel image of an attached guest; before its start, a packed one of another",
		.returns = kernel_image_members,
		.descriptors =
			"the image, an ELF file or a bzImage; for the first client that asks, also its symbols, as vprof-parse gives them",
		.role = ROLE_OBSERVE,
		.run = method_kernel_image,
	},
	{
		.name = "guest-start",
		.summary = "starts the vCPUs of a guest that was created with --paused",
		.role = ROLE_CONTROL,
		.run = method_guest_start,
	},
	{
		.name = "guest-stop",
		.summary = "ends the guest; succeeds if it has already ended",
		.role = ROLE_CONTROL,
		.run = method_guest_stop,
	},
	{0},
};
