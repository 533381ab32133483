#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf reads a recording of the demonstration guest, and agrees with us to the sample."""
import harness
import perf
from harness import VPROF


class Demo(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def record(self, *options):
        self.run_program(VPROF, "run", "--demo", "--append", "seconds=2", "-o", self.recording, "--no-report", *options)

    def test_samples_and_symbols(self):
        self.record("-F", 1000)
        perf.check_agreement(self, self.recording)

    def test_two_events(self):
        self.record("-F", 500, "-e", "task-clock", "-e", "cpu-clock")
        events = {sample["event"] for sample in perf.vprof_samples(self.recording)}
        self.assertEqual(events, {"task-clock", "cpu-clock"})
        for event in events:
            self.assertIn(f"of event '{event}'", perf.perf("report", "--stdio", "-i", self.recording))

    def test_header(self):
        """What perf says of the machine is the guest's."""
        self.record("-F", 1000)
        header = perf.perf("report", "--header-only", "-i", self.recording)
        self.assertRegex(header, r"# nrcpus online : 2\b")
        self.assertRegex(header, r"# cmdline : .*vprof run --demo")


if __name__ == "__main__":
    harness.main()
