#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's cloud kernel as its package installs it, with no option that is about the kernel."""
import harness
import perf
from linux_guest import LinuxTest

# What it does on top of that on the way to /init and back: its own tables, symbols and cryptography.
MORE = r"orc|unwind|btf|bpf|sort|swap|cmp|ftrace|trace|static_call|jump_label|crypt|sha|hash|acpi|xas|radix|mpi"


class Debian(LinuxTest):
    def check_debian(self, vcpus):
        self.boot(harness.script("kernel-debian.sh"), status=0, vcpus=vcpus)
        self.check_profile(samples_min=5000, more=MORE)
        perf.check_agreement(self, self.recording)

    def test_one_vcpu(self):
        self.check_debian(1)

    def test_two_vcpus(self):
        self.check_debian(2)


if __name__ == "__main__":
    harness.main()
