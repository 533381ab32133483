// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traps in the pages of files (linux/file_code.h), which all processes see that execute the file. A patch is found anew
 * before each change, by inode and index, and its byte is changed only where the page is clean and has what is expected
 * there. Where a trap was ever laid, one may be left behind: in a copy of the page that a process has for itself, or in
 * a page that is not in memory. So a patch is known for good, and a trap that is executed later is undone then.
 */
#ifndef VPROF_KVM_VCPU_FILE_PATCH_H
#define VPROF_KVM_VCPU_FILE_PATCH_H

#include <stdatomic.h>

#include "guest/file_code.h"

#define FILE_PATCHES_MAX 4096u

/* [I] immutable, [M] main thread, [v] a vCPU's thread, [a] atomic. */
struct file_patch {
	struct file_code code;   /* [I] */
	unsigned users;          /* [M] */
	bool was_laid;           /* [v] of the first vCPU, on which all of them are settled */
	_Atomic bool is_wanted;  /* [a] it has users, and is not lost */
	_Atomic bool is_lost;    /* [a] the guest is about to write the page to its disk, or has other code there */
	_Atomic bool is_settled; /* [a] without users: its trap is gone, as far as it was in memory */
};

/* [a] `n` is stored with release order behind a new patch; `all` only grows. */
struct file_patches {
	struct guest *guest; /* [I] */
	/* [I] The host memory of a byte of the guest; NULL: there is none. */
	uint8_t *(*memory)(struct guest *guest, gpa_t at);
	uint8_t trap; /* [I] */
	_Atomic size_t n;
	struct file_patch *all[FILE_PATCHES_MAX];
};

void file_patches_init(struct file_patches *patches, struct guest *guest, uint8_t trap,
                       uint8_t *(*memory)(struct guest *guest, gpa_t at));
void file_patches_deinit(struct file_patches *patches);

/* Adds a user; the trap is laid by file_patch_settle. NULL: FILE_PATCHES_MAX. */
struct file_patch *file_patches_add(struct file_patches *patches, const struct file_code *code);
/* The patch that has users, or any that had; NULL. */
struct file_patch *file_patches_find(const struct file_patches *patches, const struct file_code *code);
/* Removes a user; the trap is lifted by file_patch_settle. */
void file_patch_drop(struct file_patch *patch);

/*
 * Lays or lifts the trap, if the page is there and may be changed. `alone`: no vCPU is in the guest; otherwise nothing
 * is changed. Returns whether it would be. `walk`: as file_code_find.
 */
bool file_patch_settle(struct file_patches *patches, struct file_patch *patch, struct page_walk *walk, bool alone);
/* Whether there may be something to do for file_patch_settle later. */
bool file_patches_unsettled(const struct file_patches *patches);

enum file_trap {
	FILE_TRAP_NONE, /* it is no trap of ours */
	FILE_TRAP_GONE, /* there is none any more, or no memory: the guest goes on with what is there */
	FILE_TRAP_OURS,
};
/*
 * A vCPU has executed a trap, in user mode, with these registers: of which patch, and its place in memory. On its
 * thread.
 */
enum file_trap file_patches_hit(const struct file_patches *patches, unsigned vcpu, const struct guest_regs *regs,
                                struct file_patch **patch, uint8_t **place);
/* It cannot be executed any more: it fires no more. Any thread. */
void file_patch_lose(struct file_patch *patch);
/* Puts the instruction back there, if it is a trap still. */
void file_patch_lift(const struct file_patches *patches, const struct file_patch *patch, uint8_t *place);

/* In bytes that were read in a file: the instructions that traps have replaced. */
void file_patches_put_back(const struct file_patches *patches, uint64_t mapping, uint64_t offset, uint8_t *code,
                           size_t n);

#endif
