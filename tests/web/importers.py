#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""speedscope and the Firefox Profiler, as their authors publish them to npm, take what we export: by the schema of
speedscope's files and in its window; and by the Firefox Profiler's command line, which has its importers."""
import base64
import collections
import json
import os
import re
import subprocess

import harness
import registry
from browser import Browser
from harness import BIN, VPROF

SPEEDSCOPE = "speedscope@1.25.0"
AJV = "ajv@8.17.1"
FIREFOX = "@firefox-devtools/profiler-cli@0.10.0"
VALIDATE = """
const fs = require("fs"), Ajv = require(process.argv[1]);
const read = (name) => JSON.parse(fs.readFileSync(name, "utf8"));
const validate = new Ajv({ strict: false, allErrors: true }).compile(read(process.argv[2]));
if (!validate(read(process.argv[3]))) { console.error(JSON.stringify(validate.errors.slice(0, 5))); process.exit(1); }
"""
# In the view "sandwich", a row of the table is total and self, each "82.00ms (9.8%)", and a name.
ROWS = "return [...document.querySelectorAll('table tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
UNITS = {"ns": 1e-9, "\N{MICRO SIGN}s": 1e-6, "\N{GREEK SMALL LETTER MU}s": 1e-6, "ms": 1e-3, "s": 1}


def seconds(text):
    number, unit = re.match(r"([\d.,]+)(\w+)", text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


class Speedscope(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("node", "nodejs")
        self.release = registry.npm(SPEEDSCOPE) / "speedscope" / "dist" / "release"
        subprocess.run([BIN / "make_pages"], cwd=self.folder, check=True)

    def export(self, recording):
        file = self.folder / f"{recording}.speedscope.json"
        self.run_program(VPROF, "export", "--to", "speedscope", "-i", f"{recording}.data", "-o", file, cwd=self.folder)
        return file

    def validate(self, file, status=0):
        return self.run_program("node", "-e", VALIDATE, registry.npm(AJV) / "ajv", self.release / "file-format-schema.json",
                                file, status=status)[1]

    def test_schema(self):
        for recording in "base", "hostile":
            self.validate(self.export(recording))
        # It is a schema that says no, too.
        document = json.loads(self.export("base").read_text())
        document["profiles"][0]["weights"][0] = "much"
        (self.folder / "wrong.json").write_text(json.dumps(document))
        self.assertIn("must be number", self.validate(self.folder / "wrong.json", status=1))

    def test_importer(self):
        browser = Browser()
        self.addCleanup(browser.close)
        file = self.export("base")
        # As speedscope's own command hands a file over.
        script = self.folder / "load.js"
        content = base64.b64encode(file.read_bytes()).decode()
        script.write_text(f"speedscope.loadFileFromBase64({json.dumps(file.name)}, {json.dumps(content)})")
        browser.open(f"{self.release}/index.html#localProfilePath={script}")
        browser.wait("return document.body.innerText.includes('bench (1/2)')", seconds=120)
        own = collections.Counter()
        for row in self.report(self.folder / "base.data", "--sort", "comm,sym")[1]:
            if row["comm"] == "bench" and row["symbol"]:
                own[row["symbol"]] += row["period"] / 1e9
        browser.press("3")
        browser.wait(f"return document.querySelectorAll('table tr').length > {len(own)}")
        rows = {row[2]: seconds(row[1]) for row in browser.run(ROWS) if len(row) == 3 and "(" in row[1]}
        self.assertEqual({name for name, value in rows.items() if value > 0}, set(own))
        for name, value in own.items():
            self.assertAlmostEqual(rows[name], value, delta=value / 100, msg=rows)
        self.assertEqual([line for line in browser.console() if "rror" in line], [])


class Firefox(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("node", "nodejs")
        self.profiler = registry.npm(FIREFOX) / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"
        self.environment = os.environ | {"PROFILER_CLI_SESSION_DIR": str(self.folder / "sessions"),
                                         "PROFILER_CLI_NO_SYMBOLICATE": "1", "HOME": str(self.folder)}
        subprocess.run([BIN / "make_pages"], cwd=self.folder, check=True)

    def ask(self, *words, status=0):
        """What it says on both streams."""
        return "".join(self.run_program("node", self.profiler, *words, "--session", "test", env=self.environment,
                                        status=status, timeout=120))

    def begin(self, file, answer):
        """Its server, which `profiler-cli load` would start, and give half a second to come up."""
        server = self.start("node", self.profiler, "--daemon", file, "--session", "test", env=self.environment)
        self.addCleanup(self.finish, server, status=None)
        self.addCleanup(server.terminate)
        # Who asks before it is ready takes its session for one that was left behind, and removes that.
        log = self.folder / "sessions" / "test.log"
        harness.wait_until(lambda: log.exists() and "Daemon ready" in log.read_text(), "the server", seconds=120)
        harness.wait_until(lambda: answer in self.ask("status", status=None), "the profile", seconds=120)

    def load(self, recording, to):
        file = self.folder / f"{recording}.{to}"
        self.run_program(VPROF, "export", "--to", to, "-i", f"{recording}.data", "-o", file, cwd=self.folder)
        self.begin(file, "Selected thread")
        return {thread["name"]: thread for thread in json.loads(self.ask("thread", "list", "--json"))["threads"]}

    def check_functions(self, to):
        threads = self.load("base", to)
        self.assertEqual(set(threads), {"bench", "swapper"})
        functions = json.loads(self.ask("thread", "functions", "--thread", threads["bench"]["threadHandle"], "--limit",
                                        "0", "--json"))
        own = collections.Counter()
        for row in self.report(self.folder / "base.data", "--sort", "comm,sym")[1]:
            if row["comm"] == "bench":
                own[row["symbol"]] += row["samples"]
        self.assertEqual({function["name"]: function["selfSamples"] for function in functions["functions"]
                          if function["selfSamples"]}, dict(own))
        # All else they do is called by it.
        main, = (function for function in functions["functions"] if function["name"] == "main")
        self.assertEqual(main["totalSamples"], sum(own.values()))
        return threads["bench"]["cpuMs"]

    def test_export(self):
        cpu_ms = sum(row["period"] for row in self.report(self.folder / "base.data", "--sort", "comm")[1]
                     if row["comm"] == "bench") / 1e6
        # It leaves out the first sample of a track.
        self.assertAlmostEqual(self.check_functions("firefox"), cpu_ms, delta=0.01 * cpu_ms)

    def test_perf_script(self):
        """The other importer: what `perf script` prints of a recording."""
        self.check_functions("perf-script")

    def test_phases(self):
        threads = self.load("repeats", "firefox")
        self.assertEqual({name: thread["markerCount"] > 0 for name, thread in threads.items()}, {"bench": True, "swapper": False})
        markers = json.loads(self.ask("thread", "markers", "--thread", threads["bench"]["threadHandle"], "--json"))["byType"]
        found = [(kind["markerName"], example["start"], example["duration"]) for kind in markers for example in kind["topMarkers"]]
        recording = self.report(self.folder / "repeats.data")[0]["recording"]
        times = {name: [mark["time-ns"] for mark in recording["marks"] if mark["name"] == name] for name, _, _ in found}
        first, last = recording["first-ns"], recording["last-ns"]
        self.assertEqual(len(found), len(recording["marks"]) // 2)
        for name, start, duration in found:
            begin, end = times[name]
            self.assertAlmostEqual(start, (max(begin, first) - first) / 1e6, delta=0.01, msg=name)
            self.assertAlmostEqual(start + duration, (min(end, last) - first) / 1e6, delta=0.01, msg=name)

    def test_hostile_names(self):
        self.assertTrue(self.load("hostile", "firefox"))

    def test_it_refuses_other_files(self):
        """Or the tests above would say nothing."""
        file = self.folder / "wrong.json"
        file.write_text('{"meta": {"version": 1}}')
        self.begin(file, "Profile load failed")


if __name__ == "__main__":
    harness.main()
