#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""junit_verdicts.py FILE: a line "passed|failed|skipped NAME[: REASON]" for every test in a report of CTest.

Where the environment says CI=true, the machine is meant to have what the tests need: a skip is a failure, but for what a
machine cannot be given: time, what a registry has taken back, and what the stock hosts' KVM lacks in an emulator.
"""
import os
import sys
import xml.etree.ElementTree

# harness.need_fast_guests, registry.cached, harness.need_feature
EXCUSES = "emulates guests too slowly", "cannot be fetched", "this host's KVM"


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


for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    print(*verdict(case))
