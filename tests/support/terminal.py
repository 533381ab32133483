# SPDX-License-Identifier: BSD-2-Clause
"""A program on a terminal, which tmux emulates."""
import re
import subprocess

import harness


class Terminal:
    def __init__(self, test):
        harness.need_program("tmux", "tmux")
        self.socket = test.folder / "tmux.sock"
        test.addCleanup(self.tmux, "kill-server")

    def tmux(self, *arguments):
        command = ["tmux", "-S", self.socket, "-f", "/dev/null", *arguments]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False).stdout

    def open(self, shell):
        """Runs it on a screen of 110 columns and 24 lines."""
        self.tmux("new-session", "-d", "-x", "110", "-y", "24", "sh", "-c", shell)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def lines(self):
        return self.tmux("capture-pane", "-p").splitlines()

    def shows(self, pattern):
        try:
            harness.wait_until(lambda: re.search(pattern, "\n".join(self.lines()), re.M), f"{pattern} on the screen")
        except AssertionError as late:
            raise AssertionError("\n".join([str(late), "it shows:", *self.lines()])) from None

    def press(self, *keys):
        self.tmux("send-keys", *keys)
