#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files that are made of recordings have the permissions of those, whatever the umask lets through."""
import shutil
import subprocess

import harness
from harness import BIN, VPROF

RECORDINGS = "calls.data", "tasks.data"


class PermissionsTest(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)

    def mode(self, *command, modes, umask=0o022, status=0):
        """Of the file "out", which `command` writes, when the recordings have `modes`."""
        out = self.folder / "out"
        for name, mode in zip(RECORDINGS, modes, strict=True):
            (self.folder / name).chmod(mode)
        out.unlink(missing_ok=True)
        self.run_program(VPROF, *command, cwd=self.folder, umask=umask, status=status)
        return oct(out.stat().st_mode & 0o7777)


class OutputFiles(PermissionsTest):
    def test_export(self):
        for mode, umask, expected in (0o600, 0o022, "0o600"), (0o644, 0o022, "0o644"), (0o660, 0o022, "0o640"), (0o755, 0, "0o644"):
            for kind in "folded", "csv":
                self.assertEqual(self.mode("export", "-t", kind, "-o", "out", "calls.data", modes=(mode, 0o644), umask=umask), expected)

    def test_svg(self):
        self.assertEqual(self.mode("report", "--svg", "out", "calls.data", modes=(0o600, 0o644)), "0o600")

    def test_svg_of_an_event(self):
        for event in "task-clock", "cycles:k":
            self.run_program(VPROF, "report", "--svg", "out", "-i", "events.data", "--event", event, cwd=self.folder)
            drawn = (self.folder / "out").read_text()
            self.assertIn(f"events.data: {event}, ", drawn)
            self.assertNotIn(", 0 samples", drawn)


class Pages(PermissionsTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("d3-flame-graph"), "vprof was built without the HTML page")

    def test_page(self):
        self.assertEqual(self.mode("report", "--html", "out", "calls.data", modes=(0o600, 0o644)), "0o600")
        self.assertEqual(self.mode("report", "--html", "out", "calls.data", modes=(0o644, 0o644)), "0o644")

    def test_page_of_two(self):
        for modes in (0o600, 0o644), (0o644, 0o600):
            self.assertEqual(self.mode("diff", "--html", "out", *RECORDINGS, modes=modes), "0o600")

    def test_pages_of_measurements(self):
        """Status 2: a repetition on each side tells nothing."""
        runs = self.folder / "runs"
        runs.mkdir()
        for modes, expected in ((0o600, 0o644), "0o600"), ((0o644, 0o644), "0o644"):
            self.assertEqual(self.mode("gate", "--html", "out", "-b", *RECORDINGS, modes=modes, status=2), expected)
            for name in RECORDINGS:
                shutil.copy(self.folder / name, runs)
            self.assertEqual(self.mode("history", "--force", "--html", "out", "runs", modes=modes), expected)


if __name__ == "__main__":
    harness.main()
