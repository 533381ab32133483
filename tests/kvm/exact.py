#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Instructions counted one by one: as many as there are, the same in every run, and a gate that needs one of them."""
import json
import pathlib
import re

import harness
from harness import VPROF

TURNS = {"0x10": ("hash_blocks", 200), "0x20": ("sort_blocks", 400)}
ROUNDS = 3
VMM_ERROR = 96  # the exit status of a guest that the VMM could not go on with
USER_ROUNDS = 300  # of user_mode: a page fault and a system call in each


class Exact(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def record(self, kernel, name, status=0):
        path = self.folder / name
        _, err = self.run_program(VPROF, "run", "--kernel", harness.guest(kernel), "--exact", "--no-report", "-o", path,
                                  timeout=200, status=status)
        return path, err

    def functions(self, recording, *options):
        return {(row["mode"], row["symbol"]): row["samples"] for row in self.report(recording, *options)[1]}

    def test_counts(self):
        (first, err), (second, _), (slower, _) = (self.record(kernel, name) for kernel, name in (
            ("counted_work", "first.data"), ("counted_work", "second.data"), ("counted_work_slower", "slower.data")))
        self.assertNotIn("uncounted", err)
        counted = self.functions(first)
        for phase, (function, turns) in TURNS.items():
            # Two instructions a turn, and RET.
            self.assertEqual(counted["kernel", function], ROUNDS * (2 * turns + 1))
            self.assertEqual(self.functions(first, "--phase", phase)["kernel", function], ROUNDS * (2 * turns + 1))
        self.assertEqual(self.functions(second), counted)
        self.gates(first, second, slower)

    def gate(self, *arguments, status):
        out, _ = self.run_program(VPROF, "gate", "--json", *arguments, status=status)
        return json.loads(out)

    def gates(self, first, second, slower):
        same = self.gate("-b", first, second, status=0)
        self.assertEqual(same["metrics"][0]["ratio"], 1)
        base = self.folder / "base.json"
        self.run_program(VPROF, "gate", "-b", base, "--phase", "0x20", "--update-baseline", first)
        verdict = self.gate("-b", base, "--phase", "0x20", slower, status=1)
        changed = [change for change in verdict["comparison"]["functions"] if change["stands"]]
        self.assertEqual([(change["name"], change["base"], change["change"]) for change in changed],
                         [("sort_blocks", 801, 40)])
        self.gate("-b", base, "--phase", "0x20", "--max-regression", "5", slower, status=0)
        self.gate("-b", base, "--phase", "0x20", second, status=0)
        # What the phase is made of is a condition.
        self.refused(VPROF, "gate", "-b", base, slower, status=3, message="cannot be compared: phase is")

    def test_user_space(self):
        """System calls, exceptions and programs: what the kernel executes for them is the same each time."""
        emulated = pathlib.Path("/sys/module/kvm_pvm").exists()
        (first, err), (second, _) = (self.record("user_mode", name, status=3 if emulated else VMM_ERROR)
                                     for name in ("first.data", "second.data"))
        if not emulated:
            # No count is better than a short one, and no gate passes it.
            self.assertIn("cannot count the instructions of vCPU 0 exactly: its IDT has a gate for vector 14", err)
            self.refused(VPROF, "gate", "-b", first, second, status=3, message="is incomplete: cannot count the instructions")
            return
        first, second = (self.functions(path) for path in (first, second))
        if "uncounted" not in err:
            self.assertEqual(first, second)
        # Where user space is not stepped, the step at which it is left may be counted for either side of it.
        self.assertEqual(first.keys(), second.keys())
        for function, count in first.items():
            self.assertAlmostEqual(count, second[function], delta=0.005 * USER_ROUNDS + 1)
        if "uncounted" in err:
            # And once more for each signal that took the vCPU out of there.
            times = int(re.search(r"(\d+) times the guest ran there uncounted", err)[1])
            self.assertTrue(2 * USER_ROUNDS <= times < 3 * USER_ROUNDS, times)
            self.assertNotIn("user", {mode for mode, _ in first})
        # PUSH and JMP, each time that the program has hit its page that is gone.
        self.assertAlmostEqual(first["kernel", "stub_page_fault"], 2 * USER_ROUNDS, delta=0.005 * USER_ROUNDS + 1)


if __name__ == "__main__":
    harness.main()
