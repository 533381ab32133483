#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest with a PMU: every register and interrupt as the SDM has it, while the host profiles; and what is refused."""
import json
import re

import elf
import harness
from harness import VMM, VPROF, guest

PASSED = 1 << 1 | 1  # the guest's exit codes: 1, or the number of the check that failed
CPUID_LEAF = 2 << 1 | 1


class Pmu(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def run_guest(self, *options, status):
        return self.run_program(VPROF, "run", "--kernel", guest("pmu"), "-o", self.recording, "--no-report", *options,
                                status=status)

    def test_registers_and_interrupts(self):
        out, err = self.run_guest("--pmu", "emulated", "-v", "-F", 2000, status=PASSED)
        late = re.search(r"overflows of (\d+) cycles, seen and stopped by the kernel at best (\d+) cycles late", out)
        print(late.group(0), flush=True)
        self.assertLess(int(late.group(2)), int(late.group(1)), "the best of the overflows came a whole period late")
        self.assertRegex(err, r"PMU: emulated: .*cycles.*; RDPMC instructions replaced in the kernel: [1-9]")

    def test_a_guest_gets_on_whatever_its_overflows(self):
        """The guest's storm of overflows ends, since its interrupts wait for their turn; how many did, and what they merged."""
        out, _ = self.run_program(VPROF, "stat", "--kernel", guest("pmu"), "--pmu", "emulated", "--json", status=PASSED)
        counters = json.loads(out)["counters"]
        print({name: value for name, value in counters.items() if name.startswith("pmu_")}, flush=True)
        self.assertGreater(counters["pmu_interrupts"], 1)
        self.assertGreater(counters["pmu_held"], 1)
        self.assertGreater(counters["pmu_merged"], counters["pmu_held"])

    def test_every_delivery_of_the_host(self):
        """The host's own overflows do not get in the way of the guest's, however they are delivered."""
        for delivery in "sigmask", "setsig", "sigtrap":
            with self.subTest(delivery):
                self.run_guest("--pmu", "emulated", "-F", 4000, "--delivery", delivery, status=PASSED)
                report, rows = self.report(self.recording)
                self.assertEqual(report["recording"]["lost"], 0)
                self.assertGreater(sum(row["samples"] for row in rows if row["mode"] == "user"), 0)
                self.assertGreater(sum(row["samples"] for row in rows if row["symbol"].startswith("spin_")), 0)

    def test_accesses_are_exits(self):
        self.run_guest("--pmu", "emulated", "-F", 20000, status=PASSED)
        names = {row["symbol"] for row in self.report(self.recording)[1] if row["mode"] == "vmm"}
        self.assertTrue(any(name.startswith("exit:wrmsr:0x") for name in names), names)

    def test_off_is_the_default(self):
        for options in (), ("--pmu", "off"):
            self.run_guest(*options, status=CPUID_LEAF)

    def test_kvm(self):
        probe = json.loads(self.run_program(VMM, "--probe")[0])["pmu"]
        harness.need(not probe["kvm"]["usable"], "this host's KVM has a PMU for guests; that was never run")
        self.assertIn("cycles", probe["emulated"]["events"])
        err = self.refused(VPROF, "run", "--kernel", guest("pmu"), "--pmu", "kvm", "--pmu-filter", "deny:r01c2", "-o",
                           self.recording, message="cannot give the guest KVM's PMU: .*; take --pmu emulated")
        self.assertIn(probe["kvm"]["why"], err)

    def test_a_linux_without_rdpmc_is_refused(self):
        kernel = self.folder / "kernel"
        kernel.write_bytes(elf.elf64([elf.Segment(0x100000, elf.SPIN + b"Linux version 6.1.0 (test@nowhere) \0")]))
        options = ("--kernel", kernel, "-o", self.recording, "--duration", 1)
        self.refused(VPROF, "run", *options, "--pmu", "emulated",
                     message="cannot give .*kernel an emulated PMU: its RDPMC instructions are not found.*--pmu off")
        self.run_program(VPROF, "run", *options)

    def test_usage(self):
        for options, message in ((("--pmu", "maybe"), "--pmu maybe: expected off, emulated or kvm"),
                                 (("--pmu-filter", "cycles"), "--pmu-filter cycles: expected --pmu kvm beside it"),
                                 (("--pmu", "kvm", "--pmu-filter", "cycle"), 'event "cycle" is none; expected cycles,')):
            self.refused(VPROF, "run", "--kernel", guest("pmu"), "-o", self.recording, *options, status=2,
                         message=message)


if __name__ == "__main__":
    harness.main()
