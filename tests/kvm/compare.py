#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest with a function made 5 % slower is told from one without, and one without from itself is not."""
import collections
import json
import random
import re
import shutil
import statistics

import harness
from harness import VPROF

REPETITIONS = 10
GATES = 40
# By chance a gate calls two halves of the same repetitions different so often, and two of GATES once in 130,000 runs.
ALPHA = 1e-4
FLAGGED_MAX = 1


class Compare(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def record(self, kernel, folder, repetitions):
        """Repetitions of the guest's work, each a boot and a recording."""
        self.run_program(VPROF, "run", "--kernel", harness.guest(kernel), "-F", 10000, "--boot-each", "--repeat",
                         repetitions, "-o", folder, timeout=12 * repetitions)
        self.assertEqual(sorted(file.name for file in folder.iterdir()),
                         [f"{i:03}.data" for i in range(1, repetitions + 1)])

    def test_slower_function(self):
        base, slower = self.folder / "base", self.folder / "slower"
        self.record("fixed_work", base, 2 * REPETITIONS)
        self.record("fixed_work_slower", slower, REPETITIONS)
        # By shares, since the speed of a shared machine changes by more than the function.
        out, _ = self.run_program(VPROF, "diff", "--json", "--shares", base, slower)
        comparison = json.loads(out)["comparisons"][0]
        for change in comparison["functions"]:
            print(f"{change['name']}: {change['base']:.2f} % to {change['now']:.2f} %, p {change['p']:.2g}", flush=True)
        grown = [change for change in comparison["functions"] if change["stands"] and change["change"] > 0]
        self.assertEqual([change["name"] for change in grown], ["hash_blocks"])
        # 5 % more of a part s make it 1.05 s / (1 + 0.05 s).
        share = grown[0]["base"] / 100
        expected = 100 * (1.05 * share / (1 + 0.05 * share) - share)
        self.assertAlmostEqual(grown[0]["change"], expected, delta=expected / 3)
        self.pages(base, slower)
        self.gates_of_one(sorted(base.iterdir()))
        self.refused(VPROF, "run", "--kernel", harness.guest("fixed_work"), "--boot-each", "--repeat", 2, "-o", base,
                     message="holds recordings already")

    def pages(self, base, slower):
        """Of each folder, they show the recording that took the median time."""
        typical = [self.median_recording(folder) for folder in (base, slower)]
        self.finish(self.start(VPROF, "gate", "--baseline", base, slower, "--html", self.folder / "gate.html"), status=None)
        self.assertEqual(re.findall(r">(\S+): task-clock, \d+ samples<", (self.folder / "gate.html").read_text()), typical)
        if harness.built_with("d3-flame-graph"):
            self.run_program(VPROF, "diff", base, slower, "--html", self.folder / "diff.html")
            page = (self.folder / "diff.html").read_text()
            self.assertEqual([file for file in typical if file not in page], [])

    def median_recording(self, folder):
        times = {file: sum(table["period"] for table in self.report(file)[0]["tables"]) for file in sorted(folder.iterdir())}
        median = statistics.median(times.values())
        return str(min(times, key=lambda file: abs(times[file] - median)))

    def gates_of_one(self, recordings):
        """Halves of repetitions of the same guest, again and again."""
        dice = random.Random(1)
        statuses = collections.Counter()
        for _ in range(GATES):
            dice.shuffle(recordings)
            folders = self.folder / "left", self.folder / "right"
            for folder, half in zip(folders, (recordings[:REPETITIONS], recordings[REPETITIONS:])):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                for file in half:
                    (folder / file.name).symlink_to(file)
            gate = self.start(VPROF, "gate", "--alpha", ALPHA, "--baseline", *folders)
            self.finish(gate, status=None)
            statuses[gate.returncode] += 1
        print(f"{GATES} gates without a change, by exit status: {dict(statuses)}", flush=True)
        self.assertLessEqual(statuses[1], FLAGGED_MAX)
        self.assertEqual(statuses[0] + statuses[1] + statuses[2], GATES)


if __name__ == "__main__":
    harness.main()
