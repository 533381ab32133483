#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The job files for CI servers and the script that they run, here with a guest with counted instructions."""
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree

import harness
from harness import BIN, SOURCE, VPROF

EXAMPLES = SOURCE / "host-cli" / "examples"
SCRIPT = EXAMPLES / "regression-gate.sh"
INSTALLED = "/usr/share/doc/vprof/examples/regression-gate.sh"


def commands(job):
    """The shell lines of a job of either kind."""
    return [step["run"] for step in job["steps"] if "run" in step] if "steps" in job else job["script"]


class Examples(harness.ProgramTest):
    def jobs(self, name):
        try:
            import yaml
        except ImportError:
            harness.need(False, "the Python module yaml is missing; install the package python3-yaml")
        document = yaml.safe_load((EXAMPLES / name).read_text())
        return document.get("jobs") or {key: value for key, value in document.items() if isinstance(value, dict) and "script" in value}

    def test_job_files(self):
        """They are YAML, their commands are shell, and what they call has the options that they give it."""
        known = set(re.findall(r"--[a-z-]+", subprocess.run([VPROF, "run", "--help"], capture_output=True, text=True, check=True).stdout))
        for name in "github-actions.yml", "gitlab-ci.yml":
            jobs = self.jobs(name)
            self.assertEqual(set(jobs), {"gate", "baseline"})
            for job in jobs.values():
                lines = commands(job)
                subprocess.run(["sh", "-n"], input="\n".join(lines), text=True, check=True)
                [gate] = [shlex.split(line) for line in lines if "regression-gate" in line]
                self.assertEqual([gate[0], SCRIPT.name], [INSTALLED, os.path.basename(INSTALLED)])
                arguments = [word for word in gate[gate.index("--") + 1:] if word.startswith("--")]
                self.assertEqual(set(arguments) - known, set())
                self.assertIn("--exec", arguments)
        self.assertEqual(self.jobs("gitlab-ci.yml")["gate"]["artifacts"]["reports"]["junit"], "perf-results/gate.xml")

    def test_shell(self):
        for shell in "sh", "bash":
            subprocess.run([shell, "-n", SCRIPT], check=True)
        for arguments in ((), ("-b", "base.json"), ("--", "--kernel", "vmlinux"), ("-x",)):
            self.refused(SCRIPT, *arguments, status=3, message=r"usage: regression-gate\.sh .*-- ARGUMENTS OF vprof run", cwd=self.folder)

    def gate(self, kernel, *options, status, environment=None):
        command = [SCRIPT, *options, "-b", "base.json", "-p", "0x20", "-o", "out", "--", "--kernel", harness.guest(kernel), "--exact"]
        return self.run_program(*command, status=status, cwd=self.folder, timeout=200,
                                env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"} | (environment or {}))

    def verdict(self):
        suite = xml.etree.ElementTree.parse(self.folder / "out" / "gate.xml").getroot().find("testsuite")
        return suite.get("tests"), suite.get("failures"), suite.get("errors")

    def test_gate(self):
        harness.need_kvm()
        self.gate("counted_work", status=3)
        self.gate("counted_work", "-u", status=0)
        self.gate("counted_work", status=0)
        self.assertEqual(self.verdict(), ("1", "0", "0"))
        summary = self.folder / "summary.md"
        # 5 % more turns of one function.
        out, _ = self.gate("counted_work_slower", status=1, environment={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
        self.assertEqual(self.verdict(), ("1", "1", "0"))
        self.assertRegex(out, r"^::error title=vprof gate::guest: \+5")
        self.assertIn("sort\\_blocks", summary.read_text())
        self.gate("counted_work_slower", "-r", "10", status=0)
        pictures = {file.name for file in (self.folder / "out").glob("profile.*")}
        self.assertTrue(pictures in ({"profile.html"}, {"profile.svg"}), pictures)
        self.gate("missing", status=4)


if __name__ == "__main__":
    harness.main()
