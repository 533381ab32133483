#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A KVM domain with known code: its shares by each route, its chains, and what happens to it while it is attached."""
import math
import os
import signal
import time

import harness
import libvirt
import perf
from harness import VPROF

EXPECTED = {"three_quarters": 0.75, "one_quarter": 0.25}
SIGMAS = 5  # false alarms: 6e-7


class Kvm(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.image = harness.guest("user_shares")
        self.recording = self.folder / "recording"
        # vCPU 1 waits for its start, idle.
        console = self.libvirt.create("shares", self.image, accelerator="kvm", vcpus=2, memory=128)
        self.wait_console(console, "one_quarter", 60)

    def record(self, *options, status=0, seconds=6):
        return self.run_program(*self.attach("shares", "--kernel", self.image, "--duration", f"{seconds}s", "-o",
                                             self.recording, *options), status=status, timeout=120)

    def check_shares(self, least):
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]
        self.assertGreater(len(samples), least)
        self.assertEqual({sample["vcpu"] for sample in samples}, {0}, "vCPU 1 does nothing")
        for symbol, share in EXPECTED.items():
            found = sum(sample["symbol"] == symbol for sample in samples)
            allowed = SIGMAS * math.sqrt(len(samples) * share * (1 - share)) + 0.01 * len(samples)
            print(symbol, found, "of", len(samples), flush=True)
            self.assertLess(abs(found - share * len(samples)), allowed, symbol)

    def test_routes(self):
        self.record("--route", "perf")
        self.check_shares(least=200)
        self.record("--route", "monitor", "-g")
        self.check_shares(least=50)
        tree = self.run_program(VPROF, "report", "-g", "-i", self.recording)[0]
        self.assertRegex(tree, r"(?s)user_main\n.*three_quarters\n")
        self.refused(*self.attach("shares", "--route", "perf", "-g", "-o", self.recording),
                     message="route perf, which sees no registers")
        self.refused(*self.attach("shares", "--route", "pigeon", "-o", self.recording), message="no such route, but perf")
        self.refused(*self.attach("shares", "--route", "monitor", "-F", "999", "-o", self.recording),
                     message="takes up to 200 Hz")
        self.refused(*self.attach("sharse", "-o", self.recording), message="cannot find domain sharse")
        self.assertEqual(self.libvirt.state("shares"), "running")

    def test_without_libvirt(self):
        """By process id alone there is no monitor: samples have addresses, and nobody reads memory."""
        _, err = self.run_program(VPROF, "attach", "--pid", self.libvirt.pid("shares"), "--duration", "3s", "-o",
                                  self.recording)
        self.assertIn("without a monitor", err)
        samples = perf.vprof_samples(self.recording)
        self.assertGreater(len(samples), 50)
        self.assertEqual({sample["symbol"] for sample in samples if sample["mode"] == "user"}, {"[unknown]"})

    def test_life(self):
        """Paused, resumed, libvirtd gone, destroyed: the recording survives it all, and ends with the domain."""
        vprof = self.start(*self.attach("shares", "--kernel", self.image, "--route", "perf", "--no-report", "-o",
                                        self.recording))
        self.addCleanup(vprof.kill)
        time.sleep(3)
        self.libvirt.virsh("suspend", "shares")
        time.sleep(2)
        self.libvirt.virsh("resume", "shares")
        self.libvirt.end_daemon()
        time.sleep(2)
        self.libvirt.start()
        self.assertEqual(self.libvirt.state("shares"), "running")
        self.assertIsNone(vprof.poll())
        self.libvirt.virsh("destroy", "shares")
        _, err = self.finish(vprof)
        self.assertRegex(err, "QEMU has ended|the domain was destroyed")
        self.check_shares(least=200)

    def test_engine_killed(self):
        """The domain never notices, and what was recorded is kept."""
        vprof = self.start(*self.attach("shares", "--kernel", self.image, "--no-report", "-o", self.recording))
        self.addCleanup(vprof.kill)
        time.sleep(3)
        (engine,) = [int(pid) for pid in
                     open(f"/proc/{vprof.pid}/task/{vprof.pid}/children", encoding="ascii").read().split()]
        os.kill(engine, signal.SIGKILL)
        _, err = self.finish(vprof, status=1)
        self.assertIn("the engine was killed by signal 9", err)
        self.assertEqual(self.libvirt.state("shares"), "running")
        self.check_shares(least=50)
        self.record("--route", "perf", seconds=2)


if __name__ == "__main__":
    harness.main()
