#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Linux guest of a QEMU with KVM and without libvirt: names, tasks and call chains by the route bpf, and by perf.

This QEMU and this kernel get along with a host that emulates the guest's kernel and lacks some instructions: the
processor has none of what Linux would use them for, and the self-test of int3 returns at once. Nor can such a host
enter the kernel by a system call, so the guest's only program makes none.
"""
import collections
import pathlib
import re
import subprocess

import harness
import perf
from harness import VPROF
from linux_guest import ROOTS

BOOT_SECONDS = 240
BROKEN = "KVM internal error"
CPU = ("qemu64,vendor=GenuineIntel,level=6,-cx16,-x2apic,kvmclock=on," +
       ",".join(f"kvm-{name}=off" for name in (
           "asyncpf", "asyncpf-int", "steal-time", "pv-eoi", "pv-unhalt", "pv-tlb-flush", "pv-ipi", "poll-control",
           "pv-sched-yield", "msi-ext-dest-id")))
COMMAND_LINE = ("console=ttyS0 nokaslr mitigations=off lpj=4600000 tsc=reliable no_timer_check noxsave rodata=off "
                "highres=off random.trust_cpu=on 8250.nr_uarts=1 pty.legacy_count=0 panic=-1 "
                # String instructions go byte by byte there, SIMD not at all; these bits come back if QEMU hides them.
                "clearcpuid=rep_good,erms,fsrm,popcnt,ssse3,pclmulqdq,aes,sse4_1,sse4_2,smap,smep,umip,fsgsbase,"
                "invpcid,pku,la57 "
                # The second of them patches code that the other processor runs, by way of int3.
                "initcall_blacklist=blake2s_mod_init,sched_clock_init_late,slab_sysfs_init")
RETURN = b"\xc3"
RESOLVED_MIN = 0.99
WHOLE_MIN = 0.97  # what an emulated instruction has half done is torn
ROOTED_MIN = 0.95


def segments(file):
    """Of an ELF file: [offset, address, physical address, bytes in the file, bytes]."""
    headers = subprocess.run(["readelf", "-lW", file], capture_output=True, text=True, check=True).stdout
    return [[int(word, 16) for word in line.split()[1:6]] for line in headers.splitlines() if "  LOAD " in line]


def patch_kernel(vmlinux, copy):
    """A copy with an empty int3_selftest."""
    names = subprocess.run(["nm", vmlinux], capture_output=True, text=True, check=True).stdout
    address = int(re.search(r"^(\w+) t int3_selftest$", names, re.MULTILINE)[1], 16)
    (place,) = [offset + address - gva for offset, gva, _, size, _ in segments(vmlinux) if gva <= address < gva + size]
    kernel = bytearray(pathlib.Path(vmlinux).read_bytes())
    kernel[place:place + 1] = RETURN
    copy.write_bytes(kernel)


class Linux(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        harness.need_program("readelf", "binutils")
        harness.need((harness.BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        harness.need(harness.guests_are_slow(float("inf")),
                     "this host's KVM does not emulate the guest's kernel: page faults, this guest's work, take no time")
        harness.need_fast_guests()
        self.recording = self.folder / "recording"
        self.console, self.errors = self.folder / "console", self.folder / "errors"
        self.qmp = self.folder / "qmp"

    def boot(self):
        """QEMU, in which the program runs; ended with the test."""
        self.kernel = self.folder / "vmlinux"
        patch_kernel(harness.script("kernel-tiny.sh"), self.kernel)
        self.root, initrd = self.folder / "root", self.folder / "initrd"
        self.root.mkdir()
        (self.root / "init").write_bytes((harness.BIN / "page_faults").read_bytes())
        (self.root / "init").chmod(0o755)
        self.run_program("bsdtar", "-cf", initrd, "--format", "newc", "--uid", "0", "--gid", "0", "-C", self.root,
                         "init")
        with self.errors.open("w") as errors:
            self.qemu = self.start(
                "qemu-system-x86_64", "-name", "linux,debug-threads=on", "-machine", "pc,acpi=off", "-accel", "kvm",
                "-cpu", CPU, "-m", "128", "-smp", "2", "-display", "none", "-nodefaults", "-no-reboot",
                "-serial", f"file:{self.console}", "-qmp", f"unix:{self.qmp},server=on,wait=off",
                "-kernel", self.kernel, "-initrd", initrd, "-append", COMMAND_LINE,
                stdout=subprocess.DEVNULL, stderr=errors)
        self.addCleanup(self.qemu.wait)
        self.addCleanup(self.qemu.kill)
        harness.wait_until(self.program_runs, "/init", BOOT_SECONDS)

    def program_runs(self):
        text = self.errors.read_text(errors="replace")
        if self.qemu.poll() is not None or BROKEN in text:
            self.fail(f"the guest did not boot: {text}\n{self.console.read_text(errors='replace')[-1000:]}")
        return self.console.exists() and "Run /init" in self.console.read_text(errors="replace")

    def record(self, *options, seconds=3):
        return self.run_program(VPROF, "attach", "--pid", self.qemu.pid, "--qmp", self.qmp, "--symfs", self.root,
                                "--duration", f"{seconds}s", "-o", self.recording, *options, timeout=120)

    def check_names(self):
        """Without a file: the kernel is the one that was booted, and what it does is what the program has it do."""
        report, samples, unknown, busiest = self.kernel_profile(self.recording, 4)
        notes = self.run_program("readelf", "-n", self.kernel)[0]
        self.assertEqual(report["recording"]["build-id"], re.search(r"Build ID: (\w+)", notes)[1])
        self.assertGreater(samples, 100)
        self.assertGreater(1 - unknown / samples, RESOLVED_MIN)
        self.assertEqual(busiest[0], "clear_page_orig")
        self.assertEqual(report["recording"]["lost"], 0)

    def check_chains(self, unwinder):
        """Whole, from known roots on; those of kernel threads are theirs, whichever task ran when they were read."""
        report, _ = self.report(self.recording)
        total = report["recording"]["statistics"]["total"]
        ends = {name: count for name, count in total.items() if name.startswith("chain-")}
        print(f"  {unwinder}: {ends}", flush=True)
        self.assertGreater(total["chain-end"], WHOLE_MIN * sum(ends.values()))
        roots = collections.Counter()
        for line in self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0].splitlines():
            stack, weight = line.rsplit(" ", 1)
            comm, root, *_ = stack.split(";")
            roots[comm, root.removesuffix("_[k]")] += int(weight)
        print("  roots", roots.most_common(8), flush=True)
        known = sum(weight for (_, root), weight in roots.items() if root == "_start" or re.match(ROOTS, root))
        self.assertGreater(known, ROOTED_MIN * roots.total())
        threads = {comm: weight for (comm, root), weight in roots.items() if root == "ret_from_fork"}
        # __switch_to has the new thread's stack some time before it says so: some are the former task's.
        self.assertLess(threads.get("init", 0), 0.75 * sum(threads.values()), threads)
        self.assertEqual({comm for comm, root in roots if root == "_start"}, {"init"})

    def check_faults(self):
        """The chain of a page's clearing, through every function that has a frame."""
        folded = self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0]
        self.assertRegex(folded, r"(?m)^init;_start;(work;)?touch_page;asm_exc_page_fault_\[k\];exc_page_fault_\[k\];"
                                 r"(\w+_\[k\];)*handle_mm_fault_\[k\];(\w+_\[k\];)*clear_page_orig_\[k\] \d+$")

    def check_cgroups(self):
        """None was made: every task that is known is in the root."""
        groups = collections.Counter(sample["cgroup"] for sample in perf.vprof_samples(self.recording) if sample["pid"] != -1)
        print(f"  {dict(groups)}", flush=True)
        self.assertEqual(set(groups), {"/"})

    def check_perf(self):
        """perf takes the emulation of the guest's kernel for the host's work: of the guest, it sees the program."""
        self.record("--route", "perf")
        samples = perf.vprof_samples(self.recording)
        program = segments(self.root / "init")
        start, end = min(gva for _, gva, *_ in program), max(gva + size for _, gva, _, size, _ in program)  # without its pages of zeros
        inside = [int(sample["ip"], 16) for sample in samples if sample["mode"] == "user"]
        print(f"  perf: {collections.Counter(sample['mode'] for sample in samples)}", flush=True)
        self.assertGreater(len(inside), 50)
        self.assertEqual([hex(ip) for ip in inside if not start <= ip < end], [])
        self.assertEqual({sample["pid"] for sample in samples}, {0})

    def test_names_tasks_and_chains(self):
        self.boot()
        _, err = self.record("-g")
        self.assertIn("route bpf", err)
        self.check_names()
        for unwinder in "orc", "fp":
            self.record("--call-graph", unwinder, "--kernel", self.kernel)
            self.check_names()
            self.check_chains(unwinder)
            self.check_faults()
        self.check_cgroups()
        self.check_perf()
        self.assertIsNone(self.qemu.poll())


if __name__ == "__main__":
    harness.main()
