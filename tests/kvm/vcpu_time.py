#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time is conserved: vprof stat and vprof mpstat account for all of it, and for every exit."""
import json
import math
import os
import pathlib

import harness
import json_schemas
from harness import VMM, VPROF, guest

PARTS = "guest", "kvm", "vmm", "halted", "waiting", "offline", "residual"
GUEST_PARTS = "guest-kernel", "guest-user", "guest-unknown"
LOOKS_HZ = 97  # of a vCPU's mode, while it runs
FEW_SIGNALS = 20  # of requests and of the end
# Of the demonstration guest: 30 % tcp_checksum and 5 % copy_page, and its system calls on top.
DEMO_KERNEL = 0.35, 0.40
DEMO_SECONDS = 5  # by its clock, after its boot
LOOKS_MIN = 50  # for its kernel's share
# What console_flood prints: 300 lines, "\r" before each "\n".
FLOOD_BYTES = 300 * (len("console_flood: the quick brown fox jumps over the lazy dog\n") + 1)
# Readings of several clocks are not one: some microseconds, and a reader that is preempted between two.
SLACK_NS = 5_000_000


def stolen_ns():
    """What the host's own hypervisor has taken from it: no time of a thread's, and in no clock of one."""
    steal = int(pathlib.Path("/proc/stat").read_text().split(maxsplit=9)[8])
    return steal * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class VcpuTime(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.stolen_before_ns = stolen_ns()

    def check_conserved(self, report):
        stolen = stolen_ns() - self.stolen_before_ns
        for vcpu in report["vcpus"]:
            clocks, parts = vcpu["clocks-ns"], vcpu["parts-ns"]
            self.assertEqual(clocks["run"] + clocks["vmm"], clocks["wall"])
            self.assertEqual(sum(parts[name] for name in PARTS), parts["wall"])
            self.assertEqual(sum(parts[name] for name in GUEST_PARTS), parts["guest"])
            self.assertLessEqual(abs(parts["residual"]), 0.01 * parts["wall"] + SLACK_NS + stolen, vcpu)

    def stat(self, *arguments, status=0):
        report = json_schemas.check(self, "stat", json.loads(self.run_program(VPROF, "stat", "--json", *arguments, status=status)[0]))
        self.check_conserved(report)
        # All exits where KVM's trace points can be read, else those that came to the VMM.
        counted = report["exits"] if report["untraced"] else report["kvm-exits"]
        self.assertEqual(sum(row["count"] for row in counted), report["total"]["exits"])
        self.assertEqual(sum(row["ns"] for row in report["exits"]), report["total"]["clocks-ns"]["vmm"])
        return report

    def mpstat(self, *arguments):
        lines = self.run_program(VPROF, "mpstat", "--json", *arguments)[0].splitlines()
        reports = [json_schemas.check(self, "mpstat", json.loads(line)) for line in lines]
        for report in reports:
            self.check_conserved(report)
        return reports

    def engine(self, name):
        path = self.folder / "engine.sock"
        engine = self.start(VMM, "--kernel", guest(name), "--vcpus", "2", "--console", "none", "--control", path)
        harness.wait_for_socket(path)
        return engine, path

    def check_modes(self, vcpu):
        """The kernel's share is the demonstration guest's, as far as so many looks can tell."""
        looks, parts = vcpu["looks"], vcpu["parts-ns"]
        n = looks["kernel"] + looks["user"]
        self.assertGreater(n, LOOKS_MIN)
        self.assertEqual(parts["guest-unknown"], 0)
        share = parts["guest-kernel"] / parts["guest"]
        self.assertAlmostEqual(share, looks["kernel"] / n, places=6)
        least, most = DEMO_KERNEL
        slack = 5 * math.sqrt(0.25 / n)  # beyond five standard errors: once in two million runs
        self.assertTrue(least - slack < share < most + slack, f"{share} of {n} looks")

    def demo(self, seconds):
        return self.stat("--demo", "--append", f"seconds={seconds}", "-e", "task-clock")

    @staticmethod
    def has_looks(report):
        return all(vcpu["looks"]["kernel"] + vcpu["looks"]["user"] > LOOKS_MIN for vcpu in report["vcpus"])

    def test_demo(self):
        report, _ = harness.longer_until(self.has_looks, self.demo, DEMO_SECONDS)
        cpu = sum(vcpu["clocks-ns"]["cpu"] for vcpu in report["vcpus"])
        event, = report["events"]
        self.assertEqual(event["event"], "task-clock")
        self.assertEqual(event["running-ns"], event["enabled-ns"])
        self.assertAlmostEqual(event["value"] / cpu, 1, delta=0.1)
        self.refused(VPROF, "stat", "--demo", "-e", "no such event", status=2, message='unknown event "no such event"')
        self.assertEqual(len(report["vcpus"]), 2)
        self.assertEqual(report["end"]["reason"], "power-off")
        for vcpu in report["vcpus"]:
            parts = vcpu["parts-ns"]
            # Its boot comes before, and makes exits, which take longer the busier the host is.
            self.assertGreater(parts["guest"] + parts["waiting"], 0.5 * parts["wall"])
            self.check_modes(vcpu)
        total = report["total"]
        for name in GUEST_PARTS:
            self.assertEqual(total["parts-ns"][name], sum(vcpu["parts-ns"][name] for vcpu in report["vcpus"]))

    def test_halted(self):
        report = self.stat("--kernel", guest("halt"), "--duration", "3")
        parts = report["vcpus"][0]["parts-ns"]
        self.assertGreater(parts["halted"], 0.9 * parts["wall"])
        self.assertGreaterEqual(report["counters"]["halt_exits"], 1)
        self.check_not_woken(report)

    def check_not_woken(self, report):
        """A vCPU is not woken to look at its mode: that is done while it runs, and once more to find it halted."""
        parts, = (vcpu["parts-ns"] for vcpu in report["vcpus"])
        awake_s = (parts["wall"] - parts["halted"]) / 1e9
        signals = [row["count"] for row in report["exits"] if row["name"] == "exit:vmm"]
        self.assertLess(sum(signals), FEW_SIGNALS + 2 * LOOKS_HZ * awake_s)

    def test_looks_go_on_after_a_halt(self):
        report = self.stat("--kernel", guest("sleeps"))
        vcpu, = report["vcpus"]
        parts, looks = vcpu["parts-ns"], vcpu["looks"]
        self.assertGreater(parts["halted"], 0.9e9)
        self.check_not_woken(report)
        # At a tick of the host's in the first 13 ms of CPU time, and from then on as always.
        self.assertGreater(looks["kernel"], 0)
        self.assertLess(looks["kernel"], 2 * LOOKS_HZ * parts["wall"] / 1e9)
        self.assertEqual(looks["user"], 0)
        self.assertEqual(parts["guest-unknown"], 0)

    def test_flood_is_counted_to_the_byte(self):
        report = self.stat("--kernel", guest("console_flood"))
        exits = {row["name"]: row["count"] for row in report["exits"]}
        self.assertEqual(exits["exit:io:0x3f8"], FLOOD_BYTES)
        self.assertEqual(exits["exit:io:0x3fd"], FLOOD_BYTES)  # the line status before each
        self.assertGreaterEqual(report["counters"]["exits"], 2 * FLOOD_BYTES)

    def test_text(self):
        out, err = self.run_program(VPROF, "stat", "--kernel", guest("power_off"))
        self.assertRegex(out, r"(?m)^VCPU +SECONDS +%GUEST +%KERNEL +%USER +%KVM +%VMM +%HALTED +%POLLING +%WAITING +%OFFLINE +%RESIDUAL +EXITS/s$")
        self.assertRegex(out, r"(?m)^ +1 +[0-9.]+ +[0-9.]+  exit:io:0x604$")
        self.assertIn("the guest powered off", err)

    def test_running_guest(self):
        engine, path = self.engine("hang")
        first, second = self.mpstat(path, "1", "2")
        for report in first, second:
            wall = report["vcpus"][0]["parts-ns"]["wall"]
            self.assertGreater(wall, 0.9e9)
            parts = report["vcpus"][1]["parts-ns"]
            self.assertGreater(parts["offline"] + parts["waiting"], 0.9 * parts["wall"])  # it is never started
        whole, = self.mpstat(path, "--reset")
        since_reset, = self.mpstat(path)
        self.assertGreater(whole["total"]["clocks-ns"]["wall"], 4e9)
        self.assertLess(since_reset["total"]["clocks-ns"]["wall"], whole["total"]["clocks-ns"]["wall"])
        engine.terminate()
        self.finish(engine, status=None)

    def test_raw_and_refusals(self):
        engine, path = self.engine("halt")
        raw = self.run_program(VPROF, "mpstat", "--raw", path)[0].splitlines()
        self.assertEqual(raw[0], "version 3")
        self.assertEqual(raw[1].split()[:4], ["vcpu", "wall", "run", "vmm"])
        self.assertEqual([line.split()[0] for line in raw[2:]], ["0", "1"])
        engine.terminate()
        self.finish(engine, status=None)
        self.refused(VPROF, "mpstat", path, message="vprof list")
        self.refused(VPROF, "mpstat", "no such guest", message='there is no engine "no such guest"')


if __name__ == "__main__":
    harness.main()
