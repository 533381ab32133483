#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names that would drive a terminal, forge a line or turn the direction of a text reach no output of vprof as they are.

The names are those of make_task_recordings.c, names_make, as a recording has them, and here as an engine, measurements and
paths have them.
"""
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
import unicodedata

import harness
from harness import BIN, VPROF

NAME_BYTES_MAX = 4096
ASIDE = {"Cc", "Cf", "Zl", "Zp"}  # Unicode's categories of control characters, of those without a shape, and of ends of lines
SHAPES = {"colour": "\x1b[31m", "line": "\nvprof: forged\r", "csi": "\x9b31m", "override": "\u202edrow", "isolate": "\u2066x\u2069",
          "separator": "\u2028", "tag": "\U000e0041", "delete": "\x7f", "markup": "</script><b>&\"'", "formula": "=1+1;%s%n"}
ALL = " ".join(f"@({name} {shape})@" for name, shape in SHAPES.items())
SORT = "event,comm,cgroup,module,sym"
EXPORTS = "folded", "pprof", "speedscope", "firefox", "perf-script", "csv", "otlp", "svg", "kallsyms"
BINARY = "pprof", "otlp"
N_RECORDED = 24


def forbidden(text, but="\n"):
    return sorted({f"U+{ord(c):04X}" for c in text if unicodedata.category(c) in ASIDE and c not in but})


def texts(document):
    """All names and texts of JSON."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield name
            yield from texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)
    elif isinstance(document, str):
        yield document


class Engine:
    """One whose answers are made of the names."""

    VCPU = {"ns": {"wall": 1000000, "guest": 900000}, "untraced": ALL, "looks": {"kernel": 1, "user": 1},
            "exits": [{"name": ALL, "count": 3, "ns": 5}], "counters": {"exits": 3}, "kvm-exits": []}
    ANSWERS = {
        "negotiate": {"protocol": 1}, "query-status": {"state": ALL, "session": ALL, "pid": 1, "uptime-ns": 5},
        "query-guest": {"name": ALL, "kernel": ALL, "vcpus": 1, "memory-bytes": 5}, "query-vcpu-time": VCPU,
        "query-counters": {"counters": [{"counter": 1, "state": ALL, "disposition": ALL, "mode": ALL, "event": ALL,
                                         "targets": [{"comm": ALL}]}]},
        "query-host": {"pmu": {"name": ALL, "version": 2}, "counters": 3, "events": [{"name": ALL, "backend": ALL, "why": ALL}]},
        "probe-list": {"providers": [{"name": ALL, "syntax": ALL, "summary": ALL}], "probes": [ALL], "next": 0},
        "probe-args": {"name": ALL, "arguments": [ALL]},
        "query-schema": {"methods": [{"name": name, "role": ALL, "summary": ALL, "arguments": [{"name": ALL, "summary": ALL}], "errors": []}
                                     for name in ("query-status", "refused")], "events": [], "errors": []},
    }

    def __init__(self, path, protocol):
        self.protocol = protocol
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, client.makefile("rw") as stream:
                try:
                    self.talk(stream)
                except ConnectionError:
                    pass

    def talk(self, stream):
        greeting = {"version": ALL, "protocol": self.protocol, "capabilities": [], "guest": self.ANSWERS["query-guest"]}
        print(json.dumps({"vprof": greeting}), file=stream, flush=True)
        for line in stream:
            request = json.loads(line)
            known = self.ANSWERS.get(request["execute"])
            answer = {"return": known} if known else {"error": {"class": "State", "desc": ALL}}
            print(json.dumps(answer | {"id": request["id"]}), file=stream, flush=True)


