// SPDX-License-Identifier: BSD-2-Clause
/* The architecture of a guest: of its kernel's file, of its programs and of a recording. */
#ifndef VPROF_RECORD_ARCH_H
#define VPROF_RECORD_ARCH_H

#include <stdbool.h>
#include <stdint.h>

enum arch { ARCH_UNKNOWN, ARCH_X86_64, ARCH_ARM64, ARCHS };

/* "x86-64", "arm64"; "an unknown architecture". */
const char *arch_name(enum arch arch);

/* "frame pointers", "frame records": what leads from a frame to its caller, in the words of its call standard. */
const char *arch_frames_name(enum arch arch);
/* Whether a report says that a recording is of it; x86-64 goes without saying. */
bool arch_is_said(enum arch arch);

/* As `uname -m` and perf.data's header say it: "x86_64", "aarch64". NULL for an unknown one. */
const char *arch_uname(enum arch arch);
enum arch arch_of_uname(const char *name);

/* By e_machine of an ELF header (System V ABI, "ELF Header"). ARCH_UNKNOWN for all others. */
enum arch arch_of_elf(uint16_t e_machine);
uint16_t arch_elf(enum arch arch);

/* What this program was built for, which is what KVM runs on the host. */
enum arch arch_here(void);

#endif
