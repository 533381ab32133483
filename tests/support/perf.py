# SPDX-License-Identifier: BSD-2-Clause
"""Debian's perf reads our recordings: what it makes of them, beside what vprof makes of them."""
import collections
import json
import os
import re
import subprocess

import harness
from harness import VPROF

# Neither the user's configuration nor the build-id cache in the home folder.
ENVIRONMENT = os.environ | {"HOME": "/nonexistent", "PERF_CONFIG": "/dev/null", "LC_ALL": "C"}
# What it rightly says when it has neither --kallsyms nor --vmlinux.
NEEDS_SYMBOLS = re.compile("No kallsyms or vmlinux with build-id [0-9a-f]+ was found")
MODES = {"k": "kernel", ".": "user", "H": "vmm"}
ROW = re.compile(r"^\s*[\d.]+%\s+(\d+)\s+\[(.)\]\s+(\S.*?)\s*$", re.MULTILINE)
CGROUP_ROW = re.compile(r"^\s*[\d.]+%\s+(\d+)\s+(\S.*?)\s*$", re.MULTILINE)


def perf(*arguments):
    """Standard output of perf, which must have nothing to complain about."""
    harness.need_program("perf", "linux-perf")
    result = subprocess.run(["perf", *map(str, arguments)], capture_output=True, text=True, errors="replace",
                            timeout=300, check=False, env=ENVIRONMENT)
    complaints = [line for line in result.stderr.splitlines() if line.strip() and not NEEDS_SYMBOLS.match(line)]
    if result.returncode != 0 or complaints:
        raise AssertionError(f"perf {arguments[0]} ended with {result.returncode}: {complaints}")
    return result.stdout


def cgroups(recording):
    """How many samples perf finds in each cgroup."""
    report = perf("report", "--stdio", "-g", "none", "-n", "--sort", "cgroup", "--percent-limit", "0", "--no-children", "-i",
                  recording)
    return {path: int(count) for count, path in CGROUP_ROW.findall(report)}


def vprof_script(recording, *options):
    command = [VPROF, "script", "--json", "-i", recording, *options]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def vprof_samples(recording):
    return vprof_script(recording)


def perf_samples(recording):
    """(time in ns, vCPU, ip) of every sample."""
    samples = []
    for line in perf("script", "--ns", "-G", "-i", recording, "-F", "time,cpu,ip").splitlines():
        cpu, seconds, ip = re.fullmatch(r"\s*\[(\d+)\]\s+(\d+\.\d+):\s+([0-9a-f]+)\s*", line).groups()
        samples.append((int(seconds.replace(".", "")), int(cpu), int(ip, 16)))
    return samples


def looked_seconds(recording):
    """From the first look at tasks that found one waiting to the last one so far."""
    looks = [sample["time-ns"] for sample in vprof_samples(recording) if sample["event"] == "wall"]
    return (max(looks) - min(looks)) / 1e9 if looks else 0


def check_agreement(test, recording):
    """perf sees the same samples, and puts as many of them into each mode and each kernel symbol."""
    samples = vprof_samples(recording)
    ours = sorted((sample["time-ns"], sample["vcpu"], int(sample["ip"], 16)) for sample in samples)
    test.assertEqual(sorted(perf_samples(recording)), ours)

    kallsyms = test.folder / "kallsyms"
    subprocess.run([VPROF, "export", "--to", "kallsyms", "-o", kallsyms, recording], check=True)
    report = perf("report", "--stdio", "-g", "none", "-i", recording, "-n", "--sort", "sym", "--kallsyms", kallsyms,
                  "--no-children", "--percent-limit", "0")
    modes, symbols = collections.Counter(), collections.Counter()
    for count, mode, symbol in ROW.findall(report):
        modes[MODES[mode]] += int(count)
        if mode == "k":
            symbols[symbol] += int(count)
    test.assertEqual(modes, collections.Counter(sample["mode"] for sample in samples))
    expected = collections.Counter(sample["symbol"] for sample in samples if sample["mode"] == "kernel")
    # perf shows the address of what has no name.
    unnamed = sum(number for symbol, number in symbols.items() if symbol.startswith("0x"))
    test.assertEqual(unnamed, expected.pop("[unknown]", 0))
    test.assertEqual({symbol: symbols[symbol] for symbol in expected}, expected)
