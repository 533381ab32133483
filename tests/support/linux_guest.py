# SPDX-License-Identifier: BSD-2-Clause
"""What the tests that boot Linux share: the run, and what its profile must look like."""
import collections
import functools
import re

import harness
from harness import VPROF

RESOLVED_MIN = 0.999
TINY_MEMORY = "128M"  # of the tiny kernel: where guests are emulated, the setup of more takes seconds

# The busiest functions of a boot: memory, text for the console, timer, scheduler, random numbers, its own text.
PLAUSIBLE = (r"mem(set|cpy|move|cmp|block)|clear_page|copy_|str|page|pte|pmd|init|alloc|free|kmem|slab|slob|zone|printk|vsn|"
             r"console|serial|io_|delay|tsc|clock|time|rcu|cpu_|idle|sched|load_avg|sd_lb|update_|kallsyms|alternative|"
             r"text_poke|insn|rb_|idr|sysfs|kernfs|blake2s|chacha|apic|ipi|smp_|spin|mutex|irq|interrupt|cpuid|e820|bss|msr|halt")

# Where a kernel stack begins: processors coming up, threads, system calls, and exceptions and interrupts from user space; on the way
# back, it has been left before its end.
ROOTS = (r"^((secondary|common)_startup_64|start_secondary|x86_64_start|startup_64|ret_from_fork|entry_SYSCALL|asm_|common_interrupt|"
         r"swapgs_restore_regs_and_return_to_usermode|syscall_return_via_sysret|real mode$)")


def leaves(nodes, above=()):
    """(path of nodes from the root, samples with a chain that ends there) of a call tree."""
    for node in nodes:
        path = above + (node,)
        if node["self-samples"]:
            yield path, node["self-samples"]
        yield from leaves(node["calls"], path)


class LinuxTest(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    init = None  # the text of /init, which prints what `boot` expects; None: that of initramfs.sh

    @functools.cached_property
    def initrd(self):
        path, init = self.folder / "initrd", self.folder / "init"
        if self.init:
            init.write_text(self.init)
        harness.script("initramfs.sh", path, *[init] * bool(self.init))
        return path

    def boot(self, kernel, *options, status, vcpus=1, hz=1000, timeout=500):
        """Boots to /init and to its end; every processor is there. What vprof says."""
        if vcpus != 1:
            options += ("--vcpus", vcpus)
        out, err = self.run_program(VPROF, "run", "--kernel", kernel, "--initrd", self.initrd, "-F", hz, "-o",
                                    self.recording, *options, status=status, timeout=timeout)
        online = "0" if vcpus == 1 else f"0-{vcpus - 1}"
        self.assertRegex(out, f"init: processors {online} online, Linux 6\\.", err)
        self.assertIn("init: counted to 20000", out)
        return err

    def boot_in_part(self, kernel, *options, seconds, hz=1000):
        """The first seconds of a boot, where all of it would take too long: harness.guests_are_slow()."""
        print(f"  {seconds} s of the boot", flush=True)
        self.run_program(VPROF, "run", "--kernel", kernel, "--initrd", self.initrd, "-F", hz, "-o", self.recording,
                         "--duration", seconds, *options, timeout=seconds + 60)

    def check_profile(self, samples_min, more="^$"):
        """Kernel samples resolve, and most of the busiest functions match PLAUSIBLE or `more`. The report."""
        report, samples, unknown, top = self.kernel_profile(self.recording, 10)
        self.assertGreater(samples, samples_min)
        self.assertLessEqual(unknown, harness.most(1 - RESOLVED_MIN, samples))
        self.assertGreaterEqual(sum(bool(re.search(f"{PLAUSIBLE}|{more}", symbol)) for symbol in top), 7, top)
        self.assertEqual(report["recording"]["lost"], 0)
        self.assertRegex(report["recording"]["release"], "^6\\.")
        return report

    def kernel_chains(self):
        """How many chains end in the kernel; of these, those from user space or another known root, and those through a system call.
        A return thunk, which has no unwind entry, has the caller of the function that returns."""
        report, _ = self.report(self.recording, "-g", "--percent-limit", "0.0001")
        total, rooted, through_syscalls = 0, 0, 0
        others, thunks = collections.Counter(), collections.Counter()
        for path, samples in leaves(report["tables"][0]["calls"]):
            kernel = [node["symbol"] for node in path if node["mode"] == "kernel"]
            if path[-1]["mode"] != "kernel":
                continue
            total += samples
            if kernel[-1].endswith("_return_thunk"):
                thunks["whole" if len(kernel) > 1 else "cut"] += samples
            if path[0]["mode"] == "user" or re.search(ROOTS, kernel[0]):
                rooted += samples
            else:
                others[f"{kernel[0]} .. {kernel[-1]}"] += samples
            if path[0]["mode"] == "user" and kernel[0].startswith("entry_SYSCALL_64") and len(kernel) >= 3:
                through_syscalls += samples
        print(f"  {total} chains that end in the kernel, {rooted} of them whole, {through_syscalls} from user space "
              f"through entry_SYSCALL_64; other roots: {others.most_common(5)}; in return thunks: {dict(thunks)}", flush=True)
        self.assertLessEqual(thunks["cut"], harness.most(1 - RESOLVED_MIN, thunks.total()))
        return total, rooted, through_syscalls, others