class Names(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)

    def output(self, *arguments, status=0, typed=None):
        """What it has printed, as bytes: each text in it is checked."""
        done = subprocess.run([VPROF, *arguments], cwd=self.folder, input=typed, capture_output=True, timeout=60 * harness.SLOWNESS, check=False,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm"})
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(forbidden(done.stderr.decode()), [], arguments)
        return done

    def check_text(self, data, but="\n"):
        """UTF-8 of which all is shown; returns the names in it."""
        text = data.decode()
        self.assertEqual(forbidden(text, but), [])
        return re.findall(r"@\(.*?\)@", text)

    def check_binary(self, data):
        for name in re.findall(rb"@\(.*?\)@", data, re.S):
            self.assertEqual(forbidden(name.decode()), [])
        return set(re.findall(rb"@\(.[\w ]+", data))

    def check_json(self, data, but=""):
        self.check_text(data)
        documents = [json.loads(line) for line in data.splitlines()] if data[:2] != b"{\n" and data.count(b"\n{") else [json.loads(data)]
        self.assertEqual([bad for text in texts(documents) if (bad := forbidden(text, but))], [])

    def all_recorded(self, data):
        names = set(self.check_text(data))
        self.assertGreaterEqual(len(names), N_RECORDED)
        self.assertIn("@(ünï → 日本)@", names)
        self.assertLessEqual(max(map(len, re.findall(rb"x+", data))), NAME_BYTES_MAX)

    def test_report(self):
        self.all_recorded(self.output("report", "-i", "names.data", "-g", "--sort", SORT).stdout)
        json_text = self.output("report", "-i", "names.data", "-g", "--sort", SORT, "--json").stdout
        self.all_recorded(json_text)
        self.check_json(json_text)
        self.output("report", "-i", "names.data", "--svg", "out.svg")
        self.all_recorded((self.folder / "out.svg").read_bytes().replace(b"&lt;", b"<"))

    def test_page(self):
        pages = ("report", "-i", "names.data"), ("diff", "names.data", "names.data")
        for command in pages if harness.built_with("d3-flame-graph") else ():
            self.output(*command, "--html", "out.html")
            page = (self.folder / "out.html").read_text()
            data = page[page.index("@("):page.rindex(")@") + 2]
            self.assertEqual(forbidden(data), [])
            self.assertGreaterEqual(len(set(re.findall(r"@\(.*?\)@", data))), N_RECORDED)
            self.assertNotIn("<b>", data)

    def test_script(self):
        fields = "time,event,sym,module,comm,cgroup"
        self.all_recorded(self.output("script", "-i", "names.data", "-g", "--fields", fields).stdout.replace(b"\t", b""))
        lines = self.output("script", "-i", "names.data", "-g", "--fields", fields, "--json").stdout
        self.all_recorded(lines)
        self.check_json(lines)
        self.all_recorded(self.output("script", "-i", "names.data").stdout)

    def test_exports(self):
        for kind in EXPORTS:
            with self.subTest(kind):
                self.output("export", "-t", kind, "-i", "names.data", "-o", "out")
                data = (self.folder / "out").read_bytes()
                if kind in BINARY:
                    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
                    self.assertGreaterEqual(len(self.check_binary(data)), N_RECORDED - 3)
                elif kind in ("speedscope", "firefox"):
                    self.check_json(data)
                    self.all_recorded(data)
                else:
                    self.assertGreaterEqual(len(set(self.check_text(data, "\n\t"))), N_RECORDED - 3)

    def test_comparisons(self):
        """Of two recordings, and of measurements with such names, in each form that a verdict has."""
        self.check_text(self.output("diff", "names.data", "names.data").stdout)
        self.check_json(self.output("diff", "--json", "names.data", "names.data").stdout)
        one = {"unit": ALL, "values": [10.0, 11.0, 10.5, 10.2, 9.9, 10.1]}
        document = {"format": "vprof-measurements", "version": 1, "unit": "ns", "repetitions": 6,
                    "conditions": {"event": ALL, "vcpus": 1},
                    "metrics": [one | {"name": "guest", "unit": "ns"}, one | {"name": ALL}],
                    "functions": [one | {"name": f"@({name} {shape})@", "module": ALL, "mode": "kernel"} for name, shape in SHAPES.items()]}
        worse = json.loads(json.dumps(document).replace("[10.0, 11.0", "[20.0, 21.0"))
        for series in worse["metrics"] + worse["functions"]:
            series["values"] = [2 * value for value in series["values"]]
        runs = self.folder / "runs"
        runs.mkdir()
        for i in range(6):
            (runs / f"@(\x1b[31m\x9b \u202e{i})@.json").write_text(json.dumps(worse if i > 2 else document))
        (self.folder / "old.json").write_text(json.dumps(document))
        (self.folder / "new.json").write_text(json.dumps(worse))
        gate = "gate", "-b", "old.json", "new.json", "--max-regression", "3%"
        for options, check in (([], self.check_text), (["--json"], self.check_json), (["--github"], self.check_text)):
            out = self.output(*gate, *options, status=1).stdout
            check(out)
            self.assertIn(b"guest" if "--github" in options else b"@(formula", out)
        self.output(*gate, "--junit", "junit.xml", "--markdown", "gate.md", status=1)
        for file in "junit.xml", "gate.md":
            self.check_text((self.folder / file).read_bytes())
        for options in [], ["--json"]:
            self.check_text(self.output("history", *options, "runs").stdout)

    def test_messages(self):
        """Of files with such names, and what is shown while they are read."""
        file = self.folder / f"{ALL.replace('/', '')[:200]}.data"
        for command in ("report", "-i"), ("export", "-t", "csv", "-i"), ("diff", "clock.data"), ("annotate", "main"), ("history",), ("script", "-i"):
            self.assertIn(b"@(", self.output(*command, file.name, status=1).stderr)
        self.output("annotate", ALL, "names.data", status=1)
        file.write_bytes((self.folder / "names.data").read_bytes())
        shown, _ = self.on_terminal(VPROF, "report", "-i", file.name)
        self.assertEqual(forbidden(re.sub(r"\r|\x1b\[K", "", shown)), [])
        self.assertIn("reading @(", shown)

    def test_engine(self):
        path = self.folder / "engine.sock"
        engine = Engine(path, 1)
        self.addCleanup(engine.listener.close)
        for command in (["counter", "list", path], ["counter", "host", path], ["probe", "-E", path, "list"], ["probe", "-E", path, "list", "*"],
                        ["probe", "-E", path, "args", "x"], ["mpstat", path], ["ctl", path, "query-status"]):
            with self.subTest(command[0]):
                out = self.output(*command).stdout
                self.assertIn(b"@(formula", out)
                self.check_text(out)
        for command in ["counter", "-j", "list", path], ["probe", "-j", "-E", path, "list"], ["mpstat", "-j", path]:
            self.check_json(self.output(*command).stdout)
        for typed in b"help\n", b"help query-status\n", b"refused\n":
            self.check_text(self.output("ctl", path, typed=typed, status=None).stdout)
        for command in ["top", "--once", path], ["trace", "-e", "exit", path], ["counter", "count", path]:
            self.assertIn(b"@(formula", self.output(*command, status=1).stderr)

    def test_an_engine_of_another_version(self):
        path = self.folder / "engine.sock"
        engine = Engine(path, 0)
        self.addCleanup(engine.listener.close)
        self.assertIn(b"@(formula", self.output("ctl", path, "query-status", status=1).stderr)


if __name__ == "__main__":
    harness.main()
