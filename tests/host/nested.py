#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""On a stock host: a guest of QEMU's that is a KVM host itself. What its own guest runs is told apart, and never unwound."""
import collections
import lzma
import os
import pathlib
import subprocess

import harness
import perf
from harness import VPROF

SECONDS = 4
SAMPLES_MIN, NAMED_MIN = 100, 0.9
IMAGE = harness.guest("user_shares")
VMM = harness.BIN / "other_vmm"
TASK = "worker) R 1 ("  # as that VMM calls its vCPUs
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
for module in {modules}; do
	busybox insmod /bin/$module
done
(echo go; exec busybox sleep 10000) | {vmm} /bin/{image} &
wait
"""


class Nested(harness.ProgramTest):
    def modules(self, kernel):
        """The names of kvm_amd and what it needs, unpacked, in order."""
        version = pathlib.Path(kernel).name.removeprefix("vmlinuz-")
        needed = subprocess.run([harness.sbin("modprobe", "kmod"), "-d", pathlib.Path(kernel).parents[1], "-S", version, "--show-depends",
                                 "kvm-amd"], stdout=subprocess.PIPE, text=True, check=True).stdout
        paths = [pathlib.Path(line.split()[1]) for line in needed.splitlines() if line.startswith("insmod ")]
        for path in paths:
            data = path.read_bytes()
            (self.folder / path.name.removesuffix(".xz")).write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
        return [path.name.removesuffix(".xz") for path in paths]

    def boot(self):
        """A QEMU whose guest has a guest."""
        kernel = harness.script("kernel-debian.sh", "6.12", "amd64")
        modules = self.modules(kernel)
        (self.folder / "init").write_text(INIT.format(modules=" ".join(modules), vmm=VMM.name, image=IMAGE.name))
        harness.script("initramfs.sh", self.folder / "initrd", self.folder / "init", VMM, IMAGE, *(self.folder / name for name in modules))
        console = self.folder / "console"
        qemu = self.start("qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "512", "-display", "none", "-vga", "none", "-serial",
                          f"file:{console}", "-kernel", kernel, "-initrd", self.folder / "initrd", "-append", "console=ttyS0 panic=-1 quiet",
                          "-no-reboot")
        self.addCleanup(qemu.communicate)
        self.addCleanup(qemu.terminate)
        harness.wait_until(lambda: console.exists() and "go: done" in console.read_text(errors="replace"), "the guest's own guest", 60)
        return qemu

    def test_nested(self):
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        recording = self.folder / "recording"
        qemu = self.boot()
        _, err = self.run_program(VPROF, "attach", "--pid", qemu.pid, "-g", "--no-report", "--duration", f"{SECONDS}s", "-o", recording)
        qemu.kill()
        self.assertIn("route bpf", err)
        samples = perf.vprof_script(recording, "-g")
        nested = [sample for sample in samples if sample["symbol"] == "nested guest"]
        print(f"  {len(nested)} samples of {len(samples)} are of the nested guest: {nested[:1]}", flush=True)
        self.assertGreater(len(nested), SAMPLES_MIN)
        tasks = collections.Counter((sample["mode"], sample["comm"]) for sample in nested)
        print(f"  {tasks}", flush=True)
        # Those before the first task is known have none.
        self.assertLessEqual(set(tasks), {("vmm", TASK), ("vmm", "[unknown]")})
        self.assertGreater(tasks["vmm", TASK], NAMED_MIN * len(nested))
        self.assertEqual([sample for sample in nested if len(sample.get("chain") or []) > 1], [])
        # Its code is at the lowest addresses, where Linux has none.
        self.assertEqual([sample for sample in samples if sample["mode"] == "kernel" and not int(sample["ip"], 16) >> 63], [])


if __name__ == "__main__":
    harness.main()
