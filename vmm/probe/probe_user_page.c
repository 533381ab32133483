// SPDX-License-Identifier: BSD-2-Clause
/*
 * Patches of a probe of programs, in the pages of its file, which every process executes that has the file mapped. A
 * process leads to the file; the patches stay when it ends, for the next one, and each process is asked at its hit.
 */
#include "guest/file_code.h"
#include "probe/user_priv.h"

#define FILES_MAX 8u /* with the program's path: it was replaced by newer ones */

/* [I] immutable while it is used. */
struct patch {
	struct probe_site site; /* [I] first: the argument of `hit` */
	struct file_code code;  /* [I] */
	size_t place;           /* [I] which of the program's places */
};

struct user_page {
	struct user user;   /* with its own legend */
	GPtrArray *patches; /* [M] of struct patch */
};

static bool refuse(const struct user *user, const char *why, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED, "cannot place %s by patching: %s",
	            user->base.probe->spec.name, why);
	return false;
}

static bool may_place(const struct user *user, const struct os_kernel *kernel, GError **error)
{
	struct guest *guest = user->base.probe->set->hub->guest;
	const char *host = guest->debug->why_not_in_files(guest), *why = host ? host : kernel->why[OS_FILE_CODE];
	g_autofree char *text =
		why ? g_strconcat(why, "; use a breakpoint of the processor (omit \"--breakpoints\")", NULL) : NULL;

	return !text || refuse(user, text, error);
}

/* ---- hits ---- */

/* By a thread of another name, too, once its process was found. */
static bool has_process(const struct user *self, uint64_t root, uint64_t mm)
{
	for (size_t i = 0; i < USER_PROCESSES_MAX; i++)
		if (atomic_load_explicit(&self->processes[i].root, memory_order_acquire) == root &&
		    atomic_load_explicit(&self->processes[i].mm, memory_order_acquire) == mm)
			return true;
	return false;
}

static void page_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     const struct guest_gprs *gprs)
{
	const struct patch *patch = (const struct patch *)breakpoint;
	const struct user *user = (const struct user *)patch->site.placement;
	const struct os_kernel *kernel = user->base.probe->set->kernel;
	struct page_walk walk;
	struct task task;

	if (!probe_records(user->base.probe, vcpu) || !guest_regs_user(regs) || !kernel ||
	    !user_task_read(user, vcpu, regs, &walk, &task))
		return;
	const struct user_hit hit = {
		.mm = task.mm, .place = patch->place, .enters = patch->place == 0, .leaves = patch->place > 0};
	if (user_program_has(&user->program, kernel, &walk, &task) || has_process(user, user_root(regs), task.mm))
		user_fire(user, &hit, vcpu, regs, gprs);
}

/* ---- patches ---- */

/* USER_LATER: its pages are not in memory. */
static enum user_found codes_read(const struct user *user, const struct user_look *look, uint64_t file,
                                  struct file_code codes[], GError **error)
{
	for (size_t i = 0; i < user->program.n_places; i++) {
		if (!look->kernel->file_code->open(&codes[i], look->kernel, look->walk, file,
		                                   user->program.places[i]) ||
		    !look->kernel->file_code->read(&codes[i], look->walk))
			return USER_LATER;
		if (codes[i].n != 0)
			continue;
		refuse(user, "there is no instruction, or one on the border of two pages", error);
		return USER_REFUSED;
	}
	return USER_HERE;
}

static bool has_patch(const struct user_page *self, const struct file_code *code)
{
	for (guint i = 0; i < self->patches->len; i++)
		if (file_code_equal(&((const struct patch *)g_ptr_array_index(self->patches, i))->code, code))
			return true;
	return false;
}

static bool patch_add(struct user_page *self, const struct file_code *code, size_t place, GError **error)
{
	const struct probe *probe = self->user.base.probe;
	struct guest *guest = probe->set->hub->guest;
	struct patch *patch = g_new0(struct patch, 1);

	*patch = (struct patch){
		.site = {{.in_file = &patch->code,
	                  .what = probe->spec.name,
	                  .kind = GUEST_BREAKPOINT_PATCH,
	                  .hit = page_hit},
	                 &self->user.base},
		.code = *code,
		.place = place,
	};
	if (guest->debug->breakpoint_add(guest, &patch->site.breakpoint, error)) {
		g_ptr_array_add(self->patches, patch);
		return true;
	}
	g_free(patch);
	return false;
}

static void patches_keep(struct user_page *self, guint n)
{
	while (self->patches->len > n) {
		struct patch *patch = g_ptr_array_index(self->patches, self->patches->len - 1);

		probe_sites_remove(self->user.base.probe, &patch->site, 1);
		g_ptr_array_remove_index(self->patches, self->patches->len - 1);
	}
}

/* In the file, of which a process has the struct file at `file`, unless they are there. USER_REFUSED: an error. */
static enum user_found patches_add(struct user_page *self, const struct user_look *look, uint64_t file, GError **error)
{
	const size_t n = self->user.program.n_places;
	struct file_code codes[USER_PLACES_MAX];
	const enum user_found found = codes_read(&self->user, look, file, codes, error);
	const guint before = self->patches->len;

	if (found != USER_HERE || has_patch(self, &codes[0]))
		return found;
	if (before >= FILES_MAX * n) {
		refuse(&self->user, "the file was replaced too often; remove the probe and add it again", error);
		return USER_REFUSED;
	}
	for (size_t i = 0; i < n; i++) {
		if (patch_add(self, &codes[i], i, error))
			continue;
		patches_keep(self, before);
		return USER_REFUSED;
	}
	return USER_HERE;
}

static void enter(struct user *user, struct user_look *look, struct user_looked *looked, const struct user_place *place)
{
	g_autoptr(GError) why = NULL;

	looked->found = patches_add((struct user_page *)user, look, place->file, &why);
	if (looked->found == USER_HERE)
		looked->process = user_process_add(user, place);
	if (!why)
		return;
	if (look->is_first)
		g_propagate_error(look->error, g_steal_pointer(&why));
	else
		user_count_unplaced(user, looked);
	look->failed |= look->is_first;
}

/* ---- the placement ---- */

static const struct user_means means = {.may_place = may_place, .enter = enter};

static bool place(struct probe *probe, GError **error)
{
	struct user_page *self = (struct user_page *)placement_new(probe, sizeof(*self));

	self->patches = g_ptr_array_new_with_free_func(g_free);
	return user_place(&self->user, &means, error);
}

static void unplace(struct placement *placement)
{
	struct user_page *self = (struct user_page *)placement;

	user_leave_all(&self->user);
	patches_keep(self, 0);
	g_ptr_array_unref(self->patches);
	user_free(&self->user);
}

static void describe(const struct placement *placement, struct probe_info *info)
{
	const struct user_page *self = (const struct user_page *)placement;

	user_describe(placement, info);
	for (guint i = 0; i < self->patches->len; i++)
		probe_sites_describe(placement->probe,
		                     &((const struct patch *)g_ptr_array_index(self->patches, i))->site, 1, info);
	info->breakpoint = GUEST_BREAKPOINT_PATCH;
}

const struct placement_ops placement_page = {
	.place = place, .remove = unplace, .describe = describe, .count = user_count, .start = user_start};
