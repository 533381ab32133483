#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""We read what perf record writes: the same samples, each with its time, event and address, as perf script prints."""
import sys

from perf_runner import SKIP, TOOL, Scratch, need_perf, our_samples, script_samples

WORK = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; ls -lR /usr/include >/dev/null"]

# Each has samples of another layout, or several.
RECORDINGS = {
    "one event": ["-e", "task-clock"],
    "chains": ["-e", "task-clock", "-g"],
    "period": ["-e", "page-faults", "-c", "1"],
    "two events": ["-e", "task-clock,page-faults"],
    "three events with chains": ["-e", "task-clock,cpu-clock,page-faults", "-g"],
    "address, data source, CPU": ["-e", "task-clock", "-d", "-C", "0"],
    "user registers and stack": ["-e", "task-clock", "--call-graph", "dwarf,1024"],
    "registers at the interrupt": ["-e", "task-clock", "--intr-regs=ip,sp"],
    "weight": ["-e", "task-clock,page-faults", "-W"],
    "cgroups": ["-e", "task-clock", "--all-cgroups", "-g"],
    "cgroups behind registers and stacks": ["-e", "task-clock", "--all-cgroups", "--call-graph", "dwarf,1024", "-W", "-d",
                                            "--phys-data", "--intr-regs=ip,sp"],
    "compressed": ["-e", "task-clock,page-faults", "-g", "-z"],
    # perf script makes a line of each member of the group, out of the sample of its leader.
    "read group": ["-e", "{task-clock,page-faults}:S", "-g"],
}
LEADER_ONLY = {"read group"}


def compare(scratch, name, options):
    """None, or what is wrong; ("skipped", why) when perf cannot record it here."""
    result = scratch.perf("record", "-o", "perf.data", *options, "--", *WORK)
    if result.returncode != 0:
        return "skipped", f"perf record {' '.join(options)}: {result.stderr.strip().splitlines()[-1:]}"
    script = scratch.perf("script", "--hide-call-graph", "--ns", "-F", "time,event,ip", "-i", "perf.data")
    theirs, ours = script_samples(script.stdout), our_samples(scratch.tool("samples", "perf.data").stdout)
    if name in LEADER_ONLY:
        theirs = [sample for sample in theirs if sample[1] == "task-clock"]
    if not theirs:
        return "failed", "perf recorded no samples"
    if theirs != ours:
        return "failed", f"perf script prints {len(theirs)} samples, we have {len(ours)}, or they differ"
    return "ok", f"{len(ours)} samples"


def pipe_is_refused(scratch):
    result = scratch.run("sh", "-c", "perf record -e task-clock -o - true > pipe.data")
    if result.returncode != 0:
        return "skipped", result.stderr
    result = scratch.run(TOOL, "samples", "pipe.data")
    good = result.returncode != 0 and "recorded into a pipe" in result.stderr
    return ("ok", "refused") if good else ("failed", f"status {result.returncode}: {result.stderr}")


def main():
    need_perf()
    outcomes = {}
    with Scratch() as scratch:
        for name, options in RECORDINGS.items():
            outcomes[name] = compare(scratch, name, options)
        outcomes["pipe"] = pipe_is_refused(scratch)
    for name, (outcome, text) in outcomes.items():
        print(f"{outcome}: {name}: {text}")
    words = {outcome for outcome, _ in outcomes.values()}
    return 1 if "failed" in words else SKIP if "ok" not in words else 0


if __name__ == "__main__":
    sys.exit(main())
