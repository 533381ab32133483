#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf, go tool pprof and parsers of XML, CSV and JSON read what we export, and find in it what our own report says."""
import collections
import csv
import json
import re
import subprocess
import xml.etree.ElementTree

import harness
import perf
from harness import VPROF


class Export(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need_program("go", "golang-go")
        self.recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--demo", "--append", "seconds=2", "-g", "--no-report", "-o", self.recording)
        _, rows = self.report(self.recording)
        self.period = {row["symbol"]: row["period"] for row in rows}
        self.samples = {row["symbol"]: row["samples"] for row in rows}

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

    def test_perf_script(self):
        """The lines that perf script prints of the same file, but for the spaces, and as many frames."""
        header = re.compile(r"^(\S.*?) +(-?\d+)/(-?\d+) +\[(\d+)\] +([\d.]+): +(\d+) +(\S+?): *$")

        def kernel_ip(frame):
            ip = int(frame.split()[0], 16)
            return ip if ip >> 63 else 0  # perf prints those of user space as they are in their file

        def samples(text):
            stacks = (stack.splitlines() for stack in text.split("\n\n") if stack.strip())
            return sorted((*header.match(lines[0].strip()).groups(), kernel_ip(lines[1]), len(lines) - 1)
                          for lines in stacks)

        theirs = perf.perf("script", "--ns", "-F", "comm,pid,tid,cpu,time,period,event,ip,sym", "-i", self.recording)
        text = self.export("perf-script").read_text()
        self.assertEqual(samples(text), samples(theirs))
        leaves = re.findall(r"^\S.*:\n\t *[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \(.*\)$", text, re.M)
        self.assertEqual(collections.Counter(leaves), self.samples)

    def test_csv(self):
        with self.export("csv").open(newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        own = collections.Counter()
        for row in rows:
            own[row["symbol"]] += int(row["period"])
            self.assertEqual(row["stack"].split(";")[-1], row["symbol"])
        self.assertEqual(own, self.period)

    def column_lengths(self, table):
        """Every column of a table has the length that the table says."""
        for name, column in table.items():
            if isinstance(column, list):
                self.assertEqual(len(column), table["length"], name)

    def test_firefox(self):
        """By the rules of the processed format: columns of one length, and indexes of what there is."""
        profile = json.loads(self.export("firefox").read_text())
        categories = len(profile["meta"]["categories"])
        counts = collections.Counter()
        for thread in profile["threads"]:
            tables = {name: thread[name] for name in ("frameTable", "funcTable", "resourceTable", "stackTable", "samples")}
            for table in tables.values():
                self.column_lengths(table)
            frames, functions, resources, stacks, samples = tables.values()
            self.assertTrue(all(index < functions["length"] for index in frames["func"]))
            self.assertTrue(all(index < categories for index in frames["category"] + stacks["category"]))
            self.assertTrue(all(index < resources["length"] for index in functions["resource"]))
            self.assertTrue(all(index < len(thread["stringArray"]) for index in functions["name"] + resources["name"]))
            self.assertTrue(all(index < frames["length"] for index in stacks["frame"]))
            # A prefix stands before what hangs on it.
            self.assertTrue(all(prefix is None or prefix < i for i, prefix in enumerate(stacks["prefix"])))
            self.assertEqual(samples["time"], sorted(samples["time"]))
            for stack in samples["stack"]:
                counts[thread["stringArray"][functions["name"][frames["func"][stacks["frame"][stack]]]]] += 1
        self.assertEqual(counts, self.samples)

    def test_speedscope(self):
        """Its samples are stacks of frames there are, and weigh what the report says."""
        profile = json.loads(self.export("speedscope").read_text())
        names = [frame["name"] for frame in profile["shared"]["frames"]]
        own = collections.Counter()
        for task in profile["profiles"]:
            for stack, weight in zip(task["samples"], task["weights"], strict=True):
                own[names[stack[-1]]] += weight
            self.assertEqual(sum(task["weights"]), task["endValue"])
        self.assertEqual(own, {symbol: period for symbol, period in self.period.items() if period})


if __name__ == "__main__":
    harness.main()
