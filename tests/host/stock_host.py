#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A stock KVM host on any machine: Debian's kernel with kvm_amd and nested paging, inside QEMU's TCG. Its root is that of the machine.

    stock_host.py up FOLDER SERIES      boots it (6.1, 6.12); it stays as long as the process that started this
    stock_host.py run FOLDER SERIES [OPTION...] -- COMMAND...   runs a command inside: its output, its exit status
    stock_host.py down FOLDER           ends it

FOLDER has the console, what QEMU said, and in shared/ what inside.py wrote."""
import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SUPPORT = HERE.parent / "support"
SKIPPED = 77
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
SLOWNESS = int(os.environ.get("VPROF_TEST_SLOWNESS", 1))
BOOT_SECONDS = 120 * SLOWNESS  # five on an idle machine
OFF_SECONDS = 30 * SLOWNESS
QUIET_SECONDS = 60 * SLOWNESS  # inside.py says something every five
ANSWER_SECONDS = 5  # of the monitor
# Programs are emulated there.
INSIDE_SLOWNESS = 4
PARANOID = 3  # Debian's kernel.perf_event_paranoid
PASSED_ON = "VPROF_", "PYTHON", "CK_", "XDG_CACHE_HOME"  # of the environment


class Missing(Exception):
    """The machine lacks something that a stock host needs."""


def script(path, *arguments):
    result = subprocess.run([str(path), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            check=False)
    if result.returncode == SKIPPED:
        raise Missing(result.stderr.strip().splitlines()[-1])
    if result.returncode != 0:
        raise RuntimeError(f"{path.name} failed with {result.returncode}: {result.stderr}")
    return result.stdout.strip()


def without_vectors(text):
    """The lines of a processor's state that tell where it is."""
    return [line for line in text.splitlines() if not line.startswith(("FCW", "FPR", "XMM", "YMM", "(qemu)"))]


class StockHost:
    """A folder, and the host that has its files there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.shared = self.folder / "shared"
        self.console = self.folder / "console"
        self.missing = self.folder / "missing"
        self.pid = self.folder / "pid"

    def prepare(self, series, modules=()):
        """An empty folder with an initramfs; the kernel."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.shared.mkdir(parents=True)
        kernel = script(SUPPORT / "kernel-debian.sh", series, "amd64")
        script(HERE / "initrd.sh", kernel, self.folder / "initrd", *modules)
        return kernel

    def command(self, kernel, vcpus=2, memory_mib=3072, append="", devices=()):
        """QEMU's, to be run in the folder: the path of a socket is short."""
        def share(path, tag, *options):
            return "-virtfs", ",".join(("local", f"path={path}", f"mount_tag={tag}", "security_model=none", "multidevs=remap",
                                        *options))

        words = f"console=ttyS0 panic=-1 unknown_nmi_panic mitigations=off tsc=reliable quiet inside={HERE / 'inside.py'} {append}"
        return [*script(SUPPORT / "emulator.sh", "x86_64").splitlines(), "-accel", "tcg,thread=multi", "-cpu", "EPYC-Rome,svm=on,npt=on", "-machine", "q35", "-smp", str(vcpus),
                "-m", str(memory_mib), "-nographic", "-nodefaults", "-no-reboot", "-monitor", "unix:monitor,server=on,wait=off", "-d", "cpu_reset",
                "-serial", "file:console", "-serial", "unix:port,server=on,wait=off",
                "-kernel", str(kernel), "-initrd", "initrd", "-append", words,
                *share("/", "root", "readonly=on"), *share("shared", "shared"), *devices]

    def keep(self, command, owner):
        """Runs QEMU until it ends by itself or the process `owner` is gone. It has no end but this."""
        with (self.folder / "qemu.log").open("wb") as log:
            qemu = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.pid.write_text(str(qemu.pid))
        for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
            signal.signal(number, lambda *_: qemu.terminate())
        ended = os.pidfd_open(qemu.pid)
        if ended not in select.select([ended, owner], [], [])[0]:
            qemu.kill()
        qemu.wait()
        self.pid.unlink()

    def boot(self, command):
        """Starts it in a process of its own, for as long as our parent lives."""
        owner = os.pidfd_open(os.getppid())
        if os.fork() == 0:
            os.setsid()
            with open(os.devnull, "r+b") as nothing:
                for stream in 0, 1, 2:
                    os.dup2(nothing.fileno(), stream)
            self.keep(command, owner)
            os._exit(0)
        self.talk("up", BOOT_SECONDS)

    def said(self):
        """The end of what QEMU, with its processors' state at each reset, and Linux printed."""
        text = [path.read_text(errors="replace") for path in (self.folder / "qemu.log", self.console) if path.exists()]
        return "\n".join(line for lines in text for line in without_vectors(lines)[-60:])

    def talk(self, expected, quiet, say=None):
        """Says a line to inside.py, and waits for the line `expected`. A host that says nothing for `quiet` seconds is ended."""
        heard = b""
        with socket.socket(socket.AF_UNIX) as port:
            self.connect("port", port, time.monotonic() + quiet)
            port.settimeout(quiet)
            if say:
                port.sendall(f"{say}\n".encode())
            while f"{expected}\n".encode() not in heard:
                try:
                    piece = port.recv(4096)
                except TimeoutError:
                    raise RuntimeError(f"the stock host said nothing for {quiet} s, and was ended\n{self.kill()}") from None
                if not piece:
                    raise RuntimeError(f"the stock host has ended\n{self.said()}")
                heard += piece

    def kill(self):
        """Ends a host that hangs; where its processors were, which Linux says by its panic at an NMI, and what it said."""
        registers = b""
        with contextlib.suppress(OSError, RuntimeError), socket.socket(socket.AF_UNIX) as monitor:
            self.connect("monitor", monitor, time.monotonic() + ANSWER_SECONDS)
            monitor.sendall(b"info registers -a\nnmi\n")
            monitor.settimeout(ANSWER_SECONDS)
            while piece := monitor.recv(65536):
                registers += piece
        with contextlib.suppress(OSError, ValueError):
            signal.pidfd_send_signal(os.pidfd_open(int(self.pid.read_text())), signal.SIGKILL)
        while self.pid.exists():
            time.sleep(0.02)
        return "\n".join([*without_vectors(registers.decode(errors="replace")), self.said()])

    def connect(self, name, port, end):
        """To a socket of QEMU's in the folder."""
        place = os.open(self.folder, os.O_PATH)
        try:
            while True:
                try:
                    return port.connect(f"/proc/self/fd/{place}/{name}")
                except OSError:
                    if time.monotonic() > end or (self.folder / name).exists() and not self.pid.exists():
                        raise RuntimeError(f"the stock host does not run\n{self.said()}") from None
                    time.sleep(0.02)
        finally:
            os.close(place)

    def answers(self):
        """Whether it is there; one that hangs is not."""
        if not self.pid.exists():
            return False
        try:
            self.talk("ready", QUIET_SECONDS, say="ready")
        except RuntimeError as error:
            print(error, flush=True)
            return False
        return True

    def run(self, argv, user=False, paranoid=PARANOID, seconds=60, environment=()):
        """The exit status of a command and its output. Files that it writes to /run/stock-host are in shared/."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            name = str(time.monotonic_ns())
            source = HERE.parents[1]
            build = os.environ.get("VPROF_BIN")
            (self.shared / name).write_text(json.dumps({
                "argv": argv, "user": user, "paranoid": paranoid, "seconds": seconds, "environment": dict(environment),
                "folders": [str(source)] + [build] * bool(build)}))
            output = self.shared / f"{name}.output"
            try:
                self.talk(name, QUIET_SECONDS, say=name)
            except RuntimeError as error:
                text = output.read_text(errors="replace") if output.exists() else ""
                raise RuntimeError(f"{text}\n{error}") from None
            return int((self.shared / f"{name}.status").read_text()), output.read_bytes()

    def power_off(self):
        """Asks it, and waits for QEMU's end; one that does not is killed."""
        try:
            ended = os.pidfd_open(int(self.pid.read_text()))
        except (OSError, ValueError):
            raise RuntimeError(f"the stock host has ended before\n{self.said()}") from None
        with socket.socket(socket.AF_UNIX) as port:
            self.connect("port", port, time.monotonic() + 1)
            port.sendall(b"off\n")
            if not select.select([ended], [], [], OFF_SECONDS)[0]:
                signal.pidfd_send_signal(ended, signal.SIGKILL)
                raise RuntimeError(f"the stock host did not power off in {OFF_SECONDS} s\n{self.said()}")


