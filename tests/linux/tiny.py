#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tiny kernel of tests/support: every boot protocol and image form, with two vCPUs and with one, its call chains, and its tasks."""
import pathlib
import subprocess

import harness
import perf
import tasks
from call_chains import ChainChecks
from linux_guest import TINY_MEMORY, LinuxTest

EARLY = "e820|bss|phys_|format_|sort|bitmap|memblock"  # what takes long before there is a console


class Tiny(LinuxTest, ChainChecks, tasks.TaskChecks):
    def setUp(self):
        super().setUp()
        self.vmlinux = pathlib.Path(harness.script("kernel-tiny.sh"))

    def names_by_address(self):
        names = {}
        for line in subprocess.run(["nm", self.vmlinux], capture_output=True, text=True, check=True).stdout.splitlines():
            address, _, name = line.split(maxsplit=2)
            names.setdefault(int(address, 16), set()).add(name)
        return names

    def check_names(self):
        """Every symbol is one that nm knows at that address, or a section of code that has none."""
        names = self.names_by_address()
        for sample in perf.vprof_samples(self.recording):
            if sample["mode"] == "kernel" and sample["symbol"][0] not in "[.":
                self.assertIn(sample["symbol"], names[int(sample["ip"], 16) - sample["offset"]])

    def test_two_vcpus(self):
        harness.need_fast_guests()
        self.init = tasks.INIT
        messages = self.boot(self.vmlinux, "--memory", TINY_MEMORY, "--call-graph", "orc", "--switch-events", "-v", "--no-report", status=0, vcpus=2)
        report, rows = self.report(self.recording, "--sort", "cpu,mode")
        self.assertEqual({row["vcpu"] for row in rows if row["mode"] == "kernel"}, {0, 1})
        self.check_profile(samples_min=500)
        self.check_names()
        perf.check_agreement(self, self.recording)
        self.check_chains()
        self.check_tasks(messages)

    def boot_early(self, *way):
        """By this way in; whether to the end."""
        slow = harness.guests_are_slow()
        if slow:
            self.boot_in_part(*way, seconds=15)
        else:
            self.boot(*way, status=0)
        self.check_profile(samples_min=500, more=EARLY)
        return not slow

    def test_pvh(self):
        if self.boot_early(self.vmlinux, "--boot", "pvh", "--call-graph", "fp"):
            self.check_chains()

    def test_bzimage(self):
        self.boot_early(self.vmlinux.with_name("bzImage"))


if __name__ == "__main__":
    harness.main()
