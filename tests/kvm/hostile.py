#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guests that attack the engine's devices, its time and its walks end when they have to, and are recorded meanwhile."""
import re
import signal
import time

import harness
from harness import VMM, VPROF, guest

DURATION = 2
LATE = 1.5
PHASES_PER_SECOND = 100


class Hostile(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def run_in_time(self, name, *command, status):
        """What it prints; ends at most LATE seconds after the duration, which begins before the guest's first line."""
        process = self.start(*command, "--duration", DURATION)
        self.assertEqual(process.stdout.readline(), f"{name}: begins\n")
        begin = time.monotonic()
        printed = self.finish(process, status=status, timeout=30)
        self.assertLess(time.monotonic() - begin, DURATION + LATE * harness.SLOWNESS)
        return printed

    def record(self, name, *options):
        self.run_in_time(name, VPROF, "run", "--kernel", guest(name), "-o", self.recording, *options, status=0)
        report = self.report(self.recording)[0]
        self.assertEqual(report["recording"]["end"]["reason"], "duration")
        self.assertGreater(sum(table["samples"] for table in report["tables"]), 0)

    def test_virtio(self):
        image = self.folder / "image"
        image.write_bytes(bytes(1 << 20))
        _, err = self.run_in_time("virtio_storm", VMM, "--kernel", guest("virtio_storm"), "--control", "none", "--disk", image,
                                  "--serial2", "/dev/null", status=124)
        self.assertLessEqual(len(re.findall("broke a rule", err)), 2)
        self.assertEqual(image.stat().st_size, 1 << 20)

    def test_signals(self):
        """They stop such a guest as soon: one, or the second of two at once."""
        for signals in ([signal.SIGTERM], [signal.SIGTERM] * 2, [signal.SIGINT]):
            with self.subTest(signals=signals):
                process = self.start(VMM, "--kernel", guest("virtio_storm"), "--control", "none", "--serial2", "/dev/null")
                self.assertEqual(process.stdout.readline(), "virtio_storm: begins\n")
                time.sleep(0.3)
                begin = time.monotonic()
                for number in signals:
                    process.send_signal(number)
                self.finish(process, status=None, timeout=30)
                self.assertLess(time.monotonic() - begin, LATE * harness.SLOWNESS)
                self.assertIn(process.returncode, (130, 128 + signals[0]))

    def test_phases(self):
        """Those that nothing has time for are left out and counted."""
        self.record("phase_storm")
        phases = self.report(self.recording)[0]["recording"]["phases"]
        self.assertLessEqual(len(phases), PHASES_PER_SECOND * (DURATION + 1 + LATE * harness.SLOWNESS))
        self.assertGreater(len(phases), PHASES_PER_SECOND)

    def test_ports_and_registers(self):
        image = self.folder / "image"
        image.write_bytes(bytes(1 << 20))
        self.record("io_storm", "--disk", image, "--pmu", "emulated")

    def test_agent(self):
        """One that greets, then answers without end what was not asked: the duration holds, and a log is not filled."""
        process = self.start(VPROF, "run", "--kernel", guest("agent_flood"), "--exec", "true", "-o", self.recording, "--no-report",
                             "--duration", DURATION)
        harness.wait_until(self.recording.exists, "the recording")
        begin = time.monotonic()
        _, err = self.finish(process, status=124, timeout=30)
        self.assertLess(time.monotonic() - begin, DURATION + LATE * harness.SLOWNESS)
        self.assertLess(len(err), 8192, err)
        self.assertNotIn("\x1b", err)
        self.assertEqual(self.report(self.recording)[0]["recording"]["end"]["reason"], "duration")

    def test_tables_and_frames(self):
        self.record("table_loop", "-g")


if __name__ == "__main__":
    harness.main()
