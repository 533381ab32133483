#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every way in which a guest ends: its exit status, its message, a recording that reads."""
import os
import re
import signal
import subprocess
import time

import harness
from harness import VMM, VPROF, guest


class Ends(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def run_guest(self, name, *options, status, timeout=30, **more):
        return self.run_program(VPROF, "run", "--kernel", guest(name), "-o", self.recording, *options, status=status,
                                timeout=timeout, **more)

    def end_recorded(self):
        return self.report(self.recording)[0]["recording"]["end"]

    def test_power_off(self):
        out, err = self.run_guest("power_off", status=0)
        self.assertIn("power_off: by ACPI", out)
        self.assertRegex(err, "powered off")
        self.assertEqual(self.end_recorded()["reason"], "power-off")

    def test_reboot(self):
        _, err = self.run_guest("reboot", status=0)
        self.assertRegex(err, "reboot")
        self.assertEqual(self.end_recorded()["reason"], "reboot")
        self.run_guest("reboot", "--fail-on-reboot", status=90)

    def test_exit_port(self):
        _, err = self.run_guest("exit_port", status=7 << 1 | 1)
        self.assertRegex(err, "7")
        end = self.end_recorded()
        self.assertEqual((end["reason"], end["code"]), ("exit-port", 7))

    def test_triple_fault_says_where(self):
        _, err = self.run_guest("triple_fault", status=92)
        self.assertRegex(err, "triple fault")
        # On AMD processors KVM resets the vCPU first; the exit before is that of the console, or of a sample.
        if re.search(r"kind +svm", self.run_program(VPROF, "doctor", status=None)[0]):
            self.assertRegex(err, r"RIP was last seen in (guest_main|fault_here)\+")
        else:
            self.assertRegex(err, r"RIP is in fault_here\+0x0")
            self.assertNotIn("last seen", err)
        self.assertRegex(err, r"(?i)cr3")
        self.assertIn("triple_fault: the last line before the fault", err)

    def test_unhandled_exit_says_where(self):
        _, err = self.run_guest("unhandled", status=96)
        self.assertRegex(err, "(?i)rip.*e0000000")
        self.assertIn("unhandled: jumping out of memory", err)

    def test_panic(self):
        _, err = self.run_guest("panic", "--stop-on-panic", status=94)
        self.assertRegex(err, "panic")

    def test_panic_keeps_the_guest(self):
        _, err = self.run_guest("panic", "--on-panic", "keep", "--duration", "6", status=94)
        self.assertIn("vprof-vmm: the guest has panicked and is kept: Kernel panic - not syncing: a test\n", err)
        self.assertEqual(self.end_recorded()["reason"], "panic")
        self.assertIn("panic=0", self.report(self.recording)[0]["recording"]["guest"]["command-line"])

    def test_panic_is_not_an_end_by_itself(self):
        self.run_guest("panic", "--duration", "1", status=0)

    def test_duration(self):
        before = time.monotonic()
        self.run_guest("hang", "--duration", "2", status=0)
        self.assertGreaterEqual(time.monotonic() - before, 2)
        _, rows = self.report(self.recording)
        self.assertEqual(rows[0]["symbol"], "hang_here")

    def test_duration_of_a_sleeping_guest(self):
        self.run_guest("halt", "--duration", "1", status=0)

    def started(self, name, *options):
        process = self.start(VPROF, "run", "--kernel", guest(name), "-o", self.recording, *options)
        self.assertIn(f"{name}: ", process.stdout.readline())
        return process

    def test_ctrl_c_finishes_the_recording(self):
        name = f"ends-{os.getpid()}"
        process = self.started("hang", "--name", name)
        self.wait_for_samples(name, 10)
        process.send_signal(signal.SIGINT)
        self.finish(process, status=130, timeout=20)
        _, rows = self.report(self.recording)
        self.assertEqual(rows[0]["symbol"], "hang_here")
        self.assertEqual(self.end_recorded()["reason"], "stopped")

    def test_ctrl_c_twice_leaves_at_once(self):
        process = self.started("hang")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        self.finish(process, status=130, timeout=20)

    def test_console_both_ways(self):
        process = self.start(VPROF, "run", "--kernel", guest("console_echo"), "--no-report", "-o", self.recording,
                             stdin=subprocess.PIPE)
        out, _ = self.finish(process, typed="hello vprof\nq", timeout=30)
        self.assertIn("HELLO VPROF", out)

    def test_phase_marks_are_recorded(self):
        self.run_guest("phase_marks", status=0)
        phases = self.report(self.recording)[0]["recording"]["phases"]
        self.assertEqual([phase["value"] for phase in phases], [0x20, 0x40, 0x60, 0x80])
        times = [phase["time-ns"] for phase in phases]
        self.assertEqual(times, sorted(times))

    def test_engine_by_hand(self):
        out, _ = self.run_program(VMM, "--kernel", guest("exit_port"), status=15)
        self.assertIn("exit_port: 7", out)


if __name__ == "__main__":
    harness.main()
