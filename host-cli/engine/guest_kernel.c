// SPDX-License-Identifier: BSD-2-Clause
#include "engine/guest_kernel.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_process.h"
#include "lib/parser/parser.h"
#include "ui/message.h"
#include "ui/text.h"

/* Of its file, and memory with what vprof-parse has said of its symbols, if there are two descriptors. */
static struct image *image_received(const json_t *answer, const int *fds, size_t n_fds, GError **error)
{
	const char *path = member_text(answer, "path"), *slide = member_text(answer, "slide");
	struct image *image = image_open_fd(path ? path : IMAGE_GUEST_MEMORY, IMAGE_KERNEL, fds[0], error);

	if (image && strcmp(image_path(image), IMAGE_GUEST_MEMORY) == 0)
		image_set_of_guest(image);
	if (image)
		image_set_slide(image, slide ? g_ascii_strtoull(slide, NULL, 16) : 0);
	if (image && n_fds > 1 && sealed_is(fds[1]))
		image_give_symbols(image, fcntl(fds[1], F_DUPFD_CLOEXEC, 0));
	return image;
}

/* NULL if the engine does not know it. */
static struct image *image_ask(struct client *client, GError **error)
{
	struct image *image = NULL;
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer = client_execute(client, "kernel-image", NULL, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);

	if (answer && n_fds > 0)
		image = image_received(answer, fds, n_fds, error);
	else if (answer)
		g_set_error_literal(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL,
		                    "the engine gave no descriptor of the kernel");
	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	return image;
}

/* Only the engine knows where KASLR has put it. */
static struct image *image_open_there(struct client *client, const json_t *guest, const char *path, GError **error)
{
	g_autoptr(GError) why = NULL;
	struct image *found = image_ask(client, &why), *image;

	/* An engine that was given its kernel as a file hands over only what it has just unpacked. */
	if (!path && !found)
		path = member_text(guest, "kernel");
	if (!path && !found)
		g_propagate_error(error, g_steal_pointer(&why));
	if (!path)
		return found;
	image = image_open(path, error);
	if (image && found)
		image_set_slide(image, image_slide(found));
	image_free(found);
	return image;
}

struct guest_kernel guest_kernel_load(struct client *client, const json_t *guest, const char *path, GError **error)
{
	struct guest_kernel kernel = {.image = image_open_there(client, guest, path, error)};

	if (!kernel.image)
		return kernel;
	kernel.symtab = symtab_load(kernel.image, error);
	image_give_symbols(kernel.image, -1);
	g_autofree char *left_out = kernel.symtab ? symtab_left_out_text(kernel.symtab) : NULL;

	if (left_out)
		warn("the guest's kernel: %s", left_out);
	return kernel;
}

/* All symbols of a distribution's kernel take 100 ms to read, those of its code 4 MB to keep. */
struct guest_kernel guest_kernel_load_code(struct client *client, const json_t *guest)
{
	const struct guest_kernel kernel = guest_kernel_load(client, guest, NULL, NULL);

	if (kernel.symtab)
		symtab_keep_code(kernel.symtab);
	if (kernel.image)
		image_forget(kernel.image);
	return kernel;
}

void guest_kernel_clear(struct guest_kernel *kernel)
{
	g_clear_pointer(&kernel->symtab, symtab_free);
	g_clear_pointer(&kernel->image, image_free);
}
