#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `perf record -g` makes of a program on this host opens in vprof, with the samples and callers that perf shows."""
import collections
import json
import re
import subprocess

import harness
import perf
from harness import VPROF

PROGRAM = r"""
#include <stdint.h>
volatile uint64_t sink;
__attribute__((noinline)) void inner(void) { for (int i = 0; i < 1000; i++) sink = sink * 31 + (uint64_t)i; }
__attribute__((noinline)) void outer(void) { for (int i = 0; i < 300; i++) inner(); sink++; }
int main(void) { for (int i = 0; i < 400; i++) outer(); return 0; }
"""


class OfPerf(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("perf", "linux-perf")
        source, self.program = self.folder / "chain.c", self.folder / "chain"
        source.write_text(PROGRAM)
        subprocess.run(["cc", "-O0", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", self.program, source], check=True)
        self.recording = self.folder / "perf.data"
        # perf's default event: cycles, or a clock where there are none.
        done = subprocess.run(["perf", "record", "-q", "-g", "-o", self.recording, self.program], capture_output=True,
                              text=True, env=perf.ENVIRONMENT, check=False)
        harness.need(done.returncode == 0, f"perf cannot record here: {done.stderr.strip()}")

    def vprof(self, *arguments):
        return self.run_program(VPROF, *arguments, "-i", self.recording, "--symfs", "/", cwd=self.folder)[0]

    def theirs(self):
        """How many samples perf finds in each function of the program."""
        text = perf.perf("script", "-i", self.recording, "-F", "comm,ip,sym", "-G")
        return collections.Counter(re.findall(r"^\s*chain\s+[0-9a-f]+ (inner|outer|main)\b", text, re.M))

    def test_report(self):
        theirs = self.theirs()
        self.assertGreater(theirs["inner"], 0)
        report = json.loads(self.vprof("report", "--json", "--sort", "comm,sym"))
        ours = {row["symbol"]: row["samples"] for row in report["tables"][0]["rows"] if row["comm"] == "chain"}
        self.assertEqual({name: ours.get(name, 0) for name in theirs}, dict(theirs))
        all_of_perf = perf.perf("script", "-i", self.recording, "-F", "ip", "-G").split()
        self.assertEqual(sum(row["samples"] for row in report["tables"][0]["rows"]), len(all_of_perf))

    def test_callers(self):
        calls = self.vprof("report", "-g").split("# calls")[1].splitlines()
        indents = [next(line.index(f" {name}") for line in calls if line.endswith(f" {name}")) for name in ("main", "outer", "inner")]
        self.assertEqual(indents, [indents[0], indents[0] + 2, indents[0] + 4])
        stacks = self.vprof("export", "--to", "folded")
        self.assertRegex(stacks, r"(?m)^chain;.*main;outer;inner \d+$")

    def test_cgroups(self):
        """The same samples in each cgroup, behind all that perf can put in front of its id."""
        recording = self.folder / "cgroups.data"
        done = subprocess.run(["perf", "record", "-q", "--all-cgroups", "-e", "task-clock", "--call-graph", "dwarf,1024", "-W", "-d",
                               "--intr-regs=ip,sp", "-o", recording, self.program], capture_output=True, text=True,
                              env=perf.ENVIRONMENT, check=False)
        harness.need(done.returncode == 0, f"perf cannot record cgroups here: {done.stderr.strip()}")
        theirs = perf.cgroups(recording)
        _, rows = self.report(recording, "--sort", "cgroup")
        self.assertEqual({row["cgroup"]: row["samples"] for row in rows}, theirs)
        self.assertTrue(theirs and all(path.startswith("/") for path in theirs), theirs)

    def test_other_commands(self):
        self.assertIn("inner", self.vprof("script"))
        self.assertIn("<svg", self.vprof("export", "--to", "svg"))
        self.assertIn("inner", self.vprof("annotate", "inner"))


if __name__ == "__main__":
    harness.main()
