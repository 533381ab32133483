// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page tables of a Linux kernel, found in guest memory alone: for hosts where no register that leads to them is
 * known (VMX keeps CR3 in the VMCS). The kernel maps itself by a table that looks like no other page: level3_kernel_pgt
 * has 510 empty entries and two that lead on, and lies beside init_top_pgt (arch/x86/kernel/head_64.S).
 *
 * The VMCOREINFO note has swapper_pg_dir and the slide, too, but not its own address: only the guest's sysfs and QEMU's
 * fw_cfg (with -device vmcoreinfo) tell that, neither of which is in the guest's memory. It would have to be looked for
 * as well, with less to tell it from copies: kexec's crash kernel and old boots leave notes behind, while these tables
 * are in use.
 */
#ifndef VPROF_LINUX_KERNEL_SCAN_H
#define VPROF_LINUX_KERNEL_SCAN_H

#include "guest/look.h"
#include "guest/os.h"

/*
 * The physical address of the kernel's top table; 0: none was found, and *scan begins anew, or goes on with the next
 * look where this one has read all that it may. `five_levels`: of page tables, not four. What is found must be checked
 * (kernel_find.h). Any thread.
 */
uint64_t kernel_tables_scan(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool five_levels);

#endif
