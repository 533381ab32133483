// SPDX-License-Identifier: BSD-2-Clause
/*
 * Patches of a probe of programs, in the pages of its file, which every process executes that has the file mapped. A
 * process leads to the file; the patches stay when it ends, for the next one.
 */
#include "linux/file_code.h"
#include "probe/probe_priv.h"

#define FILES_MAX 8u /* with the program's path: it was replaced by newer ones */

static bool refuse(const struct probe *probe, const char *why, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED, "cannot place %s by patching: %s", probe->spec.name,
	            why);
	return false;
}

bool probe_file_may_place(const struct probe *probe, const struct kernel_layout *kernel, GError **error)
{
	struct guest *guest = probe->set->hub->guest;
	const char *host = guest->debug->why_not_in_files(guest), *why = host ? host : file_code_why_not(kernel);
	g_autofree char *text =
		why ? g_strconcat(why, "; use a breakpoint of the processor (omit \"--breakpoints\")", NULL) : NULL;

	return !text || refuse(probe, text, error);
}

static enum user_found codes_read(struct probe *probe, const struct kernel_layout *kernel, struct page_walk *walk,
                                  uint64_t file, struct file_code codes[], GError **error)
{
	const struct user_program *program = probe_user_program(probe->user);

	for (size_t i = 0; i < program->n_places; i++) {
		if (!file_code_open(&codes[i], kernel, walk, file, program->places[i]) ||
		    !file_code_read(&codes[i], walk))
			return USER_LATER;
		if (codes[i].n != 0)
			continue;
		refuse(probe, "there is no instruction, or one on the border of two pages", error);
		return USER_REFUSED;
	}
	return USER_HERE;
}

static bool has_patch(const GPtrArray *sites, const struct file_code *code)
{
	for (guint i = 0; i < sites->len; i++)
		if (file_code_equal(&((const struct user_site *)g_ptr_array_index(sites, i))->code, code))
			return true;
	return false;
}

static bool add(struct probe *probe, GPtrArray *sites, const struct file_code *code, size_t place, GError **error)
{
	struct guest *guest = probe->set->hub->guest;
	struct user_site *site = g_new0(struct user_site, 1);

	*site = (struct user_site){
		.breakpoint = {.in_file = &site->code,
	                       .what = probe->spec.name,
	                       .kind = GUEST_BREAKPOINT_PATCH,
	                       .hit = probe_event_in_program},
		.code = *code,
		.place = place,
		.probe = probe,
	};
	if (guest->debug->breakpoint_add(guest, &site->breakpoint, error)) {
		g_ptr_array_add(sites, site);
		return true;
	}
	g_free(site);
	return false;
}

static void keep(struct probe *probe, GPtrArray *sites, guint n)
{
	struct guest *guest = probe->set->hub->guest;

	while (sites->len > n) {
		struct user_site *site = g_ptr_array_index(sites, sites->len - 1);

		guest->debug->breakpoint_remove(guest, &site->breakpoint);
		g_ptr_array_remove_index(sites, sites->len - 1);
	}
}

enum user_found probe_file_place(struct probe *probe, GPtrArray *sites, const struct kernel_layout *kernel,
                                 struct page_walk *walk, uint64_t file, GError **error)
{
	const size_t n = probe_user_program(probe->user)->n_places;
	struct file_code codes[USER_PLACES_MAX];
	const enum user_found found = codes_read(probe, kernel, walk, file, codes, error);
	const guint before = sites->len;

	if (found != USER_HERE || has_patch(sites, &codes[0]))
		return found;
	if (before >= FILES_MAX * n) {
		refuse(probe, "the file was replaced too often; remove the probe and add it again", error);
		return USER_REFUSED;
	}
	for (size_t i = 0; i < n; i++) {
		if (add(probe, sites, &codes[i], i, error))
			continue;
		keep(probe, sites, before);
		return USER_REFUSED;
	}
	return USER_HERE;
}

void probe_file_remove(struct probe *probe, GPtrArray *sites)
{
	keep(probe, sites, 0);
}

bool probe_file_intact(struct probe *probe, const GPtrArray *sites)
{
	struct guest *guest = probe->set->hub->guest;

	for (guint i = 0; i < sites->len; i++) {
		const struct user_site *site = g_ptr_array_index(sites, i);

		if (!guest->debug->breakpoint_intact(guest, &site->breakpoint))
			return false;
	}
	return true;
}
