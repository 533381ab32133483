#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What reading a large recording costs: vprof beside perf on the same file, made of ROUNDS * 110 samples. What perf has
no command for is set beside what people do instead: perf script, and a script that collapses its stacks.

usage: bench_report.py [-r ROUNDS] [-n RUNS] BIN_FOLDER

Prints medians of CPU time and of peak memory (resident, the mapped file's pages included), and their ratios.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile


# What stackcollapse-perf.pl of FlameGraph does, without its options.
COLLAPSE = r"""NF == 0 { if (stack != "") n[comm stack]++; stack = ""; next }
/^[ \t]/ { stack = ";" $2 stack; next }
{ comm = $1 }
END { for (key in n) print key, n[key] }"""


def measure(argv, work):
    """CPU seconds and MiB of one run."""
    with open(os.path.join(work, "output"), "wb") as output:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bench_report: {' '.join(argv)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def compare(title, ours, theirs, runs, work):
    rounds = [(measure(ours, work), measure(theirs, work)) for _ in range(runs)]
    (our_s, our_mib), (their_s, their_mib) = (
        [statistics.median(figure) for figure in zip(*side)] for side in zip(*rounds))
    print(f"{title:<40} {our_s:8.2f} s {their_s:8.2f} s {their_s / our_s:6.1f} times faster"
          f" {our_mib:8.0f} MiB {their_mib:8.0f} MiB {our_mib / their_mib:6.2f} of it", flush=True)


def start(vprof, work):
    """What every command takes before its own work."""
    cpu_s = statistics.median(measure([vprof, "version"], work)[0] for _ in range(51))
    print(f"start: vprof version {1000 * cpu_s:26.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", type=int, default=91000, metavar="ROUNDS")
    parser.add_argument("-n", type=int, default=3, metavar="RUNS")
    parser.add_argument("bin", metavar="BIN_FOLDER")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vprof-bench-") as work:
        file, symbols = os.path.join(work, "vprof.data"), os.path.join(work, "kallsyms")
        cgroups = os.path.join(work, "cgroups.data")
        tool, vprof = os.path.join(given.bin, "recording_tool"), os.path.join(given.bin, "vprof")
        start(vprof, work)
        subprocess.run([tool, "write", file, symbols, str(given.r), "0"], check=True)
        print(f"{given.r * 110} samples, {os.path.getsize(file) / 2**20:.0f} MiB; medians of {given.n} runs")
        perf = ["perf", "report", "-i", file, "--kallsyms", symbols, "--stdio"]
        compare("report: vprof, perf report", [vprof, "report", "-i", file], perf + ["-g", "none"], given.n, work)
        by_task = ["report", "--sort", "comm,cgroup", "-i"]
        subprocess.run([tool, "cgroups", cgroups, symbols, str(given.r), "0"], check=True)
        compare("report --sort comm,cgroup", [vprof, *by_task, cgroups], ["perf", *by_task, cgroups, "--stdio", "-g", "none"], given.n, work)
        os.remove(cgroups)
        compare("report with call chains", [vprof, "report", "-g", "-i", file], perf, given.n, work)
        collapse = ["sh", "-c", 'perf script -i "$0" --kallsyms "$1" -F comm,ip,sym | awk "$2"', file, symbols, COLLAPSE]
        page, out = os.path.join(work, "page.html"), os.path.join(work, "out")
        compare("export folded: vprof, perf script | awk", [vprof, "export", "-t", "folded", "-i", file, "-o", out], collapse, given.n, work)
        compare("export pprof: vprof, perf script | awk", [vprof, "export", "-t", "pprof", "-i", file, "-o", out], collapse, given.n, work)
        compare("page: vprof, perf script | awk", [vprof, "report", "--html", page, "-i", file], collapse, given.n, work)
        compare("diff of two: vprof, perf diff", [vprof, "diff", file, file], ["perf", "diff", "-q", file, file], given.n, work)
        compare("samples as text: script, perf script", [vprof, "script", "-i", file],
                ["perf", "script", "-i", file, "--kallsyms", symbols, "-F", "time,event,ip,sym"], given.n, work)


if __name__ == "__main__":
    main()
