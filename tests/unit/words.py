#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Words that make English text hard to read, in all tracked text but this file. Prints each place; fails from
LIMIT of them per 10,000 lines."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("VPROF_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
LIMIT = 3.0

WORDS = re.compile(r"\b(nobody|somebody|whoever|likewise|lest|whom|whose|his|him|there is none of)\b", re.IGNORECASE)


def tracked():
    # safe.directory: the checkout may belong to another user than the one who tests.
    command = ["git", "-c", "safe.directory=*", "-C", SOURCE, "ls-files", "-z"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    own = pathlib.Path(__file__).resolve()
    return [path for path in (SOURCE / name for name in names if name) if path.is_file() and path.resolve() != own]


def lines_of(path):
    """The lines of a text file; none of a binary one."""
    data = path.read_bytes()
    if b"\0" in data:
        return []
    try:
        return data.decode().splitlines()
    except UnicodeDecodeError:
        return []


def main():
    if not (SOURCE / ".git").exists():
        print("skipped: not a git checkout, so the list of files is unknown")
        return 77
    lines = places = 0
    for path in tracked():
        for number, line in enumerate(lines_of(path), 1):
            lines += 1
            for match in WORDS.finditer(line):
                places += 1
                print(f"{path.relative_to(SOURCE)}:{number}: {match[0]}")
    rate = places * 10000 / lines
    print(f"{places} in {lines} lines: {rate:.1f} per 10,000; the limit is {LIMIT:.1f}")
    return 1 if rate >= LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
