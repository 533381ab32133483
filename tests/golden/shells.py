#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Command lines: typed into the shells, with completion by Tab in a terminal, and as option parsing takes them."""
import fnmatch
import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

from fake_engine import FakeEngine
from harness import BIN, SLOWNESS, VPROF, need_program

# What is typed, with \t for Tab, and the arguments that vprof gets.
TYPED = {
    "rep\t": ["report"],
    "report --sor\tmode": ["report", "--sort", "mode"],
    "report --sort=mode,sy\t": ["report", "--sort=mode,sym"],
    "script --fields time,com\t": ["script", "--fields", "time,comm"],
    "report -s do\t": ["report", "-s", "domain"],
    "report -i phases.data --phase pars\t": ["report", "-i", "phases.data", "--phase", "parse"],
    "report clo\t": ["report", "clock.data"],
    "report --input=clo\t": ["report", "--input=clock.data"],
    "export -t spee\t": ["export", "-t", "speedscope"],
    "export -i events.data -e cyc\t": ["export", "-i", "events.data", "-e", "cycles:k"],
    "attach --route mon\t": ["attach", "--route", "monitor"],
    "run --call-graph o\t": ["run", "--call-graph", "orc"],
    "run -ge task-c\t": ["run", "-ge", "task-clock"],
    "trace my-en\t": ["trace", "my-engine"],
    "trace -e function:tcp_ch\t": ["trace", "-e", "function:tcp_checksum"],
    "probe args pro\t": ["probe", "args", "profile"],
    "attach tes\t": ["attach", "test"],
    "doctor tes\t": ["doctor", "test"],
    "ctl samples-r\t": ["ctl", "samples-read"],
    "ctl my-engine samples-read max\t1": ["ctl", "my-engine", "samples-read", "max-bytes=1"],
    "help doc\t": ["help", "doctor"],
    "completion f\t": ["completion", "fish"],
}
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(vprof completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(vprof completion zsh)"),
    "fish": (["fish", "--private", "-N", "-i"], "vprof completion fish | source"),
}
# Root's engines are in one folder, which shells of a test see as another.
PRIVATE = ["unshare", "--mount", "sh", "-c", 'mkdir -p -m 700 /run/vprof; mount --bind "$0" /run/vprof && exec "$@"']
SECONDS = 20 * SLOWNESS


def probe_list(arguments):
    """What the engine can trace."""
    names = ["function:tcp_checksum", "function:copy_page", "exit:hlt"]
    return {"providers": [{"name": "profile", "summary": "ticks"}], "next": None,
            "probes": [name for name in names if fnmatch.fnmatch(name, arguments["match"])]}


