#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `cmake --install` installs: all of it below the prefix, and below DESTDIR, and the programs run from there."""
import os
import pathlib
import re
import shutil

import harness

BUILD = pathlib.Path(os.environ["VPROF_BUILD"])
WRITTEN = "install_manifest.txt", "install_manifest_agent.txt", "guest-agent/vprof-agent.service"  # by an installation, into BUILD


class Install(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("cmake", "cmake")
        others = [file for file in WRITTEN if (BUILD / file).exists() and not os.access(BUILD / file, os.W_OK)]
        harness.need(not others, f"another user has installed from {BUILD}: {', '.join(others)} cannot be written")

    def install(self, prefix, *options, destdir=""):
        """Where the files of `prefix` are, after every file that was installed is seen to be there."""
        root = pathlib.Path(f"{destdir}{prefix}")
        out, _ = self.run_program("cmake", "--install", BUILD, "--prefix", prefix, *options, env=os.environ | {"DESTDIR": str(destdir)})
        files = re.findall(r"^-- (?:Installing|Up-to-date): (.*)", out, re.M)
        self.assertNotEqual(files, [])
        self.assertEqual([file for file in files if not file.startswith(f"{root}/")], [])
        self.assertEqual([file for file in files if not os.path.lexists(file)], [])
        return root

    def check_agent(self, root, prefix):
        """The link leads to the agent, also where the root is moved, and the unit starts the agent below the prefix."""
        unit = (root / "lib/systemd/system/vprof-agent.service").read_text()
        moved = self.folder / "moved"
        self.assertEqual(re.findall(r"^ExecStart=(\S+)", unit, re.M), [f"{prefix}/libexec/vprof/vprof-agent"])
        self.assertEqual((root / "bin/vprof-agent").resolve(), (root / "libexec/vprof/vprof-agent").resolve())
        root.rename(moved)
        for program in "bin/vprof-agent", "libexec/vprof/vprof-agent":
            self.assertIn("vprof-agent", self.run_program(moved / program, "--version")[0])
        shutil.rmtree(moved)

    def check_programs(self, root):
        """vprof finds the engine, which has no guest to start."""
        self.refused(root / "bin/vprof", "run", "--kernel", self.folder / "missing", message="^vprof-vmm: ")

    def test_agent_below_a_prefix(self):
        prefix = self.folder / "prefix"
        self.check_agent(self.install(prefix, "--component", "agent"), prefix)

    def test_agent_below_destdir(self):
        self.check_agent(self.install("/usr", "--component", "agent", destdir=self.folder / "root"), "/usr")

    def test_all_below_a_prefix(self):
        prefix = self.folder / "prefix"
        self.check_programs(self.install(prefix))
        self.check_agent(prefix, prefix)

    def test_all_below_destdir(self):
        root = self.install("/usr", destdir=self.folder / "root")
        self.check_programs(root)
        self.check_agent(root, "/usr")


if __name__ == "__main__":
    harness.main()