def boot(host, series):
    for last in False, True:
        kernel = host.prepare(series)
        begin = time.monotonic()
        try:
            host.boot(host.command(kernel))
        except RuntimeError as error:
            if last:
                raise
            print(error, flush=True)
        else:
            print(f"Linux {pathlib.Path(kernel).name.removeprefix('vmlinuz-')} is up after {time.monotonic() - begin:.1f} s", flush=True)
            return


def up(host, arguments):
    try:
        boot(host, arguments.series)
    except Missing as missing:
        host.missing.write_text(str(missing))
        raise


def inside_environment(seconds):
    """Ours, with the limits of time for programs that are emulated."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    return environment | {"VPROF_TEST_SLOWNESS": str(SLOWNESS * INSIDE_SLOWNESS), "VPROF_TEST_SECONDS": str(seconds),
                          "CK_TIMEOUT_MULTIPLIER": str(10 * SLOWNESS * INSIDE_SLOWNESS), "HOME": os.environ.get("HOME", "/root")}


def run(host, arguments):
    if host.missing.exists():
        raise Missing(host.missing.read_text())
    if not host.answers():
        print("the stock host has ended in the test before", flush=True)
        boot(host, arguments.series)
    # A little less than CTest's limit for us.
    seconds = int(os.environ.get("VPROF_TEST_SECONDS", 600)) - 15
    status, output = host.run(arguments.command, arguments.user, arguments.paranoid, seconds, inside_environment(seconds))
    sys.stdout.buffer.write(output)
    return status if status >= 0 else 128 - status


def down(host, _):
    if not host.missing.exists():
        host.power_off()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True)
    for action in up, run, down:
        more = actions.add_parser(action.__name__)
        more.add_argument("folder")
        more.set_defaults(action=action)
        if action is not down:
            more.add_argument("series")
        if action is run:
            more.add_argument("--user", action="store_true", help="as an ordinary user in the group kvm")
            more.add_argument("--paranoid", type=int, default=PARANOID, help="kernel.perf_event_paranoid")
            more.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    try:
        return arguments.action(StockHost(arguments.folder), arguments)
    except Missing as missing:
        print(missing)
        return SKIPPED
    except RuntimeError as error:
        print(error)
        return 1


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
