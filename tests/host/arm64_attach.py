#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof attach on a stock arm64 host (arm64_host.py): to Debian's kernel as a guest of another vprof-vmm, of which only KVM is asked."""
import json
import os
import pathlib
import subprocess

import arm64_host
import harness
from arm64_host import ARM64

SECONDS = 150
PERIOD = 2000000
MEMORY_MIB = 256
SAMPLES_MIN = 50  # several times fewer than there are
UNNAMED_MAX = 0.01
INIT = """#!/bin/sh
/bin/busybox mount -t proc proc /proc
echo "init: up"
while :; do
	n=0
	while [ $n -lt 1000 ]; do n=$((n + 1)); done
	/bin/busybox dd if=/dev/zero of=/dev/null bs=4k count=2000 2>/dev/null
done
"""
JOB = """
bin={bin}
export VPROF_BIN=$bin
cd /run/shared
$bin/vprof-vmm --kernel {kernel} --initrd guest.cpio --memory {memory}M --vcpus 2 --append "quiet cryptomgr.notests rdinit=/init" --console console --control none &
guest=$!
while ! grep -q "init: up" console 2>/dev/null; do sleep 0.2; done

section doctor
$bin/vprof doctor --pid $guest --json
section list
$bin/vprof attach --list --json
section perf
$bin/vprof attach --pid $guest --route perf -c {period} --duration 3s --no-report -o perf.data 2>&1
echo "$?"
section other
$bin/vprof attach --pid $guest --kernel $bin/demo-guest.elf --duration 1s 2>&1
kill $guest
wait
"""


class Arm64Attach(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        arm64_host.need_host()

    def make_guest(self, folder):
        """Its initramfs."""
        root = self.folder / "guest"
        for place in "bin", "proc", "dev":
            (root / place).mkdir(parents=True)
        busybox = pathlib.Path(harness.script("package-arm64.sh", "busybox-static")) / "bin/busybox"
        (root / "bin/busybox").write_bytes(busybox.read_bytes())
        (root / "bin/sh").symlink_to("busybox")
        (root / "init").write_text(INIT)
        for program in root / "bin/busybox", root / "init":
            program.chmod(0o755)
        subprocess.run(["bsdtar", "-cf", folder / "guest.cpio", "--format", "newc", "--uid", "0", "--gid", "0", "-C", root, *os.listdir(root)],
                       check=True)

    def check_doctor(self, probe):
        """The kernel is found in memory, where KVM's slots say that it is."""
        print(probe, flush=True)
        self.assertEqual((probe["accelerator"], probe["vcpus"], probe["memory-bytes"]), ("kvm", 2, MEMORY_MIB << 20))
        self.assertTrue(probe["memory"]["usable"])
        self.assertRegex(probe["kernel"]["release"], r"^6\.12\..*-arm64$")
        self.assertTrue(next(route for route in probe["routes"] if route["name"] == "perf")["usable"])

    def check_perf(self, recording):
        """Mode and instruction pointer are the guest's, in every sample."""
        report, rows = self.report(recording)
        total = report["recording"]["statistics"]["total"]
        modes = {mode: sum(row["samples"] for row in rows if row["mode"] == mode) for mode in ("kernel", "user")}
        unnamed = sum(row["samples"] for row in rows if row["mode"] == "kernel" and row["symbol"].startswith("["))
        print(f"{total['sample']} samples: {modes}, {unnamed} of the kernel without a name", flush=True)
        self.assertEqual((report["recording"]["arch"], report["tables"][0]["event"]), ("aarch64", "cycles"))
        self.assertGreater(min(modes.values()), SAMPLES_MIN)
        self.assertEqual(sum(modes.values()), total["sample"])
        self.assertLessEqual(unnamed, UNNAMED_MAX * modes["kernel"])

    def test_attach(self):
        host = arm64_host.Arm64Host(self)
        self.make_guest(host.shared)
        parts = host.sections(JOB.format(bin=ARM64, kernel=harness.script("kernel-debian.sh", "6.12", "arm64"), period=PERIOD, memory=MEMORY_MIB), SECONDS)
        probe = json.loads(parts["doctor"])
        self.check_doctor(probe)
        guest, = json.loads(parts["list"])
        print(guest, flush=True)
        self.assertEqual((guest["vmm"], guest["vcpus"], guest["accelerator"], guest["kernel"]["release"]), ("vprof", 2, "kvm", probe["kernel"]["release"]))
        self.assertEqual(parts["perf"].splitlines()[-1], "0", parts["perf"])
        self.check_perf(host.shared / "perf.data")
        self.assertIn("the guest does not run", parts["other"])


if __name__ == "__main__":
    harness.main()
