#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's cloud kernel as its package installs it, with no option that is about the kernel."""
import harness
import perf
from linux_guest import LinuxTest

# Its ten busiest functions on the way to /init and back: what it does to memory, to its own text, tables and symbols.
PLAUSIBLE = (r"mem(set|cpy|move|cmp)|clear_page|copy_|str|page|pte|pmd|init|alloc|free|kmem|slab|zone|printk|vsn|console|"
             r"serial|io_|delay|tsc|clock|time|rcu|cpu_|idle|kallsyms|alternative|text_poke|insn|rb_|idr|sysfs|kernfs|"
             r"orc|unwind|btf|bpf|sort|swap|cmp|ftrace|trace|static_call|jump_label|crypt|sha|hash|acpi|xas|radix")


class Debian(LinuxTest):
    def check_debian(self, vcpus):
        self.boot(harness.script("kernel-debian.sh"), status=0, vcpus=vcpus)
        self.check_profile(PLAUSIBLE, samples_min=5000)
        perf.check_agreement(self, self.recording)

    def test_one_vcpu(self):
        self.check_debian(1)

    def test_two_vcpus(self):
        self.check_debian(2)


if __name__ == "__main__":
    harness.main()
