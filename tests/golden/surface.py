#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Everything that vprof can do is in its help, its manual and its completions, and nothing else is."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

BIN = pathlib.Path(os.environ["VPROF_BIN"])
MAN = pathlib.Path(os.environ["VPROF_SOURCE"]) / "host-cli" / "man"


def vprof(*arguments, program="vprof"):
    return subprocess.run([BIN / program, *arguments], capture_output=True, text=True, check=True,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}).stdout


def commands():
    return re.findall(r"^  ([a-z]+) {2,}", vprof("help").split("Commands:")[1].split("\n\n")[0], re.M)


def help_options(text):
    return set(re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", text, re.M)) - {"help"}


def manual_options(page):
    return set(re.findall(r"\bFl -([a-z0-9-]+)", (MAN / page).read_text())) - {"help"}


def manual_page(command):
    return re.search(r"^Manual: man (\S+)$", vprof("help", command), re.M).group(1) + ".1"


class Surface(unittest.TestCase):
    def test_commands_are_known(self):
        self.assertEqual(commands(), ["run", "report", "script", "diff", "gate", "export", "stat", "list", "mpstat", "doctor", "completion", "help", "version"])

    def test_manual_of_each_command(self):
        for command in commands():
            with self.subTest(command):
                page = manual_page(command)
                self.assertTrue((MAN / page).exists(), page)
                self.assertIn(f".It Cm {command}\n", (MAN / "vprof.1").read_text())
                options = help_options(vprof(command, "--help"))
                if page == "vprof.1":
                    self.assertEqual(options, set())
                else:
                    self.assertEqual(manual_options(page), options)

    def test_manual_of_the_engine(self):
        options = help_options(vprof("--help", program="vprof-vmm"))
        self.assertEqual(manual_options("vprof-vmm.8"), options)

    def test_manual_of_the_agent(self):
        options = set(re.findall(r"vprof-agent --([a-z]+)", vprof("--help", program="vprof-agent"))) - {"help"}
        self.assertEqual(options, {"device", "vsock"})
        self.assertEqual(manual_options("vprof-agent.8"), options)

    def test_every_page_is_somebodys(self):
        pages = {manual_page(command) for command in commands()} | {"vprof-agent.8", "vprof-vmm.8", "vprof-measurements.5"}
        self.assertEqual({file.name for file in MAN.iterdir()}, pages)

    def test_short_options_of_the_manual(self):
        for command in commands():
            page = manual_page(command)
            short = re.findall(r"^  -(\w), --([a-z0-9-]+)", vprof(command, "--help"), re.M)
            for letter, name in short:
                if name != "help":
                    self.assertIn(f".It Fl {letter} , Fl -{name}", (MAN / page).read_text(), f"{command} {name}")

    def test_completions_have_everything(self):
        for shell in "bash", "zsh":
            text = vprof("completion", shell)
            for command in commands():
                with self.subTest(shell=shell, command=command):
                    section = re.search(rf"^\t{command}\)\n(.*?)^\t\t;;$", text, re.M | re.S).group(1)
                    options = set(re.findall(r"--([a-z0-9-]+)", re.sub(r"\"\[.*?\]", "", section))) - {"help"}
                    self.assertEqual(options, help_options(vprof(command, "--help")))

    def test_version_is_the_engines(self):
        self.assertRegex(vprof("version"), r"\Avprof [0-9.]+\ncontrol protocol [0-9]+, .*\nbuilt with glib .*\n\Z")
        self.assertEqual(vprof("version"), vprof("--version"))
        self.assertIn(vprof("version").split()[1], vprof("--version", program="vprof-vmm"))


class Shells(unittest.TestCase):
    def complete(self, *words):
        script = vprof("completion", "bash") + f'\nCOMP_WORDS=({" ".join(words)})\nCOMP_CWORD={len(words) - 1}\n' \
            '_vprof; echo "${COMPREPLY[@]}"'
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()

    def test_bash(self):
        self.assertEqual(self.complete("vprof", "re"), ["report"])
        self.assertEqual(self.complete("vprof", "report", "--so"), ["--sort"])
        self.assertEqual(self.complete("vprof", "help", "doc"), ["doctor"])
        self.assertEqual(self.complete("vprof", "completion", "z"), ["zsh"])
        self.assertEqual(self.complete("vprof", "run", "--memory", "'--'"), [])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_can_read_it(self):
        subprocess.run(["zsh", "-n"], input=vprof("completion", "zsh"), text=True, check=True)


@unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
class Manual(unittest.TestCase):
    def test_pages_are_clean(self):
        pages = sorted(MAN.iterdir())
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        self.assertEqual(done.stdout + done.stderr, "")


class Output(unittest.TestCase):
    def test_closed_pipe_is_quiet(self):
        done = subprocess.run(f"'{BIN}/vprof' help run | true", shell=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")

    def test_full_device_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "vprof", "help"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output", done.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped:
        print("; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
