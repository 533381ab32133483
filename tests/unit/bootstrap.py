#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bootstrap.sh on distributions that this is not, with programs that only write down how they were called."""
import os
import pty
import shutil
import subprocess

import harness

ROOT = os.geteuid() == 0
STRANGER = "daemon"
# Words -> what to print and how to end: which packages are missing.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>{log}
case "$(basename "$0") $*" in
{answers}
esac
"""
PROGRAMS = "apt-get", "cmake", "ctest", "dnf", "dpkg-query", "pacman", "rpm", "runuser"


class Bootstrap(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.tree, self.log = self.folder / "tree", self.folder / "log"
        self.tree.mkdir()
        shutil.copy(harness.SOURCE / "bootstrap.sh", self.tree)

    def bootstrap(self, system, answers, *words, terminal=None, **environment):
        """(status, what it printed, what it called)"""
        programs = self.folder / "programs"
        programs.mkdir(exist_ok=True)
        for name in PROGRAMS:
            (programs / name).write_text(STUB.format(log=self.log, answers=answers))
            (programs / name).chmod(0o755)
        (self.folder / "os-release").write_text(system)
        self.log.write_text("")
        env = {"PATH": f"{programs}:/usr/bin:/bin", "OS_RELEASE": str(self.folder / "os-release"), "LC_ALL": "C", **environment}
        leader, follower = pty.openpty() if terminal is not None else (None, None)
        process = subprocess.Popen([self.tree / "bootstrap.sh", *words], env=env, text=True, stdin=subprocess.DEVNULL if leader is None else follower,
                                   stdout=subprocess.PIPE if leader is None else follower, stderr=subprocess.STDOUT)
        if leader is None:
            out = process.communicate(timeout=60)[0]
        else:
            os.close(follower)
            os.write(leader, terminal.encode())
            out = self.drain(leader)
            process.wait(60)
        return process.returncode, out, self.log.read_text().splitlines()

    def drain(self, terminal):
        text = b""
        try:
            while read := os.read(terminal, 4096):
                text += read
        except OSError:  # its other end is closed
            pass
        os.close(terminal)
        return text.decode()

    def check_calls(self, system, answers, install):
        status, out, calls = self.bootstrap(system, answers, "unit")
        if not ROOT:
            self.assertEqual(status, 1, out)
            self.assertIn(f"installing them needs root: sudo {install}", out)
            return
        self.assertEqual(status, 0, out)
        self.assertIn("cmake --preset release -DBUILD_TESTING=ON", calls)
        self.assertLess(next(i for i, call in enumerate(calls) if call.startswith(install.split()[0] + " ") and "fish" in call
                             and "-T" not in call), calls.index("cmake --preset release -DBUILD_TESTING=ON"))

    def test_fedora(self):
        self.check_calls('ID=fedora\nVERSION_ID=44\n', "rpm\\ *check-devel|rpm\\ *fish) exit 1;;", "dnf install check-devel fish")

    def test_like_fedora(self):
        self.check_calls('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "rpm\\ *check-devel|rpm\\ *fish) exit 1;;",
                         "dnf install check-devel fish")

    def test_arch(self):
        self.check_calls("ID=arch\n", "pacman\\ -T*) echo debuginfod; echo fish; exit 127;;", "pacman -S --needed debuginfod fish")

    def test_debian_and_derived(self):
        for system in "ID=debian\n", "ID=ubuntu\nID_LIKE=debian\n":
            self.check_calls(system, "dpkg-query\\ *\\ fish) echo un;; dpkg-query\\ *) echo ii;;",
                             "apt-get install --no-install-recommends fish")

    def test_nothing_is_missing(self):
        status, out, calls = self.bootstrap("ID=fedora\n", "", "unit")
        self.assertEqual(status, 0, out)
        self.assertEqual([call for call in calls if call.startswith("dnf")], [])

    def test_unknown(self):
        status, out, calls = self.bootstrap("ID=plan9\n", "", "unit")
        self.assertEqual(status, 0, out)
        self.assertIn("an unknown distribution; install the contents of these Debian 12 packages", out)
        self.assertEqual(calls[0], "cmake --preset release -DBUILD_TESTING=ON")
        status, out, calls = self.bootstrap("ID=arch\n", "", "package")
        self.assertEqual((status, calls), (1, []))
        self.assertIn("not known by their names on arch", out)

    def test_it_asks_on_a_terminal(self):
        harness.need(ROOT, "only root is asked")
        for answer, installs in ("n\n", False), ("\n", True), ("y\n", True):
            status, out, calls = self.bootstrap("ID=fedora\n", "rpm\\ *fish) exit 1;;", "unit", terminal=answer)
            self.assertIn("Install them? [Y/n]", out)
            self.assertEqual([status == 0, "dnf install -y fish" in calls, any(call.startswith("cmake") for call in calls)], [installs] * 3, out)
        self.assertIn("nothing is installed; by hand: dnf install fish", self.bootstrap(
            "ID=fedora\n", "rpm\\ *fish) exit 1;;", "unit", terminal="n\n")[1])

    def test_it_builds_as_the_user_under_sudo(self):
        """Where the tree is the user's."""
        harness.need(ROOT, "only root becomes another user")
        _, _, calls = self.bootstrap("ID=fedora\n", "", "unit", SUDO_USER=STRANGER)
        self.assertIn("cmake --preset release -DBUILD_TESTING=ON", calls)
        shutil.chown(self.tree, STRANGER)
        _, _, calls = self.bootstrap("ID=fedora\n", "", "unit", SUDO_USER=STRANGER)
        commands = [call.partition(" -- env HOME=")[2].partition(" ")[2] for call in calls if call.startswith(f"runuser -u {STRANGER} ")]
        self.assertEqual(commands[0], "cmake --preset release -DBUILD_TESTING=ON")
        self.assertTrue(commands[-1].startswith("ctest --preset release"))
        self.assertEqual([call for call in calls if call.startswith("cmake")], [])


if __name__ == "__main__":
    harness.main()
