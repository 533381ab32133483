#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""No function has a frame that is too large for the stack of a vCPU's thread, without an optimizer that leaves variables out.

Options: every source of a program is compiled with -Wframe-larger-than. Unoptimized: all of them are compiled once more, without
optimization, which takes minutes."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["VPROF_BUILD"])
LIMIT = 16384
PROGRAMS = ("vmm/", "host-cli/", "guest-agent/")
OPTION = re.compile(r"^-Wframe-larger-than=(\d+)$")
LARGE = f"""extern void use(char *bytes);
void large(void);
void large(void)
{{
	char bytes[{LIMIT + 1}];

	use(bytes);
}}
"""


def commands():
    """(source, its folder, the command without its output) for each C source of a program."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"]).resolve()
        words = shlex.split(entry["command"])
        if not path.is_relative_to(SOURCE) or path.suffix != ".c" or "-o" not in words:
            continue
        source = str(path.relative_to(SOURCE))
        if source.startswith(PROGRAMS):
            at = words.index("-o")
            yield source, entry["directory"], words[:at] + words[at + 2:]


def compiled(command, folder, *more):
    words = [word for word in command if word not in ("-c", "-Werror")]
    return subprocess.run([*words, *more, "-S", "-o", os.devnull], cwd=folder, capture_output=True, text=True, check=False)


class Options(unittest.TestCase):
    def test_every_source_is_compiled_with_the_limit(self):
        seen = 0
        for source, _, command in commands():
            limits = [int(found[1]) for found in map(OPTION.match, command) if found]
            self.assertEqual(limits, [LIMIT], source)
            seen += 1
        self.assertGreater(seen, 300)

    def test_the_compiler_tells(self):
        _, folder, command = next(row for row in commands() if row[0].startswith("vmm/kvm/"))
        with tempfile.TemporaryDirectory() as scratch:
            large = pathlib.Path(scratch, "large.c")
            large.write_text(LARGE)
            done = compiled([*command[:-1], str(large)], folder)
        self.assertIn("-Wframe-larger-than", done.stderr)


class Unoptimized(unittest.TestCase):
    def test_no_frame_is_larger_without_an_optimizer(self):
        rows = {source: (command, folder) for source, folder, command in commands()}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda row: compiled(*row, "-O0"), rows.values()))
        self.assertEqual([done.stderr for done in results if done.returncode != 0], [])
        self.assertEqual([line for done in results for line in done.stderr.splitlines() if "frame-larger-than" in line], [])


if __name__ == "__main__":
    sys.exit(unittest.main())
