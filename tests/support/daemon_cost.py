# SPDX-License-Identifier: BSD-2-Clause
"""What the processes of a `vprof daemon` cost: time and memory, by what each is."""
import os
import pathlib
import re
import time

OF_A_GUEST = {"worker", "engine"}


def _children(pid):
    try:
        return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def names(pid):
    """Of the process and all that it has begun."""
    return [_name(pid), *(name for child in _children(pid) for name in names(child))]


def kinds(pid, kind="daemon"):
    """{process: what it is}. A guest's engine is several processes."""
    found = {pid: kind}
    for child in _children(pid):
        name = _name(child)
        found |= kinds(child, {"vprofd-guest": "worker", "vprofd-finder": "finder", "vprofd-sender": "sender",
                               "vprof-attach": "engine" if kind == "worker" else "libvirt"}.get(name, kind))
    return found


def cpu_s(pid):
    """By the process's own clock, as clock_getcpuclockid(3) numbers it: /proc has it in ticks."""
    return time.clock_gettime(~pid << 3 | 2)


def memory_kib(pid):
    """(PSS, private)"""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    value = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    return value["Pss"], value["Private_Clean"] + value["Private_Dirty"]


def sealed_kib(pid):
    """Files in memory that the process has open."""
    sizes = {}
    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(file).startswith("/memfd:vprof-kernel"):
                status = os.stat(file)
                sizes[status.st_ino] = status.st_blocks // 2
        except OSError:
            pass
    return sum(sizes.values())
