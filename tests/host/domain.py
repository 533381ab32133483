#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A libvirt domain with KVM and Debian's unmodified kernel, as users have it: attached to with tasks and chains, and with an agent
that talks over vsock."""
import collections
import os
import pathlib
import re
import shutil

import harness
import libvirt
from harness import VPROF

BOOT_SECONDS = 60
PORT = "vsock:4711"
PROGRAM = harness.BIN / "user_spin_static"
MODULES = ("drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_pci_legacy_dev",
           "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci", "net/vmw_vsock/vsock",
           "net/vmw_vsock/vmw_vsock_virtio_transport_common", "net/vmw_vsock/vmw_vsock_virtio_transport")
VSOCK = "\n    <vsock model='virtio'><cid auto='yes'/></vsock>"
COPY = r"clear_user|rep_stos|read_zero"
RESOLVED_MIN = 0.99
WHOLE_MIN = 0.95


class Domain(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.access("/dev/vhost-vsock", os.R_OK | os.W_OK), "/dev/vhost-vsock cannot be opened")
        harness.need_fast_guests()
        self.kernel = harness.script("kernel-debian.sh")
        (modules,) = pathlib.Path(self.kernel).parents[1].glob("lib/modules/*/kernel")
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, harness.SOURCE / "tests" / "host" / "domain.init",
                       harness.BIN / "vprof-agent", PROGRAM, *(modules / f"{module}.ko" for module in MODULES))
        place = self.folder / "bin"
        place.mkdir()
        shutil.copy(PROGRAM, place)
        self.recording = self.folder / "recording"
        console = self.libvirt.create("debian", self.kernel, initrd, "console=ttyS0 panic=-1 quiet", accelerator="kvm", vcpus=2,
                                      memory=512, machine="q35", devices=VSOCK)
        self.wait_console(console, "init: works", BOOT_SECONDS)

    def record(self, *options, seconds=6):
        return self.run_program(*self.attach("debian", "--symfs", self.folder, "--duration", f"{seconds}s", "--no-report",
                                             "-o", self.recording, *options), timeout=120)[1]

    def check_doctor(self):
        text = self.run_program(VPROF, "doctor", "--connect", self.libvirt.uri, "debian", timeout=60)[0]
        self.assertRegex(text, r"ok +guest +debian, 2 vCPUs, accelerator kvm")
        self.assertRegex(text, r"ok +route +bpf: ")
        self.assertRegex(text, r"ok +kernel +.*6\.1\.")

    def check_names(self):
        """The domain's XML has no file of the kernel's symbols: they are read in its memory."""
        report, samples, unknown, _ = self.kernel_profile(self.recording, 6)
        self.assertGreater(samples, 100)
        self.assertGreater(1 - unknown / samples, RESOLVED_MIN)
        self.assertRegex(report["recording"]["release"], r"^6\.1\.")
        self.assertEqual(report["recording"]["lost"], 0)

    def check_tasks(self):
        """Each does its own work."""
        _, rows = self.report(self.recording, "--sort", "mode,comm,module,sym")
        spin = [row for row in rows if row["symbol"] == "spin_in_user_mode"]
        self.assertEqual({(row["comm"], row["module"], row["mode"]) for row in spin},
                         {(PROGRAM.name[:15], f"/bin/{PROGRAM.name}", "user")})
        copy = collections.Counter()
        for row in rows:
            if re.search(COPY, row["symbol"]):
                copy[row["comm"]] += row["samples"]
        print("copying", copy, flush=True)
        self.assertGreater(copy["busybox"] + copy["dd"], 0.95 * copy.total())  # the shell's children begin as "init"

    def check_chains(self):
        """Those of the kernel are whole, and begin where Linux' stacks do."""
        ends = self.report(self.recording)[0]["recording"]["chain-ends"]["kernel"]
        print("chains of the kernel", ends, flush=True)
        self.assertGreater(sum(ends.values()), 100)
        self.assertGreater(ends["whole"], WHOLE_MIN * sum(ends.values()))
        folded = self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0]
        copying = {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in folded.splitlines())
                   if re.search(f"({COPY})\\w*_\\[k\\]$", stack)}
        called = sum(weight for stack, weight in copying.items()
                     if re.search(r";entry_SYSCALL_64_after_hwframe_\[k\];do_syscall_64_\[k\];", stack))
        print(f"read by a system call: {100 * called / sum(copying.values()):.2f} %", flush=True)
        self.assertGreater(called, WHOLE_MIN * sum(copying.values()))

    def check_marks(self):
        """What the agent marked ran between its marks."""
        recording = self.report(self.recording)[0]["recording"]
        kinds = [mark["kind"] for mark in recording["marks"]]
        self.assertGreaterEqual(len(kinds), 3)
        self.assertEqual({mark["name"] for mark in recording["marks"]}, {"copy"})
        self.assertTrue(all(one != other for one, other in zip(kinds, kinds[1:])), kinds)

        def copying(*options):
            rows = self.report(self.recording, *options)[1]
            return sum(row["samples"] for row in rows if re.search(COPY, row["symbol"]))

        all_of_it, inside = copying(), copying("--phase", "copy")
        print("copying:", inside, "of", all_of_it, "samples in the phases", flush=True)
        self.assertGreater(all_of_it, 20)
        self.assertGreater(inside, 0.8 * all_of_it)

    def check_mappings(self):
        """With an image of the kernel that says nothing of its types, the agent is asked."""
        bare = libvirt.kernel_without_types(self.kernel, self.folder)
        self.record("--agent", PORT, "--kernel", bare, seconds=4)
        report, rows = self.report(self.recording, "--sort", "mode,module,sym")
        self.assertIn("mapped files: those that the agent in the guest has told", report["recording"]["missing"])
        user = [row for row in rows if row["mode"] == "user"]
        spin = sum(row["samples"] for row in user
                   if (row["module"], row["symbol"]) == (f"/bin/{PROGRAM.name}", "spin_in_user_mode"))
        self.assertGreater(spin, 0.8 * sum(row["samples"] for row in user))

    def test_attach(self):
        self.check_doctor()
        err = self.record("-g", "--agent", PORT)
        self.assertIn("route bpf", err)
        self.assertNotIn("no agent", err)
        self.check_names()
        self.check_tasks()
        self.check_chains()
        self.check_marks()
        # The listener has gone, and the agent connects to the next one.
        self.check_mappings()
        self.assertEqual(self.libvirt.state("debian"), "running")


if __name__ == "__main__":
    harness.main()
