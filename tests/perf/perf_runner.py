# SPDX-License-Identifier: BSD-2-Clause
"""Runs perf and recording_tool for the tests beside it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOL = pathlib.Path(os.environ["VPROF_BIN"]) / "recording_tool"
SKIP = 77


class Scratch(tempfile.TemporaryDirectory):
    """A folder that is also $HOME, so that perf neither finds nor leaves anything in the user's ~/.debug."""

    def __init__(self):
        super().__init__(prefix="vprof-perf.")
        self.path = pathlib.Path(self.name)
        self.environment = {**os.environ, "HOME": self.name, "PERF_CONFIG": "/dev/null", "LC_ALL": "C"}

    def __enter__(self):
        return self

    def run(self, *command):
        return subprocess.run([str(word) for word in command], cwd=self.path, env=self.environment, text=True,
                              errors="replace", capture_output=True, check=False)

    def perf(self, *arguments):
        return self.run("perf", *arguments)

    def tool(self, *arguments):
        result = self.run(TOOL, *arguments)
        if result.returncode != 0:
            sys.exit(f"recording_tool {arguments}: {result.stderr}")
        return result


def need_perf():
    if not shutil.which("perf"):
        print("skipped: perf is missing; install the package linux-perf")
        sys.exit(SKIP)


def script_samples(text):
    """(time, event, address) of each line that `perf script --ns -F time,event,ip` prints, in any order."""
    samples = []
    for line in filter(None, map(str.strip, text.splitlines())):
        time, event, address = line.replace(": ", " ").split()[:3]
        samples.append((time, event.rstrip(":"), int(address, 16)))
    return sorted(samples)


def our_samples(text):
    lines = (line.split() for line in text.splitlines())
    return sorted((time, event, int(address, 16)) for time, event, address in lines)
