#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Commands that read recordings tell how far they have got, on terminals only, and leave nothing of that behind."""
import os
import re
import subprocess

import harness
from harness import BIN, VPROF

CLEAR = "\r\x1b[K"


class Progress(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)

    def check(self, shown, *tasks):
        """Each task is shown, and then cleared; in the end the line is empty."""
        for task in tasks:
            self.assertRegex(shown, r"\r" + re.escape(task) + r"(: \d+ %)?\x1b\[K")
        self.assertEqual(re.sub(r"\r[^\r\n\x1b]*\x1b\[K", "", shown), "")
        self.assertTrue(shown.endswith(CLEAR))

    def test_report(self):
        shown, text = self.on_terminal(VPROF, "report", "-i", "clock.data")
        self.check(shown, "reading clock.data")
        self.assertEqual(text, self.run_program(VPROF, "report", "-i", "clock.data", cwd=self.folder)[0])

    def test_diff(self):
        self.check(self.on_terminal(VPROF, "diff", "repeats.data", "repeats.data")[0], "reading repeats.data")

    def test_export(self):
        for kind in "folded", "csv", "otlp":
            self.check(self.on_terminal(VPROF, "export", "-t", kind, "-i", "tasks.data", "-o", "out")[0], "reading tasks.data", "writing out")

    def test_html(self):
        if harness.built_with("d3-flame-graph"):
            self.check(self.on_terminal(VPROF, "report", "-i", "calls.data", "--html", "page.html")[0], "reading calls.data", "writing page.html")
            self.check(self.on_terminal(VPROF, "diff", "clock.data", "clock.data", "--html", "page.html")[0],
                       "reading clock.data", "writing page.html")

    def test_nothing_is_shown(self):
        """Without a terminal, when it is not wanted, in less than a second's work, and beside output that comes meanwhile."""
        for after in "never", "1e6":
            self.assertEqual(self.on_terminal(VPROF, "report", "-i", "clock.data", after=after)[0], "")
        _, err = self.run_program(VPROF, "report", "-i", "clock.data", cwd=self.folder, env=os.environ | {"VPROF_PROGRESS": "0"})
        self.assertEqual(err, "")
        for arguments in ("script", "-i", "clock.data"), ("export", "-t", "csv", "-i", "clock.data"):
            shown, _ = self.on_terminal(VPROF, *arguments, stdout="terminal")
            self.assertNotIn("writing", shown)
            self.assertEqual(shown.rpartition(CLEAR)[2].count("\x1b"), 0)


if __name__ == "__main__":
    harness.main()
