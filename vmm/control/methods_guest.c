// SPDX-License-Identifier: BSD-2-Clause
/* query-guest, guest-start, guest-stop, kernel-image */
#include "control/method_priv.h"

/* For the greeting: what it takes to recognise a guest. */
json_t *control_guest_summary(const struct guest *guest)
{
	return json_pack("{s:o, s:s, s:o, s:I, s:i}", "name", control_text(guest->name, CONTROL_PATH_BYTES_MAX), "kind",
	                 guest->kind, "kernel", control_text(guest->kernel_path, CONTROL_PATH_BYTES_MAX),
	                 "memory-bytes", (json_int_t)guest->memory_bytes, "vcpus", (int)guest->vcpus);
}

json_t *method_query_guest(struct control_call *call, GError **error G_GNUC_UNUSED)
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

json_t *method_guest_start(struct control_call *call, GError **error)
{
	struct guest *guest = call->server->guest;
	if (guest->state != GUEST_CREATED) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE, "cannot start guest %s: it %s", guest->name,
		            guest->state == GUEST_RUNNING ? "runs already" : "has ended");
		return NULL;
	}
	return guest->ops->start(guest, error) ? json_object() : NULL;
}

json_t *method_guest_stop(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	struct guest *guest = call->server->guest;
	if (guest->state != GUEST_ENDED)
		guest->ops->stop(guest, GUEST_END_STOPPED, "stopped by a client");
	return json_object();
}

json_t *method_kernel_image(struct control_call *call, GError **error)
{
	const struct guest *guest = call->server->guest;
	const struct image *image = guest->kernel_image;
	if (!image) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_UNSUPPORTED, "%s",
		            guest->kernel_why ? guest->kernel_why : "the kernel is a file that the engine was given");
		return NULL;
	}
	call->fds[call->n_fds++] = guest->kernel_fd;
	g_autofree char *slide = g_strdup_printf("0x%" G_GINT64_MODIFIER "x", image_slide(image));
	return json_pack("{s:o, s:s}", "path", control_text(image_path(image), CONTROL_PATH_BYTES_MAX), "slide", slide);
}
