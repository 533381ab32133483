#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `cmake --install` installs: all of it below the prefix, and below DESTDIR, and the programs run from there. And the packages
that `cpack` makes of it, as lintian and rpmlint see them."""
import os
import pathlib
import re
import shutil

import harness
import packages

BUILD = pathlib.Path(os.environ["VPROF_BUILD"])
# By an installation, into BUILD.
WRITTEN = "install_manifest.txt", "install_manifest_agent.txt"


class Installing(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("cmake", "cmake")
        others = [file for file in WRITTEN if (BUILD / file).exists() and not os.access(BUILD / file, os.W_OK)]
        harness.need(not others, f"another user has installed from {BUILD}: {', '.join(others)} cannot be written")


class Install(Installing):
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
        """It runs from wherever the root is moved, and the unit starts it below the prefix."""
        unit = (root / "lib/systemd/system/vprof-agent.service").read_text()
        moved = self.folder / "moved"
        self.assertEqual(re.findall(r"^ExecStart=(\S+)", unit, re.M), [f"{prefix}/bin/vprof-agent"])
        root.rename(moved)
        self.assertIn("vprof-agent", self.run_program(moved / "bin/vprof-agent", "--version")[0])
        shutil.rmtree(moved)

    def check_programs(self, root, prefix):
        """vprof finds the engine, which has no guest to start; so does the unit. The agent for --exec is that of vprof, not of the service."""
        unit = (root / "lib/systemd/system/vprof-guest@.service").read_text()
        self.assertEqual(re.findall(r"^ExecStart=(\S+)", unit, re.M), [f"{prefix}/libexec/vprof/vprof-vmm"])
        self.refused(root / "bin/vprof", "run", "--kernel", self.folder / "missing", message="^vprof-vmm: ")
        self.assertIn(f"{root}/libexec/vprof/vprof-agent, for run --exec", self.run_program(root / "bin/vprof", "doctor", status=None)[0])

    def test_agent_below_a_prefix(self):
        prefix = self.folder / "prefix"
        self.check_agent(self.install(prefix, "--component", "agent"), prefix)

    def test_agent_below_destdir(self):
        self.check_agent(self.install("/usr", "--component", "agent", destdir=self.folder / "root"), "/usr")

    def test_all_below_a_prefix(self):
        prefix = self.folder / "prefix"
        self.check_programs(self.install(prefix), prefix)
        self.check_agent(prefix, prefix)

    def test_all_below_destdir(self):
        root = self.install("/usr", destdir=self.folder / "root")
        self.check_programs(root, "/usr")
        self.check_agent(root, "/usr")


class Packages(Installing):
    def setUp(self):
        super().setUp()
        harness.need(not packages.sanitizer(), f"packages are not made of a build with -fsanitize={packages.sanitizer()}")

    def test_deb(self):
        """Both have what their users look for, and lintian finds no error."""
        harness.need_program("dpkg-shlibdeps", "dpkg-dev")
        host, agent = packages.make(self, "DEB")
        contents = {file.name.split("_")[0]: self.run_program("dpkg-deb", "-c", file)[0] for file in (host, agent)}
        for package, names in (("vprof", ("bin/vprof", "libexec/vprof/vprof-vmm", "libexec/vprof/vprof-agent", "man1/vprof-run.1.gz", "completions/vprof", "_vprof",
                                          "vprof.fish", "system/vprof-guest@.socket", "system/vprofd.service", "sysusers.d/vprof.conf", "report.schema.json")),
                               ("vprof-agent", ("bin/vprof-agent", "man8/vprof-agent.8.gz",
                                                "system/vprof-agent.service", "rules.d/60-vprof-agent.rules"))):
            for name in names:
                self.assertRegex(contents[package], rf"(?m) \./usr/\S*{re.escape(name)}( |$)")
        both = [{line.split()[5] for line in listing.splitlines() if not line.endswith("/")} for listing in contents.values()]
        self.assertEqual(both[0] & both[1], set())
        self.assertRegex(self.run_program("dpkg-deb", "-f", host, "Depends")[0], r"\blibglib2\.0-0\b")
        harness.need_program("lintian", "lintian")
        out, _ = self.run_program("lintian", "--allow-root", "--fail-on", "error", host, agent, timeout=120)
        self.assertNotIn("unused-override", out)

    def test_rpm(self):
        for program, package in (("rpmbuild", "rpm"), ("rpmlint", "rpmlint")):
            harness.need_program(program, package)
        host, agent = packages.make(self, "RPM")
        files = self.run_program("rpm", "-qpl", host)[0].splitlines()
        self.assertLessEqual({"/usr/bin/vprof", "/usr/libexec/vprof/vprof-attach", "/usr/share/doc/vprof/LICENSE"}, set(files))
        self.assertFalse({"/usr", "/usr/bin", "/usr/share/man/man1"} & set(files))
        self.assertFalse(set(self.run_program("rpm", "-qpl", agent)[0].splitlines()) & set(files))
        for script in (harness.SOURCE / "host-cli/package/rpm").iterdir():
            package = {"vprof": host, "vprof-agent": agent}[script.stem]
            self.assertIn(script.read_text(), self.run_program("rpm", "-qp", "--scripts", package)[0])
        self.run_program("rpmlint", "-c", harness.SOURCE / "host-cli/package/rpmlint.toml", host, agent, timeout=120)


if __name__ == "__main__":
    harness.main()
