#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof attach --host: what the host does for a guest, with its functions' names, beside what the guest does."""
import collections
import re

import harness
import libvirt
import perf
from harness import VPROF

QEMU = "/usr/bin/qemu-system-x86_64"
IN_KVM_RUN = re.compile(r"guest;(.*;)?ioctl;.*kvm_arch_vcpu_ioctl_run")


class Host(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"
        console = self.libvirt.create("device", harness.guest("device_work"), accelerator="kvm", memory=128)
        self.wait_console(console, "reads port", 60)

    def record(self, *options, before=()):
        return self.run_program(*before, *self.attach("device", "--kernel", harness.guest("device_work"), "-F", 198,
                                                      "--duration", "3s", "-o", self.recording, *options), timeout=120)

    def host_samples(self):
        """Those outside the guest; each has a name, or the file and the place in it."""
        samples = perf.vprof_samples(self.recording)
        outside = [sample for sample in samples if sample["mode"] == "vmm"]
        print(len(outside), "of", len(samples), collections.Counter(sample["module"] for sample in outside), flush=True)
        nameless = [sample for sample in outside if sample["symbol"].startswith(("0x", "exit:"))]
        self.assertLess(len(nameless), 0.01 * len(outside), nameless[:5])
        return outside

    def stacks(self):
        text = self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0]
        return {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in text.splitlines())}

    def check_perf(self):
        """Work in the kernel is called from KVM_RUN, that from libc's ioctl; QEMU's device code has names, too."""
        self.record("--host", "--route", "perf")
        outside = self.host_samples()
        self.assertGreater(len(outside), 200)
        self.assertTrue({"[host]", QEMU} <= {sample["module"] for sample in outside})
        stacks = self.stacks()
        in_kvm = sum(weight for stack, weight in stacks.items() if IN_KVM_RUN.match(stack))
        print("in KVM_RUN:", in_kvm / sum(stacks.values()), flush=True)
        self.assertGreater(in_kvm, 0.2 * sum(stacks.values()))
        perf.check_agreement(self, self.recording)
        tree = self.run_program(VPROF, "report", "-g", "--sort", "mode,dso,sym", "-i", self.recording)[0]
        self.assertRegex(tree, r" vmm +\[host\] +kvm_arch_vcpu_ioctl_run\n")

    def check_bpf(self):
        """The guest's chains are as without; what is not in it is QEMU's."""
        self.record("--host", "--route", "bpf", "-g")
        outside = self.host_samples()
        self.assertIn(QEMU, {sample["module"] for sample in outside})
        self.assertGreater(sum(weight for stack, weight in self.stacks().items()
                               if re.match(r"guest;start64_\[k\];(guest_main_\[k\];)?read_clock_\[k\]", stack)), 0)
        perf.check_agreement(self, self.recording)

    def check_hidden(self):
        """Without names of the kernel's functions it says why, and has addresses."""
        _, err = self.record("--host", "--route", "perf", before=("setpriv", "--bounding-set=-syslog"))
        self.assertRegex(err, "the host's kernel functions will have no names: /proc/kallsyms hides its addresses .*; run "
                              "vprof as root or with CAP_SYSLOG")
        kernel = [sample for sample in perf.vprof_samples(self.recording)
                  if sample["mode"] == "vmm" and int(sample["ip"], 16) >> 63]
        self.assertGreater(len(kernel), 50)
        self.assertEqual({(sample["symbol"], sample["module"]) for sample in kernel},
                         {(sample["ip"], "[host]") for sample in kernel})

    def test_names(self):
        self.check_perf()
        self.check_bpf()
        self.check_hidden()
        self.refused(*self.attach("device", "--host", "--route", "monitor", "-o", self.recording),
                     status=2, message="cannot record the host's side by the route monitor, which sees only the guest")


if __name__ == "__main__":
    harness.main()