class Terminal:
    """A shell at a terminal of 80 columns."""

    def __init__(self, command, folder, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, pattern):
        """What the pattern has found in the output; the output up to there is forgotten."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.text)):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{pattern} did not come: {self.text!r}")
            output = os.read(self.fd, 65536).decode(errors="replace")
            if "\x1b[c" in output or "\x1b[0c" in output:  # fish asks what terminal it is
                self.type("\x1b[?62c")
            self.text += output
        self.text = self.text[found.end():]
        return found

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        subprocess.run([BIN / "make_recordings"], cwd=cls.folder, check=True)
        programs = cls.folder / "bin"
        programs.mkdir()
        # Completion asks vprof; everything else shows what it was given.
        (programs / "vprof").write_text(f'#!/bin/sh\n[ "$1" = completion ] && [ ! -t 1 ] && exec {shlex.quote(str(VPROF))} "$@"\n'
                                        'printf "GOT%s" "<"; printf "%s|" "$@"; printf ">\\n"\n')
        (programs / "vprof").chmod(0o755)
        (cls.folder / "vprof").mkdir(mode=0o700)
        cls.engine = FakeEngine(cls.folder / "vprof" / "my-engine.sock", {"probe-list": probe_list})
        cls.environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(cls.folder), "TERM": "xterm", "LC_ALL": "C.UTF-8",
                           "XDG_RUNTIME_DIR": str(cls.folder), "LIBVIRT_DEFAULT_URI": "test:///default"}

    @classmethod
    def tearDownClass(cls):
        cls.engine.end()
        cls.scratch.cleanup()

    def check(self, name):
        need_program(name, name)
        command, setup = SHELLS[name]
        if os.geteuid() == 0:
            command = [*PRIVATE, self.folder / "vprof", *command]
        terminal = Terminal(command, self.folder, self.environment)
        try:
            terminal.type(f"{setup}\nvprof ready\n")
            terminal.wait("GOT<ready[|]>")
            for typed, wanted in TYPED.items():
                with self.subTest(typed):
                    terminal.type(f"vprof {typed}\n")
                    self.assertEqual(terminal.wait("GOT<(.*?)[|]>").group(1).split("|"), wanted)
        finally:
            terminal.close()

    def test_bash(self):
        self.check("bash")

    def test_zsh(self):
        self.check("zsh")

    def test_fish(self):
        self.check("fish")


class Pager(unittest.TestCase):
    """Long output goes through a pager, on terminals only."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        subprocess.run([BIN / "make_recordings"], cwd=self.folder.name, check=True)

    def shown(self, *command, **environment):
        """What a terminal shows up to the end of the command."""
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}
        terminal = Terminal(["sh", "-c", '"$@"; echo "STATUS $?"', "sh", str(VPROF), *command], self.folder.name, environment)
        try:
            return terminal.wait(r"(?s)(.*)STATUS (\d+)").groups()
        finally:
            terminal.close()

    def test_which(self):
        marked = 'sed "s/^/PAGED $LESS /"'
        for environment, mark in (({"VPROF_PAGER": marked}, "PAGED FRX "), ({"PAGER": marked}, "PAGED FRX "),
                                  ({"PAGER": marked, "LESS": "S"}, "PAGED S "), ({"PAGER": marked, "VPROF_PAGER": ""}, ""),
                                  ({"PAGER": "cat"}, ""), ({"PAGER": marked, "TERM": "dumb"}, "")):
            for command, line in ((["report", "clock.data"], "# samples  100 over"), (["help"], "usage: vprof COMMAND"),
                                  (["report", "--help"], "usage: vprof report")):
                text, status = self.shown(*command, **environment)
                self.assertEqual(status, "0")
                self.assertRegex(text, f"(?m)^{mark}{line}")

    def test_status_and_messages_are_those_of_vprof(self):
        text, status = self.shown("report", "missing.data", PAGER="sed s/^/PAGED/")
        self.assertEqual(status, "1")
        self.assertIn("vprof: cannot read missing.data: No such file", text)
        self.assertNotIn("PAGED", text)

    def test_pager_that_ends_early(self):
        """A user who leaves the pager does not wait for the rest."""
        text, _ = self.shown("script", "clock.data", PAGER="head -n 1")
        self.assertEqual(len(text.strip().splitlines()), 1)


class Options(unittest.TestCase):
    """As getopt_long takes them, on recordings."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        subprocess.run([BIN / "make_recordings"], cwd=cls.scratch.name, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def vprof(self, *arguments, status=0):
        done = subprocess.run([VPROF, *arguments], cwd=self.scratch.name, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr.splitlines()[0]

    def test_spellings(self):
        wanted = self.vprof("report", "--input", "clock.data", "--sort", "ip", "--limit", "2", "--json")
        for words in ("-iclock.data -sip -n2 -j", "-jn2 -s ip clock.data", "clock.data --so=ip --lim=2 --js", "-j -n 2 -sip -- clock.data"):
            self.assertEqual(self.vprof("report", *words.split()), wanted, words)
        wanted = self.vprof("report", "clock.data", "--percent-limit", "20")
        self.assertEqual(self.vprof("report", "clock.data", "--percent-limit=20%"), wanted)

    def test_errors(self):
        for words, message in {
                "report --percent": "--percent-limit needs a value: --percent-limit=P",
                "report -s": "--sort needs a value: --sort=COLUMN,...",
                "report --json=yes": "--json takes no value",
                "report --help=yes": "--help takes no value",
                "report --percent-limit=5%%": '--percent-limit takes a number or a percentage, not "5%%"',
                "top --limit x": '--limit takes a number, not "x"',
                "run --call": "--call is not clear: --call-chains, --call-graph, --call-depth, --call-user",
                "run --kernl x": "unknown option --kernl; did you mean --kernel?",
                "run -z": "unknown option -z",
                "run -d 5": "-d means --interval, which this command does not have; use --duration",
                "run -e cycles,,task-clock": '--event takes a list with commas; "cycles,,task-clock" has an empty name',
                "attach -p x": '--pid takes a number, not "x"',
        }.items():
            with self.subTest(words):
                self.assertEqual(self.vprof(*words.split(), status=2), f"vprof: {message}")
        self.assertEqual(self.vprof("gate", "--nothing", status=3), "vprof: unknown option --nothing")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped:
        print("; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
