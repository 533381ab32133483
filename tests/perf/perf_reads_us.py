#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf reads our recordings without complaint, and counts what we count, to the sample."""
import re
import sys

from perf_runner import Scratch, need_perf, our_samples, script_samples

ROUNDS = 8
SAMPLES = ROUNDS * 110  # what recording_tool puts into a round
BUILD_ID = "deadbeef" + 32 * "0"
REPORT = ("report", "--stdio", "--no-children", "-g", "none", "-F", "sample,sym")

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def perf_quietly(scratch, *arguments, says=""):
    """What perf prints; it must succeed and have nothing on stderr but what matches `says`."""
    result = scratch.perf(*arguments)
    check(result.returncode == 0, f"perf {arguments}: status {result.returncode}: {result.stderr}")
    complaints = [line for line in result.stderr.splitlines() if line and not (says and re.search(says, line))]
    check(not complaints, f"perf {arguments} complains: {complaints}")
    return result.stdout


def report_counts(text):
    """{(event, symbol): samples} of a `perf report -F sample,sym`."""
    counts, event = {}, None
    for line in text.splitlines():
        header = re.match(r"# Samples: \S+\s+of event '(.*)'", line)
        row = re.match(r"\s*(\d+)\s+(\[.\] \S+)\s*$", line)
        if header:
            event = header.group(1)
        elif row:
            counts[event, row.group(2)] = int(row.group(1))
    return counts


def our_counts(text):
    rows = (line.split("\t") for line in text.splitlines())
    return {(event, symbol): int(count) for event, symbol, count in rows}


def counts_agree(scratch, name, says=""):
    theirs = report_counts(perf_quietly(scratch, *REPORT, "--kallsyms=kallsyms", "-i", name, says=says))
    ours = our_counts(scratch.tool("counts", name).stdout)
    check(sum(ours.values()) == SAMPLES, f"{name}: we count {sum(ours.values())} samples of {SAMPLES}")
    check(theirs == ours, f"{name}: perf counts {theirs}, we count {ours}")


def samples_agree(scratch, name, says=""):
    text = perf_quietly(scratch, "script", "--hide-call-graph", "--ns", "-F", "time,event,ip", "-i", name,
                        "--kallsyms=kallsyms", says=says)
    theirs, ours = script_samples(text), our_samples(scratch.tool("samples", name).stdout)
    check(len(ours) == SAMPLES, f"{name}: we have {len(ours)} samples of {SAMPLES}")
    check(theirs == ours, f"{name}: perf script prints {len(theirs)} samples, others than we do")


def whole_recording(scratch):
    scratch.tool("write", "whole", "kallsyms", ROUNDS, 0)
    counts_agree(scratch, "whole")
    samples_agree(scratch, "whole")
    perf_quietly(scratch, "report", "--stdio", "-i", "whole", "--kallsyms=kallsyms")
    chains = perf_quietly(scratch, "script", "-i", "whole", "--kallsyms=kallsyms", "-F", "ip,sym")
    check("beta\n" in chains and chains.count("alpha") > ROUNDS * 100, "perf script shows no call chains")
    # Without symbols perf says, by the build-id, which ones it would need.
    perf_quietly(scratch, "report", "--stdio", "-i", "whole",
                 says=f"^No kallsyms or vmlinux with build-id {BUILD_ID} was found$")

    events = perf_quietly(scratch, "evlist", "-v", "-i", "whole").splitlines()
    check([line.split(":")[0] for line in events] == ["task-clock", "timer"], f"perf evlist: {events}")
    header = perf_quietly(scratch, "report", "--header-only", "-i", "whole")
    for line in ("hostname : guest", "os release : 6.1.0-test", "perf version : vprof 0.1.0", "arch : x86_64",
                 "nrcpus online : 2", "total memory : 524288 kB", "cmdline : vprof run --kernel vmlinux",
                 "event : name = timer", "time of first sample : 1.000001"):
        check(f"# {line}" in header, f"perf report --header-only lacks '{line}':\n{header}")
    ids = perf_quietly(scratch, "buildid-list", "-i", "whole")
    check(ids.split() == [BUILD_ID, "[kernel.kallsyms]"], f"perf buildid-list: {ids}")


def lost_samples(scratch):
    scratch.tool("write", "lossy", "kallsyms", ROUNDS, 17)
    counts_agree(scratch, "lossy", says=r"^Warning:$|^Processed \d+ events and lost 1 chunks!$|^Check IO/CPU overload!$")
    lost = perf_quietly(scratch, "script", "--show-lost-events", "-i", "lossy", "--kallsyms=kallsyms",
                        says="^Warning:$|lost 1 chunks|^Check IO")
    check("PERF_RECORD_LOST lost 17" in lost, "perf script --show-lost-events does not show the 17")
    dump = perf_quietly(scratch, "report", "-D", "-i", "lossy", "--kallsyms=kallsyms", says="^Warning:$|lost 1 chunks|^Check IO")
    for record in "LOST_SAMPLES", "THROTTLE", "UNTHROTTLE":
        check(f"PERF_RECORD_{record}" in dump, f"perf report -D has no {record}")


def unfinished_recording(scratch):
    """What a recorder leaves that was killed: perf reads it like any other, and knows names and build-id."""
    scratch.tool("cut", "cut", "kallsyms", ROUNDS, 0)
    samples_agree(scratch, "cut")
    perf_quietly(scratch, "report", "--stdio", "-i", "cut",
                 says=f"^No kallsyms or vmlinux with build-id {BUILD_ID} was found$")
    warning = scratch.tool("samples", "cut").stderr
    check("was not finished" in warning, f"no warning of ours: {warning}")


def main():
    need_perf()
    with Scratch() as scratch:
        whole_recording(scratch)
        lost_samples(scratch)
        unfinished_recording(scratch)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
