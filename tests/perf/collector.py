#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof push --api otlp, and the OpenTelemetry Collector's receiver and exporter, which take profiles and print them."""
import collections
import re
import socket
import subprocess
import urllib.error
import urllib.request

import harness
from harness import BIN, VPROF


class Taken:
    """A request as the collector's debug exporter prints it: attributes of the resource, all texts, and how many samples each cgroup
    has in the second profile, which counts them."""

    def __init__(self, text):
        self.texts = set(re.findall(r"^    (\S.*)$", text.partition("String table:")[2].partition("ResourceProfiles")[0], re.M))
        resource, counts = text.partition("Resource attributes:")[2].split("Profile #1")
        self.resource = dict(re.findall(r"^     -> (\S+): Str\((.*)\)$", resource.partition("ScopeProfiles")[0], re.M))
        self.samples = collections.Counter()
        for sample in re.split(r"^    Sample #\d+$", counts, flags=re.M)[1:]:
            cgroup = re.search(r"-> process\.linux\.cgroup: (?:Str\()?(.*?)\)?$", sample, re.M)
            self.samples[cgroup and cgroup[1]] += int(re.search(r"Values: \[(\d+)\]", sample)[1])


def taken(printed):
    """Each request of those that a collector has printed."""
    return [Taken("String table:" + text) for text in printed.split("String table:")[1:]]


class Collector(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("libcurl"), "vprof was built without libcurl")
        program = harness.script("collector.sh")
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{address}"
        self.collector = self.start(program, address)
        self.addCleanup(self.end)
        harness.wait_until(self.listens, "the collector", 60)

    def listens(self):
        try:
            urllib.request.urlopen(self.url, timeout=10)
        except urllib.error.HTTPError:
            return True
        except OSError:
            self.assertIsNone(self.collector.poll(), "the collector has ended")
        return False

    def end(self):
        """What it printed."""
        if self.collector.poll() is None:
            self.collector.terminate()
            self.printed = "".join(self.finish(self.collector, status=None))
        return self.printed

    def push(self, recording, *options):
        err = self.run_program(VPROF, "push", "--api=otlp", self.url, "-i", recording, "--spool", self.folder / "spool", *options,
                               cwd=self.folder)[1]
        self.assertRegex(err, r"\Avprof: sent 1 profile \(.*\)\n\Z")

    def test_it_takes_profiles(self):
        """All samples of two recordings, with the guest, the labels, the functions, and the tasks' cgroups."""
        self.push("clock.data", "--label", "rack=b7")
        self.push("cgroups.data")
        clock, cgroups = taken(self.end())
        self.assertEqual([clock.resource[name] for name in ("host.name", "hypervisor.host.name", "rack", "service.name")],
                         ["golden", socket.gethostname(), "b7", "vprof"])
        self.assertEqual(sum(clock.samples.values()), 100)
        self.assertEqual(cgroups.samples, {"/": 2, "/system.slice": 2, "/user.slice": 2, "/system.slice/web.service": 2,
                                           '/=?[31m?,"x"': 2, "[unknown]": 2, None: 2})
        _, rows = self.report(self.folder / "clock.data")
        self.assertGreater(len(rows), 1)
        self.assertLessEqual({row["symbol"] for row in rows}, clock.texts)


if __name__ == "__main__":
    harness.main()
