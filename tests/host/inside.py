#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a stock host runs (stock_host.py): commands, one after the other. The name of a file in the shared folder comes over the
second serial port and says which; the file NAME.output takes what the command writes, NAME.status how it has ended, and then the
name goes back. Meanwhile a line "runs" says every few seconds that this host does not hang, and "ready" is answered by "ready".

A command has a cgroup of its own, so that nothing of it is left behind. It ends early when the next one comes: its client has gone.
A script in Python runs in a process that has Python and its library before: in an emulator, their start takes a second or two."""
import ctypes
import fcntl
import grp
import json
import os
import pathlib
import random
import runpy
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tty
import unittest

SHARED = pathlib.Path("/run/stock-host")
PORT = "/dev/ttyS1"
CGROUP = pathlib.Path("/sys/fs/cgroup/command")
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
USER = 1000
ENTER = 0o55  # of a folder's permissions
KVM = "kvm"
PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, PERF_FLAG_FD_CLOEXEC, SYS_PERF_EVENT_OPEN = 1, 2, 8, 298
PERF_COUNT_SW = {"page-faults": 2, "context-switches": 3, "cpu-migrations": 4, "minor-faults": 5, "major-faults": 6}
PERF_ATTR_SIZE_VER0, PERF_EVENT_FLAGS, PERF_DISABLED = 64, 40, 1  # of struct perf_event_attr
KVM_CREATE_VM, KVM_CREATE_VCPU, KVM_CREATE_IRQCHIP = 0xae01, 0xae41, 0xae60
EVENTS = pathlib.Path("/sys/kernel/tracing/events")
TRACE_POINTS = (*(f"kvm/kvm_{name}" for name in ("entry", "exit", "fpu", "mmio", "msr", "pio", "userspace_exit", "vcpu_wakeup")),
                "sched/sched_switch", "sched/sched_wakeup")  # those of vmm/exits/bpf/exit_times_program.h and of perf kvm stat
LATE = 124  # as timeout(1) has it
CANNOT_START = 127  # as a shell has it
TESTS_IMPORT = random, shutil, socket, subprocess, tempfile, threading, unittest
BEAT_SECONDS = 5


def prepare(folders):
    """Devices are the group's, as udev does it, and an ordinary user may enter the folders above those of the project."""
    group = grp.getgrnam(KVM).gr_gid
    for device in "kvm", "vhost-vsock":
        if os.path.exists(f"/dev/{device}"):
            os.chown(f"/dev/{device}", 0, group)
            os.chmod(f"/dev/{device}", 0o660)
    for folder in folders:
        for place in [folder, *folder.parents]:
            mode = place.stat().st_mode
            if mode & ENTER != ENTER:
                place.chmod(mode | ENTER)
    return group


def open_event(kind, config):
    """An event of perf's on this process, which does not count."""
    attribute = struct.pack("=IIQ", kind, PERF_ATTR_SIZE_VER0, config).ljust(PERF_EVENT_FLAGS, b"\0") + struct.pack("=Q", PERF_DISABLED)
    attribute = attribute.ljust(PERF_ATTR_SIZE_VER0, b"\0")
    if ctypes.CDLL(None, use_errno=True).syscall(SYS_PERF_EVENT_OPEN, attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")


def make_machine(local_apic):
    """A virtual machine with one processor, which never runs. Its processor has no file: it is no guest that could be attached to."""
    kvm = os.open("/dev/kvm", os.O_RDWR)
    machine = fcntl.ioctl(kvm, KVM_CREATE_VM, 0)
    if local_apic:
        fcntl.ioctl(machine, KVM_CREATE_IRQCHIP)
    os.close(fcntl.ioctl(machine, KVM_CREATE_VCPU, 0))


def keep_code():
    """Linux patches itself by an INT3 where it counts events of perf's, for the first one of each kind and after the last; in KVM, for the
    first machine, the first processor that has no local APIC and the first with one that is off; and at a trace point, for its first
    and its second user. QEMU's TCG forgets its translation of a place before the write to it, not after: another processor that comes by
    in between translates the old INT3 again, takes it whenever it comes by from then on, and Linux panics. So there is always one of
    each, and each trace point that an engine or a test uses has two users."""
    for event in PERF_COUNT_SW.values():
        open_event(PERF_TYPE_SOFTWARE, event)
    for local_apic in True, False:
        make_machine(local_apic)
    for trace_point in TRACE_POINTS:
        folder = EVENTS / trace_point
        open_event(PERF_TYPE_TRACEPOINT, int((folder / "id").read_text()))
        (folder / "filter").write_text("common_pid < 0")
        (folder / "enable").write_text("1")


def runtime_folder(user):
    folder = pathlib.Path(f"/run/user/{user}")
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, user, user)
    folder.chmod(0o700)
    return str(folder)


def kill_all():
    (CGROUP / "cgroup.kill").write_text("1")
    while "populated 1" in (CGROUP / "cgroup.events").read_text():
        time.sleep(0.01)


def become(argv):
    """This process is the command from here on."""
    program, *arguments = argv
    if program != "python3" or arguments[0].startswith("-"):
        try:
            os.execvp(program, argv)
        except OSError as error:
            print(f"cannot start {program}: {error}", flush=True)
            sys.exit(CANNOT_START)
    sys.argv = arguments
    sys.path[:1] = [os.path.dirname(arguments[0]), *os.environ.get("PYTHONPATH", "").split(":")]
    runpy.run_path(arguments[0], run_name="__main__")


def begin(command, output):
    """Starts it; the process."""
    group = prepare([pathlib.Path(folder) for folder in command["folders"]])
    PARANOID.write_text(str(command["paranoid"]))
    user = USER if command["user"] else 0
    home = runtime_folder(user)
    CGROUP.mkdir(exist_ok=True)
    process = os.fork()
    if process:
        return process
    (CGROUP / "cgroup.procs").write_text("0")
    os.setsid()
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(file, stream)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # what keep_code() has opened, too: this is no VMM
    os.environ.update(command["environment"], XDG_RUNTIME_DIR=home)
    if user:
        os.environ["HOME"] = home
        os.environ.pop("XDG_CACHE_HOME", None)
        os.setgroups([group])
        os.setgid(USER)
        os.setuid(USER)
    os.chdir("/tmp")
    become(command["argv"])
    sys.exit()


def run(name, port):
    """Runs the command in the file `name`, until it ends, its time is over or the port has the next name."""
    command = json.loads((SHARED / name).read_text())
    output = os.open(SHARED / f"{name}.output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    process = begin(command, output)
    pidfd = os.pidfd_open(process)
    end = time.monotonic() + command["seconds"]
    ready = []
    while not ready and time.monotonic() < end:
        os.write(port, b"runs\n")
        ready = select.select([pidfd, port], [], [], BEAT_SECONDS)[0]
    kill_all()
    _, status = os.waitpid(process, 0)
    if pidfd not in ready:
        os.write(output, f"ended: not done after {command['seconds']} s\n".encode())
    os.close(pidfd)
    os.close(output)
    return os.waitstatus_to_exitcode(status) if pidfd in ready else LATE


def main():
    keep_code()
    port = os.open(PORT, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(port)
    os.write(port, b"up\n")
    names = b""
    while True:
        while b"\n" not in names:
            names += os.read(port, 4096)
        name, names = names.split(b"\n", 1)
        if name == b"off":
            return
        if name == b"ready":
            os.write(port, b"ready\n")
            continue
        status = run(name.decode(), port)
        (SHARED / f"{name.decode()}.status").write_text(str(status))
        os.write(port, name + b"\n")


if __name__ == "__main__":
    main()
