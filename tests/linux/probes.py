#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Probes of the tiny kernel while it runs: system calls by name, functions with their callers, and the tasks of both."""
import json
import re

import harness
from harness import VMM, VPROF

BOOT_SECONDS = 500

# The shell reads the file by itself, a byte at a time; busybox's cat is another task.
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
echo "init: ready"
while :; do
	read -r line </proc/version
	busybox cat /proc/version >/dev/null
done
"""


class Probes(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def boot(self, vcpus):
        kernel = harness.script("kernel-tiny.sh", "orc")
        initrd, init, self.console = self.folder / "initrd", self.folder / "init", self.folder / "console"
        self.engine = self.folder / "engine.sock"
        init.write_text(INIT)
        harness.script("initramfs.sh", initrd, init)
        vmm = self.start(VMM, "--kernel", kernel, "--initrd", initrd, "--vcpus", vcpus, "--console", self.console,
                         "--control", self.engine)
        self.addCleanup(vmm.communicate)
        self.addCleanup(vmm.terminate)
        harness.wait_until(lambda: self.console.exists() and "init: ready" in self.console.read_text(errors="replace"),
                           "/init", BOOT_SECONDS)

    def trace(self, *options):
        """The events and the end."""
        out, _ = self.run_program(VPROF, "trace", self.engine, "-j", *options, timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        return lines[:-1], lines[-1]["end"]

    def check(self, vcpus):
        self.boot(vcpus)
        events, end = self.trace("-p", "syscall:read", "-n", 50, "-f", "comm=init")
        self.assertEqual({(event["pid"], event["tid"], event["comm"]) for event in events}, {(1, 1, "init")})
        self.assertEqual({event["fields"]["nr"] for event in events}, {"0x0"})
        # The shell reads its line from descriptor 0, a byte at a time.
        self.assertEqual({(event["fields"]["arg0"], event["fields"]["arg2"]) for event in events}, {("0x0", "0x1")})
        self.assertEqual(end["statistics"]["dropevt"], 0)

        events, _ = self.trace("-p", "function:vfs_read", "-s", "-n", 5, "-f", "comm=init")
        for event in events:
            self.assertEqual(event["func"], "vfs_read")
            frames = [re.sub(r"\+.*", "", frame) for frame in event["stack"]]
            # Between the two pairs, a kernel with frame pointers has the wrappers of the system call.
            kernel = [frame for frame in frames if "x64_sys" not in frame]
            self.assertEqual(kernel[:4], ["vfs_read", "ksys_read", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"])

        four = [word for name in ("vfs_read", "vfs_open", "schedule") for word in ("-p", f"function:{name}")]
        _, end = self.trace(*four, "-p", "syscall:openat", "-c", "probe", "-d", 20)
        self.assertEqual({row["key"] for row in end["count"]},
                         {"function:vfs_read", "function:vfs_open", "function:schedule", "syscall:openat"})
        self.refused(VPROF, "trace", self.engine, "-b", "processor", *four, "-p", "syscall:openat", "-p",
                     "function:do_exit",
                     message="cannot place function:do_exit: the processor has 4 breakpoints, and they are taken by "
                             "function:vfs_read, function:vfs_open, function:schedule, syscall:openat")

        five = [word for name in ("vfs_read", "vfs_open", "schedule", "fput", "do_sys_openat2")
                for word in ("-p", f"function:{name}")]
        _, end = self.trace("-b", "patch", *five, "-p", "syscall:openat", "-c", "probe", "-d", 20)
        self.assertEqual({row["key"] for row in end["count"]}, {*five[1::2], "syscall:openat"})

    def test_one_vcpu(self):
        self.check(1)

    def test_two_vcpus(self):
        harness.need_fast_guests()
        self.check(2)


if __name__ == "__main__":
    harness.main()
