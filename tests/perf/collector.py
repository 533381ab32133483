#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof push --api otlp, and an OpenTelemetry Collector that takes profiles and prints them."""
import re
import socket
import subprocess
import urllib.error
import urllib.request

import harness
from harness import BIN, VPROF

CONFIG = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{debug: {{verbosity: detailed}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [debug]}}}}
"""


class Collector(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("libcurl"), "vprof was built without libcurl")
        program = harness.script("collector.sh")
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        config = self.folder / "collector.yaml"
        config.write_text(CONFIG.format(port=port))
        self.collector = self.start(program, "--config", f"file:{config}", "--feature-gates=service.profilesSupport")
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
        """All samples of two recordings, with their stacks' names, the guest, the labels and the tasks' cgroups."""
        self.push("clock.data", "--label", "rack=b7")
        self.push("cgroups.data")
        printed = self.end()
        self.assertEqual(re.findall(r"-> (host\.name|rack|hypervisor\.host\.name): Str\((.*)\)", printed)[:3],
                         [("host.name", "golden"), ("hypervisor.host.name", socket.gethostname()), ("rack", "b7")])
        samples = {}
        for recording in "clock.data", "cgroups.data":
            out = self.run_program(VPROF, "export", "-t", "folded", "-i", recording, cwd=self.folder)[0]
            samples[recording] = out
        print(printed[-6000:], flush=True)
        for name in "/system.slice/web.service", "/user.slice":
            self.assertIn(name, printed)
        for symbol in {frame for out in samples.values() for line in out.splitlines() for frame in line.rsplit(" ", 1)[0].split(";")}:
            self.assertIn(symbol, printed)


if __name__ == "__main__":
    harness.main()
