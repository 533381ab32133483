// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/file_patch.h"

#include <string.h>

#include "guest/os.h"

#define PAGE_MASK UINT64_C(0xfff)

void file_patches_init(struct file_patches *patches, struct guest *guest, uint8_t trap,
                       uint8_t *(*memory)(struct guest *guest, gpa_t at))
{
	patches->guest = guest;
	patches->memory = memory;
	patches->trap = trap;
	atomic_init(&patches->n, 0);
}

static size_t count(const struct file_patches *patches)
{
	return atomic_load_explicit(&patches->n, memory_order_acquire);
}

void file_patches_deinit(struct file_patches *patches)
{
	for (size_t i = 0; i < count(patches); i++)
		g_free(patches->all[i]);
	atomic_store(&patches->n, 0);
}

/* The last of them: earlier ones are lost. */
struct file_patch *file_patches_find(const struct file_patches *patches, const struct file_code *code)
{
	for (size_t i = count(patches); i-- > 0;)
		if (file_code_equal(&patches->all[i]->code, code))
			return patches->all[i];
	return NULL;
}

static struct file_patch *patch_new(struct file_patches *patches, const struct file_code *code)
{
	const size_t n = count(patches);

	if (n == FILE_PATCHES_MAX)
		return NULL;
	patches->all[n] = g_new0(struct file_patch, 1);
	patches->all[n]->code = *code;
	atomic_store_explicit(&patches->n, n + 1, memory_order_release);
	return patches->all[n];
}

struct file_patch *file_patches_add(struct file_patches *patches, const struct file_code *code)
{
	struct file_patch *patch = file_patches_find(patches, code);

	if (!patch || (patch->users == 0 && atomic_load(&patch->is_lost)))
		patch = patch_new(patches, code);
	if (!patch)
		return NULL;
	patch->users++;
	atomic_store(&patch->is_wanted, !atomic_load(&patch->is_lost));
	atomic_store(&patch->is_settled, false);
	return patch;
}

void file_patch_drop(struct file_patch *patch)
{
	if (--patch->users == 0)
		atomic_store(&patch->is_wanted, false);
}

static bool change(uint8_t *place, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(place, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void file_patch_lose(struct file_patch *patch)
{
	atomic_store(&patch->is_lost, true);
	atomic_store(&patch->is_wanted, false);
}

static bool lift(struct file_patches *patches, struct file_patch *patch, uint8_t *place, bool dirty, bool alone)
{
	if (!alone)
		return true;
	change(place, patches->trap, patch->code.code[0]);
	if (dirty)
		file_patch_lose(patch);
	atomic_store(&patch->is_settled, true);
	return true;
}

static bool lay(struct file_patches *patches, struct file_patch *patch, uint8_t *place, bool alone)
{
	/* It may be another instruction by now, with the same first byte, too. */
	if (memcmp(place, patch->code.code, patch->code.n) != 0) {
		file_patch_lose(patch);
		return false;
	}
	if (alone)
		patch->was_laid |= change(place, patch->code.code[0], patches->trap);
	return true;
}

bool file_patch_settle(struct file_patches *patches, struct file_patch *patch, struct page_walk *walk, bool alone)
{
	const bool is_wanted = atomic_load(&patch->is_wanted);
	gpa_t at;

	if (!is_wanted && atomic_load(&patch->is_settled))
		return false;
	const enum page_state state = patch->code.kernel->file_code->find(&patch->code, walk, &at);
	uint8_t *place = state == PAGE_DIRTY || state == PAGE_CLEAN ? patches->memory(patches->guest, at) : NULL;

	if (!place) {
		if (state == PAGE_ABSENT && !is_wanted)
			atomic_store(&patch->is_settled, true);
		return false;
	}
	if (__atomic_load_n(place, __ATOMIC_RELAXED) == patches->trap) {
		if (!is_wanted || state == PAGE_DIRTY)
			return lift(patches, patch, place, state == PAGE_DIRTY, alone);
		return false;
	}
	if (is_wanted && state == PAGE_CLEAN)
		return lay(patches, patch, place, alone);
	/* A page that is written to without the trap may be clean later. */
	if (is_wanted && !patch->was_laid)
		file_patch_lose(patch);
	if (!is_wanted)
		atomic_store(&patch->is_settled, true);
	return false;
}

bool file_patches_unsettled(const struct file_patches *patches)
{
	for (size_t i = 0; i < count(patches); i++)
		if (atomic_load(&patches->all[i]->is_wanted) || !atomic_load(&patches->all[i]->is_settled))
			return true;
	return false;
}

/* ---- hits ---- */

/* In the page of the file, wherever it is now, or in a copy that the process has. */
static bool is_of(const struct file_patches *patches, const struct file_patch *patch, unsigned vcpu,
                  const struct guest_regs *regs, struct page_walk *kernels, gpa_t at)
{
	const uint64_t ip = guest_regs_ip(regs);
	gpa_t now = {0};

	if (((patch->code.offset ^ ip) & PAGE_MASK) != 0)
		return false;
	const enum page_state state = patch->code.kernel->file_code->find(&patch->code, kernels, &now);
	if ((state == PAGE_DIRTY || state == PAGE_CLEAN) && now.value == at.value)
		return true;
	return patch->code.kernel->file_code->is_mapped(&patch->code, patches->guest, vcpu, regs, ip);
}

enum file_trap file_patches_hit(const struct file_patches *patches, unsigned vcpu, const struct guest_regs *regs,
                                struct file_patch **patch, uint8_t **place)
{
	struct page_walk users, kernels;
	gpa_t at;

	page_walk_init_regs(&users, patches->guest, regs);
	if (!page_walk_translate(&users, (gva_t){guest_regs_ip(regs)}, &at) ||
	    !(*place = patches->memory(patches->guest, at)) ||
	    __atomic_load_n(*place, __ATOMIC_RELAXED) != patches->trap)
		return FILE_TRAP_GONE;
	file_code_walk(patches->guest, regs, &kernels);
	for (size_t i = count(patches); i-- > 0;) {
		*patch = patches->all[i];
		if (is_of(patches, *patch, vcpu, regs, &kernels, at))
			return FILE_TRAP_OURS;
	}
	return FILE_TRAP_NONE;
}

void file_patch_lift(const struct file_patches *patches, const struct file_patch *patch, uint8_t *place)
{
	change(place, patches->trap, patch->code.code[0]);
}

void file_patches_put_back(const struct file_patches *patches, uint64_t mapping, uint64_t offset, uint8_t *code,
                           size_t n)
{
	for (size_t i = 0; i < count(patches); i++) {
		const struct file_code *of = &patches->all[i]->code;

		if (of->mapping == mapping && of->offset - offset < n && code[of->offset - offset] == patches->trap)
			code[of->offset - offset] = of->code[0];
	}
}
