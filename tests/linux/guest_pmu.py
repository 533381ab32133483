#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Linux guest with an emulated PMU profiles itself by perf_event_open, while the host profiles the guest: both agree."""
import re
import subprocess

import harness
import linux_guest
import perf
from harness import BIN, VPROF

BOOT_SECONDS = 500
SHARE = 0.75  # of spin_three beside spin_one
SIGMAS = 5
HOST_HZ = 200


def numbers(out, name):
    line = re.search(f"perf: {name}: (.*)", out).group(1)
    print(f"  guest, {name}: {line}", flush=True)
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


class GuestPmu(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def boot(self, vcpus):
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, BIN / "guest_perf")
        vprof = self.start(VPROF, "run", "--kernel", harness.script("kernel-tiny.sh"), "--initrd", initrd, "--memory", linux_guest.TINY_MEMORY,
                           "--pmu", "emulated", "--vcpus", vcpus, "-F", HOST_HZ, "-v", "--no-report", "-o", self.recording)
        return self.finish(vprof, timeout=BOOT_SECONDS)

    def assert_share(self, three, one):
        n = three + one
        self.assertGreater(n, 20)
        self.assertLess(abs(three / n - SHARE), SIGMAS * (SHARE * (1 - SHARE) / n) ** 0.5, f"{three} of {n}")

    def check_guest(self, out):
        """The samples fell where the time went. Each stands for one period, and for more where the host is so slow that
        the interrupts take half of the guest's time (vprof-vmm(8), THE GUEST'S PMU)."""
        for name in "all", "user":
            result = numbers(out, name)
            self.assertEqual(result["lost"], 0)
            self.assertLess(result["samples"] * result["period"] / result["cycles"], 1.1)
            self.assert_share(result["three"], result["one"])
            if name == "user":
                self.assertEqual(result["kernel"], 0)
            else:
                # One group: both count from the same moment to the same moment.
                self.assertAlmostEqual(result["cycles"] / result["reference"], 1, delta=0.05)

    def functions(self):
        """spin_one's and spin_three's ranges of addresses."""
        symbols = subprocess.run(["nm", BIN / "guest_perf"], capture_output=True, text=True, check=True).stdout
        at = {name: int(address, 16) for address, name in re.findall(r"^(\w+) T (spin_\w+)$", symbols, re.MULTILINE)}
        return {name: range(at[name], at[f"{name}_end"]) for name in ("spin_one", "spin_three")}

    def check_host(self):
        """The host's samples of the same program, meanwhile, say the same."""
        ips = [int(sample["ip"], 16) for sample in perf.vprof_samples(self.recording)
               if sample["mode"] == "user" and sample["comm"] == "guest_perf"]
        counts = {name: sum(ip in where for ip in ips) for name, where in self.functions().items()}
        print(f"  host: {counts} of {len(ips)} samples in user mode", flush=True)
        self.assert_share(counts["spin_three"], counts["spin_one"])
        self.assertEqual(self.report(self.recording)[0]["recording"]["lost"], 0)

    def check(self, vcpus):
        out, err = self.boot(vcpus)
        self.assertRegex(err, "RDPMC instructions replaced in the kernel: [1-9]")
        self.assertRegex(out, "Performance Events: .*Intel PMU driver")
        self.assertNotRegex(out, "(?i)unknown reason|dazed and confused|broken")
        self.check_guest(out)
        self.check_host()
        expected = "not there" if "CPUID marked event: 'instructions' unavailable" in out else "there"
        self.assertIn(f"perf: instructions: {expected}\n", out.replace("\r", ""))

    def test_perf(self):
        """With two vCPUs, of which each has its own, but where a boot takes minutes."""
        self.check(1 if harness.guests_are_slow() else 2)


if __name__ == "__main__":
    harness.main()
