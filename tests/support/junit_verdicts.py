#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""junit_verdicts.py FILE: a line "passed|failed|skipped NAME[: REASON]" for every test in a report of CTest.
junit_verdicts.py --times FILE: the seconds of each tier, and the slowest tests.

Where the environment says CI=true, the machine is meant to have what the tests need: a skip is a failure, but for what a
machine cannot be given: time, what a registry has taken back, and what the stock hosts' KVM lacks in an emulator.
"""
import collections
import os
import sys
import xml.etree.ElementTree

# harness.need_fast_guests, registry.cached, harness.need_feature
EXCUSES = "emulates guests too slowly", "cannot be fetched", "this host's KVM"
SLOWEST = 10


def verdict(case):
    name = case.get("name")
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed", name
    if case.get("status") == "run":
        return "passed", name
    output = (case.findtext("system-out") or "").strip().splitlines()
    reason = output[-1] if output else case.get("status")
    needed = os.environ.get("CI") == "true" and not any(excuse in reason for excuse in EXCUSES)
    return "failed" if needed else "skipped", f"{name}: {reason}"


def times(cases):
    """Lines of seconds and names: tests run in parallel, so that the sum is more than the wall time."""
    seconds = {case.get("name"): float(case.get("time") or 0) for case in cases}
    tiers = collections.Counter()
    for name, taken in seconds.items():
        tiers[name.partition("/")[0]] += taken
    yield from (f"{taken:7.1f} s  tier {tier}" for tier, taken in tiers.most_common())
    yield from (f"{seconds[name]:7.1f} s  {name}" for name in sorted(seconds, key=seconds.get, reverse=True)[:SLOWEST])


by_time = sys.argv[1:2] == ["--times"]
report = list(xml.etree.ElementTree.parse(sys.argv[-1]).getroot().iter("testcase"))
for line in times(report) if by_time else (" ".join(verdict(case)) for case in report):
    print(line)
