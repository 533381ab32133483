// SPDX-License-Identifier: BSD-2-Clause
/* Breakpoints in pages of files, for guest_debug_ops; they are looked after as long as there are any. */
#include "kvm/vcpu/vcpu_file_patch.h"
#include "kvm/vm_parts.h"

#define LOOK_MS 100u

/* For file_patches_init. */
uint8_t *vm_file_memory(struct guest *guest, gpa_t at)
{
	return memory_at(vm_of(guest)->machine.memory, at, 1);
}

static void watch_end(struct vm *vm)
{
	if (!vm->file_watch)
		return;
	g_source_destroy(vm->file_watch);
	g_clear_pointer(&vm->file_watch, g_source_unref);
}

static gboolean look(gpointer data)
{
	struct vm *vm = data;

	vcpu_file_patches_settle(&vm->machine, NULL);
	if (!file_patches_unsettled(&vm->machine.file_patches))
		watch_end(vm);
	return G_SOURCE_CONTINUE;
}

static void watch_begin(struct vm *vm)
{
	if (vm->file_watch)
		return;
	vm->file_watch = g_timeout_source_new(LOOK_MS);
	g_source_set_callback(vm->file_watch, look, vm, NULL);
	g_source_set_static_name(vm->file_watch, "patches in files");
	g_source_attach(vm->file_watch, NULL);
}

void vm_file_patches_end(struct vm *vm)
{
	watch_end(vm);
	file_patches_deinit(&vm->machine.file_patches);
}

static bool refuse(const struct guest_breakpoint *breakpoint, const char *why, GError **error)
{
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
	            "cannot place %s by patching: %s; use a breakpoint of the processor (omit \"--breakpoints\")",
	            breakpoint->what, why);
	return false;
}

bool vm_file_patch_add(struct vm *vm, const struct guest_breakpoint *breakpoint, GError **error)
{
	const struct file_code *code = breakpoint->in_file;
	const char *host = vcpu_arch_why_no_file_patch(&vm->machine);
	const char *why = host ? host : vcpu_arch_why_not_executed(code->code, code->n);
	struct file_patch *patch = why ? NULL : file_patches_add(&vm->machine.file_patches, code);

	if (!patch)
		return refuse(breakpoint, why ? why : "too many places have been patched in this guest", error);
	vcpu_file_patches_settle(&vm->machine, patch);
	watch_begin(vm);
	if (!atomic_load(&patch->is_lost))
		return true;
	vm_file_patch_remove(vm, breakpoint);
	return refuse(breakpoint, "the guest has written to that page of the file, and it is not on its disk yet",
	              error);
}

bool vm_file_patch_intact(struct vm *vm, const struct guest_breakpoint *breakpoint)
{
	const struct file_patch *patch = file_patches_find(&vm->machine.file_patches, breakpoint->in_file);

	return patch && !atomic_load(&patch->is_lost);
}

void vm_file_patch_remove(struct vm *vm, const struct guest_breakpoint *breakpoint)
{
	struct file_patch *patch = file_patches_find(&vm->machine.file_patches, breakpoint->in_file);

	file_patch_drop(patch);
	vcpu_file_patches_settle(&vm->machine, patch);
}
