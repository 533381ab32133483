#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What commands print with --json is what the published JSON Schemas say, and nothing else."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import golden
import json_schemas
import surface
import tasks
from harness import VPROF

# Checked where a guest runs: kvm/counters, kvm/daemon, kvm/guests, kvm/linger, kvm/probes, kvm/strangers, kvm/top, kvm/vcpu_time.
LIVE = "attach-list", "counter", "daemon-status", "doctor", "list", "mpstat", "probe", "stat", "top", "top-guests", "trace"
CALLS = ["-g", "--sort", "event,cpu,comm,pid,tid,cgroup,module,ip,sym"]
DOCUMENTS = {
    "report": [["report", "--json", name, *options] for options in ([], CALLS, ["--mode", "user", "--sort", "domain"])
               for name in ("clock.data", "events.data", "calls.data", "cgroups.data", "hostile.data", "host.data", "repeats.data", "time.data",
                            "half.data", "phases.data")] + [["report", "--json", "clock.data", "host.data"], ["report", "--json", "waits.data", "--sort", "state,comm,sym"]],
    "annotate": [["annotate", "--json", "memcpy", "clock.data", "--kernel", "kernel.elf", "--force"]],
    "diff": [["diff", "--json", *files] for files in (["base.json", "slow.json"], ["base.json", "few.json", "slow.json"], ["before.json", "after.json"],
                                                      ["counted.json", "counted_more.json"], ["repeats.data", "repeats.data"], ["base.json", "unit.json"])],
    "gate": [["gate", "--json", "-b", *files] for files in (["base.json", "same.json"], ["base.json", "slow.json"], ["base.json", "few.json"],
                                                            ["counted.json", "counted_more.json"], ["before.json", "after.json"])],
    "contention": [["report", "--contention", "--json", "locks.data", *options] for options in ([], ["--limit", "1"])],
    "ps": [["ps", "--json", "./engine.sock"]],
    "stack": [["stack", "--json", "./engine.sock"]],
    "history": [["history", "--json", "runs"], ["history", "--json", "wickets"], ["history", "--json", "--force", "two-machines"]],
}
LINES = {"script": [["script", "--json", name, *options] for options in ([], ["-g"], ["--switch-events"])
                    for name in ("clock.data", "calls.data", "cgroups.data", "switches.data", "hostile.data", "waits.data")]}


@unittest.skipUnless(json_schemas.jsonschema, "no Python module jsonschema; install python3-jsonschema")
class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        golden.prepare(pathlib.Path(cls.scratch.name))
        cls.engine = tasks.start(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.engine.end()
        cls.scratch.cleanup()

    def output(self, arguments):
        done = subprocess.run([VPROF, *arguments], cwd=self.scratch.name, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.stdout, "", done.stderr)
        return done.stdout

    def test_documents(self):
        for name, commands in DOCUMENTS.items():
            for arguments in commands:
                with self.subTest(" ".join(arguments)):
                    json_schemas.check(self, name, json.loads(self.output(arguments)))

    def test_lines(self):
        for name, commands in LINES.items():
            for arguments in commands:
                with self.subTest(" ".join(arguments)):
                    for line in self.output(arguments).splitlines():
                        json_schemas.check(self, name, json.loads(line))

    def test_measurements(self):
        for name in "repeats.data", "events.data":
            subprocess.run([VPROF, "gate", "-u", "-b", f"{name}.json", name], cwd=self.scratch.name, capture_output=True, check=False)
            json_schemas.check(self, "measurements", json.loads(pathlib.Path(self.scratch.name, f"{name}.json").read_text()))

    def test_other_documents_are_refused(self):
        """Each needs its members, of their types, and knows no others."""
        for name, commands in DOCUMENTS.items():
            document = json.loads(self.output(commands[0]))
            validator = json_schemas.validator(name)
            for member in document:
                self.assertFalse(validator.is_valid({key: value for key, value in document.items() if key != member}), f"{name} without {member}")
                self.assertFalse(validator.is_valid({**document, member: object()}), f"{name} with another {member}")
            self.assertFalse(validator.is_valid({**document, "more": 1}), name)

    def test_every_command_has_one(self):
        titles = [json.loads(file.read_text())["title"] for file in json_schemas.FOLDER.iterdir()]
        for command in surface.commands():
            if "json" in surface.help_options(surface.vprof("help", command)):
                self.assertTrue([title for title in titles if re.search(rf"vprof {command} .*--json", title)], command)

    def test_every_schema_is_checked(self):
        self.assertEqual({file.name.removesuffix(".schema.json") for file in json_schemas.FOLDER.iterdir()},
                         {*DOCUMENTS, *LINES, *LIVE, "measurements"})


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped:
        print("; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
