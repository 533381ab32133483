#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A domain that boots Debian's kernel by TCG, with KASLR on: names, tasks and chains without any file of it."""
import collections
import json
import re

import harness
import libvirt
import perf
from harness import VPROF

BOOT_SECONDS = 240
RESOLVED_MIN = 0.99
# dd reads /dev/zero: read_zero clears user memory, by whatever variant the CPU has.
WORKLOAD = r"clear_user|rep_stos|read_zero|vfs_read"


class Tcg(libvirt.LibvirtTest):
    """One boot, and everything that can be looked at while it runs."""

    def setUp(self):
        super().setUp()
        self.kernel = harness.script("kernel-debian.sh")
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, harness.SOURCE / "tests" / "libvirt" / "spin.init")
        self.console = self.libvirt.create("tcg", self.kernel, initrd, "console=ttyS0 panic=-1", vcpus=2)
        self.recording = self.folder / "recording"

    def domain_list(self):
        return json.loads(self.run_program(*self.attach("--list", "--json"))[0])

    def record(self, *options, seconds=8):
        return self.run_program(*self.attach("tcg", "--duration", f"{seconds}s", "-o", self.recording, *options))

    def guest_symbols(self):
        """What the guest itself says, on its console."""
        text = self.wait_console(self.console, "init: works", BOOT_SECONDS)
        return {name: int(address, 16)
                for address, name in re.findall(r"^([0-9a-f]{16}) \w (\w+)\r?$", text, re.MULTILINE)}

    def check_list(self):
        (domain,) = self.domain_list()
        self.assertEqual((domain["name"], domain["state"], domain["accelerator"], domain["vcpus"]),
                         ("tcg", "running", "tcg", 2))
        self.assertRegex(domain["kernel"]["release"], r"^6\.1\.0-\d+-cloud-amd64$")
        self.assertIn("monitor", [route["name"] for route in domain["routes"] if route["usable"]])

    def check_addresses(self, symbols):
        """The recording's symbols are where the guest has them."""
        samples = perf.vprof_samples(self.recording)
        hit = {sample["symbol"]: int(sample["ip"], 16) - sample["offset"] for sample in samples
               if sample["symbol"] in symbols}
        self.assertIn("read_zero", hit)
        for name, address in hit.items():
            self.assertEqual(address, symbols[name], name)

    def check_tasks(self):
        """What works is busybox, process 1; the rest are interrupts in the idle tasks."""
        tasks = collections.Counter((sample["comm"], sample["pid"]) for sample in perf.vprof_samples(self.recording))
        self.assertEqual(tasks.most_common(1)[0][0], ("busybox", 1))
        self.assertLessEqual(tasks["[unknown]", -1], 0.01 * tasks.total())

    def check_profile(self, options=()):
        report, rows = self.report(self.recording)
        kernel = [row for row in rows if row["mode"] == "kernel"]
        samples = sum(row["samples"] for row in kernel)
        unknown = sum(row["samples"] for row in kernel if row["symbol"] == "[unknown]")
        print(options, samples, "samples in the kernel,", unknown, "unknown:", kernel[:3], flush=True)
        self.assertGreater(samples, 100)
        self.assertGreater(1 - unknown / samples, RESOLVED_MIN)
        self.assertRegex(kernel[0]["symbol"], WORKLOAD)
        self.assertRegex(report["recording"]["release"], r"^6\.1\.0-\d+-cloud-amd64$")
        self.assertEqual(report["recording"]["lost"], 0)

    def test_names_without_files(self):
        symbols = self.guest_symbols()
        self.assertNotEqual(symbols["_text"], 0xffffffff81000000, "KASLR is off")
        self.check_list()
        self.record("-g")
        self.check_profile()
        self.check_addresses(symbols)
        self.check_tasks()
        self.record("--kernel", self.kernel)
        self.check_profile(["--kernel"])
        self.refused(*self.attach("tcg", "--kernel", harness.guest("hang")), message="does not run .*hang.elf")
        self.assertEqual(self.libvirt.state("tcg"), "running")


if __name__ == "__main__":
    harness.main()
