#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""go tool pprof and an XML parser read what we export, and find in it what our own report says."""
import re
import subprocess
import xml.etree.ElementTree

import harness
from harness import VPROF


class Export(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need_program("go", "golang-go")
        self.recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--demo", "-g", "--no-report", "-o", self.recording)
        _, rows = self.report(self.recording)
        self.period = {row["symbol"]: row["period"] for row in rows}

    def export(self, name):
        file = self.folder / f"profile.{name}"
        self.run_program(VPROF, "export", "--to", name, "-i", self.recording, "-o", file)
        return file

    def test_pprof(self):
        profile = self.export("pprof")
        text = subprocess.run(["go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=ns", profile],
                              capture_output=True, text=True, check=True, env={"PATH": "/usr/bin", "HOME": self.folder}).stdout
        self.assertIn("Type: task-clock", text)
        flat = {name: int(ns) for ns, name in re.findall(r"^ *(\d+)ns .* (\S+)$", text, re.M)}
        self.assertGreater(len(flat), 4)
        for symbol, ns in flat.items():
            self.assertEqual(ns, self.period.get(symbol, 0), symbol)

    def test_folded(self):
        own = {}
        for line in self.export("folded").read_text().splitlines():
            stack, weight = line.rsplit(" ", 1)
            leaf = stack.split(";")[-1].removesuffix("_[k]")
            own[leaf] = own.get(leaf, 0) + int(weight)
        self.assertEqual(own, {symbol: period for symbol, period in self.period.items() if period})

    def test_svg(self):
        frames = xml.etree.ElementTree.parse(self.export("svg")).iter("{http://www.w3.org/2000/svg}title")
        titles = [frame.text for frame in frames]
        for symbol in "render_page", "tcp_checksum":
            shares = [float(re.search(r": ([\d.]+) %", title)[1]) for title in titles if title.startswith(f"{symbol} (")]
            expected = 100 * self.period[symbol] / sum(self.period.values())
            self.assertAlmostEqual(sum(shares), expected, delta=0.1, msg=titles)


if __name__ == "__main__":
    harness.main()
