#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof report --tui on a terminal that tmux emulates: what it shows, what the keys do, and how it leaves the terminal."""
import subprocess

import annotate
import harness
from harness import BIN, VPROF
from terminal import Terminal


class Browse(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("ncurses"), "vprof was built without ncurses")
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        self.terminal = Terminal(self)
        self.lines, self.shows, self.press = self.terminal.lines, self.terminal.shows, self.terminal.press

    def open(self, *options):
        self.terminal.open(f"cd {self.folder}; trap : INT; '{VPROF}' report --tui {' '.join(options)}; echo left $?; stty -a; read -r wait")

    def check_left(self, status=0):
        self.shows(rf"^left {status}$")
        self.shows(r"[ ;]icanon\b")
        self.shows(r" echo\b")
        self.assertNotIn("Share", "\n".join(self.lines()))

    def test_callers(self):
        self.open("-i", "calls.data")
        self.shows(r"^calls\.data  task-clock, 999 Hz, 10 samples over 0\.000 s, lost 0$")
        self.shows(r"^ +Share +Samples +Mode +Symbol")
        self.shows(r"^\+ +70\.00% +7 +kernel +memcpy")
        self.press("Right")
        self.shows(r"^- +70\.00% +7 +kernel +memcpy\n\+ +70\.00% +7 +< start_kernel \(\[kernel\]\)\n\+ +30\.00% +3 +kernel +start_kernel")
        # Nothing has called it; Left goes to the row above, and folds that.
        self.press("Down", "Right")
        self.shows("no call chain leads to it")
        self.shows(r"^  +70\.00% +7 +< start_kernel")
        self.press("Left", "Left")
        self.shows(r"memcpy\n\+ +30\.00% +3 +kernel +start_kernel")
        self.press("Down", "e")
        self.shows(r"start_kernel\n. +30\.00% +3 +< \[unknown\]")
        self.press("c", "q")
        self.check_left()

    def test_filter_and_search(self):
        self.open("-i", "events.data", "--sort", "mode,sym")
        self.shows(r"events\.data  task-clock, 999 Hz, 64 samples")
        self.shows(r"render\n.*start_kernel")
        self.press("f", "K", "E", "R", "N", "E", "L", "Enter")
        self.shows('only "KERNEL"')
        self.assertNotIn("render", "\n".join(self.lines()))
        self.press("f", *(6 * ["BSpace"]), "x", "y", "Enter")
        self.shows('no row has "xy"')
        self.press("f", "BSpace", "BSpace", "Enter")
        self.shows("render")
        self.press("/", "t", "h", "e", "r", "e", "Enter")
        self.shows('"there" is not there')
        self.press("/", "s", "t", "a", "Escape", "Tab")
        self.shows(r"events\.data  cycles:k, 999 Hz, 40 samples")
        self.press("/", "m", "e", "m", "Enter", "n", "N", "?")
        self.shows("^KEYS")
        self.press("x")
        self.shows("memcpy")
        self.terminal.resize(60, 8)
        harness.wait_until(lambda: len(self.lines()) == 8 and "Enter code" in self.lines()[7], "8 lines")
        self.assertLessEqual(max(map(len, self.lines())), 60)
        self.terminal.resize(110, 24)
        harness.wait_until(lambda: len(self.lines()) == 24 and "Enter code" in self.lines()[23], "24 lines")
        self.press("C-c")
        self.check_left()

    def test_code(self):
        harness.need(harness.built_with("capstone"), "vprof was built without capstone")
        harness.need_program("cc", "gcc")
        annotate.Annotate.assemble(self, "vmlinux", annotate.KERNEL, annotate.KERNEL_ID, "0xffffffff81000000", debug="-g0")
        self.open("-i", "calls.data", "--kernel", "vmlinux")
        self.shows("memcpy")
        self.press("Enter")
        self.shows(r"^# function memcpy, kernel, \[kernel\]")
        self.shows(r"100\.00% +7 +0 +pushq +%rbp|movq +%rsp, %rbp")
        self.press("/", "r", "e", "t", "q", "Enter", "q")
        self.shows(r"^\+ +70\.00% +7 +kernel +memcpy")
        self.press("q")
        self.check_left()

    def test_code_that_is_not_there(self):
        self.open("-i", "calls.data")
        self.shows("memcpy")
        self.press("Enter")
        self.shows("^ .*/boot/vmlinux")
        self.press("q")
        self.check_left()

    def test_rows_of_tasks(self):
        """Their chains are not known apart, and they have no code."""
        self.open("-i", "tasks.data", "--sort", "comm")
        self.shows("Command")
        self.press("Right")
        self.shows("no call chain leads to it")
        self.press("Enter")
        self.shows("these rows are of no function: --sort mode,sym")
        self.press("F10")
        self.check_left()

    def test_refusals(self):
        self.refused(VPROF, "report", "--tui", "-i", "calls.data", cwd=self.folder, status=2, message="--tui needs a terminal; without it the report is printed")
        self.refused(VPROF, "report", "--tui", "--json", "-i", "calls.data", cwd=self.folder, status=2, message="--tui and --json exclude each other")
        self.refused(VPROF, "report", "--tui", "calls.data", "clock.data", cwd=self.folder, status=2, message="--tui applies to a single recording")
        self.terminal.open(f"cd {self.folder}; TERM=none '{VPROF}' report --tui -i calls.data; echo left $?; read -r wait")
        self.shows(r'^vprof: the terminal "none" \(\$TERM\) is not known here; without --tui the report is printed')
        self.shows("^left 1$")


if __name__ == "__main__":
    harness.main()
