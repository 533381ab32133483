#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf, go tool pprof, protoc and parsers of XML, CSV and JSON read what we export, and find in it what our own report
says."""
import collections
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import harness
import perf
import protobuf
import registry
from harness import VPROF

OTLP = "opentelemetry/proto"
PROFILES = f"{OTLP}/profiles/v1development/profiles_pb2.py"


class Recorded(harness.ProgramTest):
    folder_of_all = None  # what is only read is recorded once

    def setUp(self):
        super().setUp()
        harness.need_kvm()
        if not Recorded.folder_of_all:
            Recorded.folder_of_all = pathlib.Path(tempfile.mkdtemp(prefix="vprof-test-"))
            unittest.addModuleCleanup(shutil.rmtree, self.folder_of_all)
        self.recording = self.folder_of_all / "recording"
        if not self.recording.exists():
            self.run_program(VPROF, "run", "--demo", "--append", "seconds=2", "-g", "--no-report", "-o", self.recording)
        _, rows = self.report(self.recording)
        self.period = {row["symbol"]: row["period"] for row in rows}
        self.samples = {row["symbol"]: row["samples"] for row in rows}

    def export(self, name):
        file = self.folder / f"profile.{name}"
        self.run_program(VPROF, "export", "--to", name, "-i", self.recording, "-o", file)
        return file


class Export(Recorded):
    def test_pprof(self):
        harness.need_program("go", "golang-go")
        profile = self.export("pprof")
        text = subprocess.run(["go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=ns", profile],
                              capture_output=True, text=True, check=True, env={"PATH": "/usr/bin", "HOME": self.folder}).stdout
        self.assertIn("Type: cpu", text)
        flat = {name: int(ns) for ns, name in re.findall(r"^ *(\d+)ns +[\d.]+% +[\d.]+% +\d+ns +[\d.]+% +(.+)$", text, re.M)}
        self.assertGreater(len(flat), 4)
        for symbol, ns in flat.items():
            self.assertEqual(ns, self.period.get(symbol, 0), symbol)

    def test_pprof_lines(self):
        """The lines of the demonstration guest's source, which its image has, add up to what the report says of a function."""
        harness.need_program("go", "golang-go")
        harness.need(harness.built_with("libdw"), "vprof was built without libdw")
        text = subprocess.run(["go", "tool", "pprof", "-list=^render_page$", "-unit=ns", self.export("pprof")], cwd=os.environ["VPROF_BUILD"],
                              capture_output=True, text=True, check=True, env={"PATH": "/usr/bin", "HOME": self.folder}).stdout
        files = re.findall(r"^ROUTINE =+ render_page in (\S+)$", text, re.M)
        self.assertTrue(any(name.endswith("vmm/demo/x86/x86.h") for name in files), text)
        self.assertIn("__asm__", text)
        lines = re.findall(r"^ *(\d+)ns +\d+ns +\d+:", text, re.M)
        self.assertEqual(sum(map(int, lines)), self.period["render_page"], text)

    def test_folded(self):
        own = {}
        for line in self.export("folded").read_text().splitlines():
            stack, weight = line.rsplit(" ", 1)
            leaf = stack.split(";")[-1].removesuffix("_[k]")
            own[leaf] = own.get(leaf, 0) + int(weight)
        self.assertEqual(own, {symbol: period for symbol, period in self.period.items() if period})

    def test_svg(self):
        frames = xml.etree.ElementTree.parse(self.export("svg")).iter("{http://www.w3.org/2000/svg}title")
        titles = [frame.text for frame in frames]
        for symbol in "render_page", "tcp_checksum":
            shares = [float(re.search(r": ([\d.]+) %", title)[1]) for title in titles if title.startswith(f"{symbol} (")]
            expected = 100 * self.period[symbol] / sum(self.period.values())
            # With the exits that its code caused, a few samples in a thousand.
            self.assertAlmostEqual(sum(shares), expected, delta=0.5, msg=titles)

    def test_perf_script(self):
        """The lines that perf script prints of the same file, but for the spaces, and as many frames."""
        header = re.compile(r"^(\S.*?) +(-?\d+)/(-?\d+) +\[(\d+)\] +([\d.]+): +(\d+) +(\S+?): *$")

        def kernel_ip(frame):
            ip = int(frame.split()[0], 16)
            return ip if ip >> 63 else 0  # perf prints those of user space as they are in their file

        def samples(text):
            stacks = (stack.splitlines() for stack in text.split("\n\n") if stack.strip())
            return sorted((*header.match(lines[0].strip()).groups(), kernel_ip(lines[1]), len(lines) - 1)
                          for lines in stacks)

        theirs = perf.perf("script", "--ns", "-F", "comm,pid,tid,cpu,time,period,event,ip,sym", "-i", self.recording)
        text = self.export("perf-script").read_text()
        self.assertEqual(samples(text), samples(theirs))
        leaves = re.findall(r"^\S.*:\n\t *[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \(.*\)$", text, re.M)
        self.assertEqual(collections.Counter(leaves), self.samples)

    def test_csv(self):
        with self.export("csv").open(newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
        own = collections.Counter()
        for row in rows:
            own[row["symbol"]] += int(row["period"])
            self.assertEqual(row["stack"].split(";")[-1], row["symbol"])
        self.assertEqual(own, self.period)

    def column_lengths(self, table):
        """Every column of a table has the length that the table says."""
        for name, column in table.items():
            if isinstance(column, list):
                self.assertEqual(len(column), table["length"], name)

    def test_firefox(self):
        """By the rules of the processed format: columns of one length, and indexes of what there is."""
        profile = json.loads(self.export("firefox").read_text())
        categories = len(profile["meta"]["categories"])
        counts = collections.Counter()
        for thread in profile["threads"]:
            tables = {name: thread[name] for name in ("frameTable", "funcTable", "resourceTable", "stackTable", "samples")}
            for table in tables.values():
                self.column_lengths(table)
            frames, functions, resources, stacks, samples = tables.values()
            self.assertTrue(all(index < functions["length"] for index in frames["func"]))
            self.assertTrue(all(index < categories for index in frames["category"] + stacks["category"]))
            self.assertTrue(all(index < resources["length"] for index in functions["resource"]))
            self.assertTrue(all(index < len(thread["stringArray"]) for index in functions["name"] + resources["name"]))
            self.assertTrue(all(index < frames["length"] for index in stacks["frame"]))
            # A prefix stands before what hangs on it.
            self.assertTrue(all(prefix is None or prefix < i for i, prefix in enumerate(stacks["prefix"])))
            self.assertEqual(samples["time"], sorted(samples["time"]))
            for stack in samples["stack"]:
                counts[thread["stringArray"][functions["name"][frames["func"][stacks["frame"][stack]]]]] += 1
        self.assertEqual(counts, self.samples)

    def test_speedscope(self):
        """Its samples are stacks of frames there are, and weigh what the report says."""
        profile = json.loads(self.export("speedscope").read_text())
        names = [frame["name"] for frame in profile["shared"]["frames"]]
        own = collections.Counter()
        for task in profile["profiles"]:
            for stack, weight in zip(task["samples"], task["weights"], strict=True):
                own[names[stack[-1]]] += weight
            self.assertEqual(sum(task["weights"]), task["endValue"])
        self.assertEqual(own, {symbol: period for symbol, period in self.period.items() if period})


class PprofOfPrograms(harness.ProgramTest):
    def test_lines(self):
        """A program's lines, by its debug information below --symfs, in a recording of perf's."""
        harness.need_program("go", "golang-go")
        harness.need_program("cc", "gcc")
        harness.need(harness.built_with("libdw"), "vprof was built without libdw")
        source = harness.SOURCE / "host-cli" / "examples" / "bench.c"
        self.run_program("cc", "-O2", "-g", "-fno-omit-frame-pointer", "-o", "bench", source, cwd=self.folder)
        perf.perf("record", "-q", "-e", "task-clock", "-g", "-o", self.folder / "perf.data", self.folder / "bench")
        self.run_program(VPROF, "export", "-t", "pprof", "-i", "perf.data", "-o", "profile", "--symfs", "/", cwd=self.folder)
        text = subprocess.run(["go", "tool", "pprof", "-list=^checksum$", "profile"], cwd=self.folder, capture_output=True, text=True,
                              check=True, env={"PATH": "/usr/bin", "HOME": self.folder}).stdout
        self.assertIn(f"ROUTINE ======================== checksum in {source}", text)
        self.assertRegex(text, r"(?m)^ +[\d.]+m?s +[\d.]+m?s +\d+:\t\ta = \(a \+ buffer\[i\]\)")


class Otlp(Recorded):
    def otlp(self):
        """ProfilesData by the description in Debian's package of OpenTelemetry's Python modules."""
        package = registry.debian("python3-opentelemetry-proto", "1.45.*", "forky") / "usr/lib/python3/dist-packages"
        protobuf.describe([package / f"{OTLP}/common/v1/common_pb2.py", package / f"{OTLP}/resource/v1/resource_pb2.py",
                           package / PROFILES], self.folder / "otlp.descriptions")
        return protobuf.decode(self.folder / "otlp.descriptions", "opentelemetry.proto.profiles.v1development.ProfilesData",
                               self.export("otlp"))

    def test_otlp(self):
        before = time.time_ns()
        data = self.otlp()
        self.assertEqual(protobuf.unknown_fields(data), set())
        [dictionary], [resource_profiles] = data["dictionary"], data["resource_profiles"]
        strings = dictionary["string_table"]
        # Every table begins with its null.
        nulls = {"string_table": "", "mapping_table": {}, "location_table": {}, "function_table": {},
                 "attribute_table": {}, "stack_table": {}, "link_table": {"trace_id": ["\0" * 16], "span_id": ["\0" * 8]}}
        self.assertEqual({name: table[0] for name, table in dictionary.items()}, nulls)
        self.assertEqual(len(strings), len(set(strings)))

        def function(stack):
            leaf = dictionary["location_table"][stack["location_indices"][0]]
            self.assertGreater(leaf["mapping_index"][0], 0)
            return strings[dictionary["function_table"][leaf["lines"][0]["function_index"][0]]["name_strindex"][0]]

        own = {}
        for profile in resource_profiles["scope_profiles"][0]["profiles"]:
            [kind] = profile["sample_type"]
            counts = own.setdefault((strings[kind["type_strindex"][0]], strings[kind["unit_strindex"][0]]), collections.Counter())
            for sample in profile["samples"]:
                counts[function(dictionary["stack_table"][sample["stack_index"][0]])] += sample["values"][0]
                comm = dictionary["attribute_table"][sample["attribute_indices"][0]]
                self.assertEqual(strings[comm["key_strindex"][0]], "thread.name")
            # Not before this test began, but for what a recording is older than the test.
            [start] = profile["time_unix_nano"]
            self.assertLess(start + profile["duration_nano"][0], before)
            self.assertGreater(start, before - 10**12)
        none = {symbol for symbol, samples in self.samples.items() if samples == 0}
        self.assertEqual(own, {("task-clock", "nanoseconds"): {symbol: n for symbol, n in self.period.items() if symbol not in none},
                               ("samples", "count"): {symbol: n for symbol, n in self.samples.items() if n}})
        attributes = {one["key"][0]: one["value"][0]["string_value"][0] for one in resource_profiles["resource"][0]["attributes"]}
        guest = self.report(self.recording)[0]["recording"]["guest"]
        self.assertEqual(attributes, {"host.name": guest["name"], "host.arch": "amd64", "os.build_id": guest["build-id"]})
        build_ids = [strings[dictionary["attribute_table"][i]["key_strindex"][0]] for mapping in dictionary["mapping_table"]
                     for i in mapping.get("attribute_indices", [])]
        self.assertEqual(build_ids, ["process.executable.build_id.gnu"])


if __name__ == "__main__":
    harness.main()
