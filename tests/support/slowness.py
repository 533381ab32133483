#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures how slow this machine is for the tests, and prints it: the factor for their time limits (VPROF_TEST_SLOWNESS).

It is 1 on an idle machine that runs guests at full speed. Two things make it larger: other processes and a hypervisor that take
CPU time, and a KVM that emulates guests slowly."""
import math
import multiprocessing
import os
import time

import harness

MEASURED = 2  # seconds of wall time
EMULATION_FULL = 2e6  # instructions a second of the emulated guests for which the limits are made
MOST = 20


def cpu_share(_):
    """The CPU time that a busy process gets of its wall time."""
    begin, cpu = time.monotonic(), time.process_time()
    while time.monotonic() - begin < MEASURED:
        pass
    return (time.process_time() - cpu) / (time.monotonic() - begin)


def slowness(share, emulated):
    """share: of each CPU that the tests get; emulated: instructions a second of a guest's time, None if it is not emulated."""
    factor = max(1, EMULATION_FULL / emulated if emulated else 1) / share
    return min(MOST, math.ceil(round(factor - 0.1, 3)))


def main():
    cpus = len(os.sched_getaffinity(0))
    with multiprocessing.Pool(cpus) as pool:
        share = sum(pool.map(cpu_share, range(cpus), chunksize=1)) / cpus
    print(slowness(share, harness.emulation_speed() if os.access("/dev/kvm", os.R_OK | os.W_OK) else None))


if __name__ == "__main__":
    main()
