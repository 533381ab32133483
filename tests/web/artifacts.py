#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The pages without scripts that pipelines keep, `gate --html` and `history --html`, in Chromium: they can be read in either
theme, nothing is wrong with them, and they load nothing."""
import json
import subprocess

import contrast
import harness
from browser import Browser
from harness import BIN, VPROF

HOSTILE = "<script>document.title='owned'</script> &lt; \"'"


class Artifacts(harness.ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        # Of each run the same measurements, from the ninth on 20 % more.
        self.run_program(VPROF, "gate", "-u", "-b", "base.json", "repeats.data", cwd=self.folder)
        document = json.loads((self.folder / "base.json").read_text())
        (self.folder / "runs").mkdir()
        for run in range(1, 15):
            copy = json.loads(json.dumps(document))
            for metric in copy["metrics"]:
                metric["values"] = [value * (1.2 if run > 8 else 1) * (1 + 0.001 * (run * 7 % 5)) for value in metric["values"]]
            copy["metrics"].append({"name": HOSTILE, "unit": "<b>", "values": copy["metrics"][0]["values"]})
            (self.folder / f"runs/{run}.json").write_text(json.dumps(copy))
        self.browser.open("/dev/null")
        self.browser.console()
        self.browser.requests()

    def check_nothing_left(self, seconds=5):
        """The browser stays for the next test."""

    def show(self, page):
        for scheme in "light", "dark":
            self.browser.prefer(scheme)
            self.browser.open(page)
            worst = contrast.check(self, self.browser, 20, f"{page.name}, {scheme}")
            print(f"\n{page.name}, {scheme}: least contrast {worst:.2f}", flush=True)
            self.assertEqual(self.browser.console(), [])
            self.assertEqual(self.browser.requests(), [f"file://{page}"])
        self.assertEqual(self.browser.run("return document.querySelectorAll('script, b, [onload]').length"), 0)
        overlaps = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        self.assertLessEqual(self.browser.run(overlaps), 0)

    def test_gate(self):
        page = self.folder / "gate.html"
        self.run_program(VPROF, "gate", "-b", "repeats.data", "--html", page, "repeats.data", cwd=self.folder, status=2)
        self.show(page)
        self.assertGreaterEqual(self.browser.run("return document.querySelectorAll('svg.plot circle title').length"), 6)
        self.assertEqual(self.browser.run("return document.title"), "vprof gate")
        self.assertIn("undecided", self.browser.run("return document.querySelector('h1').textContent"))

    def test_history(self):
        page = self.folder / "history.html"
        self.run_program(VPROF, "history", "--html", page, "runs", cwd=self.folder)
        self.show(page)
        self.assertEqual(self.browser.run("return document.title"), "vprof history")
        self.assertIn(HOSTILE, self.browser.run("return [...document.querySelectorAll('h2')].map((head) => head.textContent)"))
        first = "const plot = document.querySelector('svg.plot'); return [plot.querySelectorAll('circle').length, plot.querySelectorAll('line.median').length," \
                " plot.querySelectorAll('line.worse').length]"
        self.assertEqual(self.browser.run(first), [14, 2, 1])
        rows = "return [...document.querySelector('table').tBodies[0].rows].map((row) => [row.cells[0].textContent, row.cells[1].textContent])"
        self.assertEqual(self.browser.run(rows), [["1.json", "1 to 8"], ["9.json", "9 to 14"]])


if __name__ == "__main__":
    harness.main()
