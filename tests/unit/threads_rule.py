#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each unit test that starts threads runs under ThreadSanitizer, or its row in CMakeLists.txt has the reason why not."""
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("VPROF_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
UNIT, SUPPORT = SOURCE / "tests/unit", SOURCE / "tests/support"
# The fake guest runs each vCPU on a thread.
STARTS = re.compile(r'\b(?:pthread_create|g_thread_(?:try_)?new)\b|#include "fake_guest\.h"')
INCLUDE = re.compile(r'#include "([^"/]+\.h)"')
ROW = re.compile(r"vprof_unit_test\((\w+)([^)\"]*(?:\"[^\"]+\")?)\)")


def starts_threads(path, seen):
    """Whether the file, or a header of tests/support that it includes, starts a thread."""
    text = path.read_text()
    if STARTS.search(text):
        return True
    headers = {SUPPORT / name for name in INCLUDE.findall(text)} - seen
    seen |= headers
    return any(starts_threads(header, seen) for header in sorted(headers) if header.exists())


def breaches(rows):
    for path in sorted(UNIT.glob("test_*.c")):
        name = path.stem.removeprefix("test_")
        words = rows.get(name)
        if words is None:
            yield f"{path.name} has no row in tests/unit/CMakeLists.txt"
            continue
        says = "THREADS" in words.split() or 'ONE_THREAD "' in words
        if says != starts_threads(path, set()):
            yield (f"{name}: it starts no thread: remove THREADS or ONE_THREAD from its row" if says else
                   f"{name}: it starts threads: its row needs THREADS, or ONE_THREAD with a reason")


found = list(breaches(dict(ROW.findall((UNIT / "CMakeLists.txt").read_text()))))
for breach in found:
    print(breach)
sys.exit(1 if found else 0)
