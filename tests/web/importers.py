#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""speedscope, as its authors publish it to npm, takes what we export: by the schema of its files, and in its window."""
import base64
import collections
import json
import re
import subprocess

import harness
import registry
from browser import Browser
from harness import BIN, VPROF

SPEEDSCOPE = "speedscope@1.25.0"
AJV = "ajv@8.17.1"
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
        browser.press("3")
        browser.wait("return document.querySelectorAll('table tr').length > 1")
        rows = {row[2]: seconds(row[1]) for row in browser.run(ROWS) if len(row) == 3 and "(" in row[1]}
        own = collections.Counter()
        for row in self.report(self.folder / "base.data", "--sort", "comm,sym")[1]:
            if row["comm"] == "bench" and row["symbol"]:
                own[row["symbol"]] += row["period"] / 1e9
        self.assertEqual({name for name, value in rows.items() if value > 0}, set(own))
        for name, value in own.items():
            self.assertAlmostEqual(rows[name], value, delta=value / 100, msg=rows)
        self.assertEqual([line for line in browser.console() if "rror" in line], [])


if __name__ == "__main__":
    harness.main()
