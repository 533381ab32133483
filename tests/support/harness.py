# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of whole programs share: where those are, running them, and that nothing of them is left behind."""
import ctypes
import functools
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import emulator_fault

BIN = pathlib.Path(os.environ["VPROF_BIN"])
SOURCE = pathlib.Path(os.environ["VPROF_SOURCE"])
VPROF = BIN / "vprof"
VMM = BIN / "vprof-vmm"
SUPPORT = SOURCE / "tests" / "support"

SLOWNESS = int(os.environ.get("VPROF_TEST_SLOWNESS", 1))  # every limit of time is that much longer: slowness.py

PR_SET_CHILD_SUBREAPER = 36
started = set()  # the processes that a test has started itself
SKIPPED = 77
EMULATED_MIN, EMULATION_MIN = 20e3, 1e6  # instructions a second: fewer are those of a guest that is not emulated
PAUSE_SECONDS = 0.5  # between two questions, at most
STOCK_HOST = pathlib.Path("/run/stock-host")  # in one (tests/host/stock_host.py)


def guest(name):
    """The guest tests/guests/NAME."""
    return BIN / f"guest-{name}.elf"


def need(condition, reason):
    if not condition:
        raise unittest.SkipTest(reason)


def need_kvm():
    need(os.access("/dev/kvm", os.R_OK | os.W_OK), "/dev/kvm cannot be opened")


def need_program(name, package):
    need(shutil.which(name), f"{name} is missing; install the package {package}")


def sbin(name, package):
    """A program that the PATH of an ordinary user may not have."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    need(path, f"{name} is missing; install the package {package}")
    return path


@functools.cache
def built_with(library):
    return library in subprocess.run([VPROF, "version"], stdout=subprocess.PIPE, text=True, check=True).stdout


@functools.cache
def host_lacks(feature):
    """What this host's KVM does instead, where it lacks "breakpoint" or "patch": host_features.h; else ""."""
    return subprocess.run([BIN / "host_lacks", feature], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def need_feature(*features):
    for feature in features:
        need(not host_lacks(feature), host_lacks(feature))


@functools.cache
def emulation_speed():
    """Instructions in a second of a guest's time, where the host's KVM emulates its guests; else None."""
    if STOCK_HOST.exists():
        return None
    report = json.loads(subprocess.run([VPROF, "stat", "--kernel", guest("hang"), "--duration", "1", "--json"],
                                       stdout=subprocess.PIPE, check=False).stdout)
    speed = report["counters"].get("insn_emulation", 0) / (report["total"]["parts-ns"]["guest"] / 1e9)
    return speed if speed > EMULATED_MIN else None


def guests_are_slow(minimum=EMULATION_MIN):
    """Whether the host's KVM emulates its guests, at less than `minimum`: how fast, in words; else None."""
    speed = emulation_speed()
    if speed and speed < minimum:
        return f"this host emulates guests too slowly: {speed / 1e6:.2f} million instructions a second"
    return None


def need_fast_guests(minimum=EMULATION_MIN):
    """Where a boot of Linux takes a minute and more, not all of them fit into a run of the tests."""
    slow = guests_are_slow(minimum)
    need(not slow, slow)


def script(name, *arguments):
    """The output of a script of tests/support, which may skip the test."""
    result = subprocess.run([SUPPORT / name, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    need(result.returncode != SKIPPED, f"{name} has not what it needs")
    if result.returncode != 0:
        raise RuntimeError(f"{name} failed with {result.returncode}")
    return result.stdout.strip()


def children_of(pid):
    """Of its first thread: what it has started, by number."""
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def child(pid, name):
    """The number of what it has started that is called so."""
    (found,) = [one for one in children_of(pid) if pathlib.Path(f"/proc/{one}/comm").read_text().strip() == name]
    return found


def children():
    return [int(pid) for pid in pathlib.Path("/proc/thread-self/children").read_text().split()]


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "?"


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def wait_until(condition, what, seconds=30):
    """Asks again and again, for a fifth of the time if asking is short: the processor is that of other tests, too, and that of the guest."""
    seconds *= SLOWNESS
    end = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(min(max(0.02, 4 * (now - asked)), PAUSE_SECONDS))


def longer_until(enough, run, seconds=1):
    """run(seconds), for twice as long again and again until its answer is `enough` for a statistic. (The answer, its seconds.)"""
    while not enough(answer := run(seconds)):
        seconds *= 2
        print(f"  not enough yet: again, for {seconds} s", flush=True)
    return answer, seconds


def most(share, number):
    """Of `number` samples, at most so many are of a kind with a probability of `share`: four standard errors above, once in 30,000 runs."""
    return share * number + 4 * math.sqrt(share * (1 - share) * number)


def cpu_seconds(pid):
    """Of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_work(pid, seconds=0.2):
    """Until a process has used so much more of a processor's time. A test guest has begun then: it starts in a few milliseconds."""
    until = cpu_seconds(pid) + seconds
    wait_until(lambda: cpu_seconds(pid) >= until, f"{seconds} s of a processor's time for {command_line(pid)}", 60)


def accepts(path):
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    except OSError:
        return False
    return True


def wait_for_socket(path):
    """A socket's file is there a little before its listener."""
    wait_until(lambda: accepts(path), f"a listener at {path}")


class ProgramTest(unittest.TestCase):
    """A folder for files, and a check that no process outlives its test."""

    maxDiff = None

    def setUp(self):
        # Orphans of what we start become our children, where we see them.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vprof-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self, seconds=5 * SLOWNESS):
        end = time.monotonic() + seconds
        while True:
            reap()
            left = children()
            if not left:
                return
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        names = [f"{pid} {command_line(pid)}" for pid in left]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.fail(f"still running {seconds} s later: {names}")

    def start(self, *command, **options):
        """A process with pipes, in a session of its own as a login has it."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   "errors": "replace", "start_new_session": True} | options
        process = subprocess.Popen([str(word) for word in command], **options)
        started.add(process.pid)
        return process

    def finish(self, process, status=0, timeout=60, typed=None):
        """Its (stdout, stderr), after it has ended with `status`."""
        timeout *= SLOWNESS
        try:
            out, err = process.communicate(typed, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"{process.args} still runs after {timeout} s\nstdout: {out}\nstderr: {err}")
        if status is not None and process.returncode != status:
            self.fail(f"{process.args} ended with {process.returncode}, not {status}\nstdout: {out}\nstderr: {err}")
        return out, err

    def wait_for_line(self, process):
        """Reads the first line of its output, and nothing behind it: `finish` has the rest."""
        while (byte := os.read(process.stdout.fileno(), 1)) != b"\n":
            if not byte:
                self.fail(f"{process.args} has printed nothing: {self.finish(process, status=None)}")

    def run_program(self, *command, status=0, timeout=60, **options):
        return self.finish(self.start(*command, **options), status=status, timeout=timeout)

    def check_namespaces(self, engine, uid=os.geteuid()):
        """Root's engine has namespaces of its own, and a root in which nothing is: the folder of a process that has ended. A
        user's has them, too, where the host allows user namespaces. Of one that looks at another VMM, /proc and /sys are left."""
        unshare = "setpriv", f"--reuid={uid}", "unshare", "--user", "--map-root-user", "true"
        if uid != 0 and subprocess.run(unshare, capture_output=True, check=False).returncode:
            return
        for name in ["net", "ipc", "uts"] + ["user"] * (uid != 0):
            self.assertNotEqual(os.readlink(f"/proc/{engine}/ns/{name}"), os.readlink(f"/proc/self/ns/{name}"), name)
        if pathlib.Path(f"/proc/{engine}/comm").read_text() == "vprof-attach\n":
            self.assertEqual(sorted(os.listdir(f"/proc/{engine}/root")), ["proc", "sys"])
        else:
            self.assertRegex(os.readlink(f"/proc/{engine}/root"), r"/\d+/fdinfo$")

    def on_terminal(self, *command, after="0", stdout=subprocess.PIPE, status=0):
        """What it writes to a terminal that is its stderr, and its stdout if that is "terminal"; and what to another stdout.
        after: VPROF_PROGRESS."""
        master, slave = os.openpty()
        process = self.start(*command, cwd=self.folder, stderr=slave, stdout=slave if stdout == "terminal" else stdout,
                             env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "VPROF_PROGRESS": after})
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 65536):
                shown += piece
        except OSError:  # EIO: the other side is closed
            pass
        text = process.communicate()[0]
        os.close(master)
        self.assertEqual(process.returncode, status, shown)
        return shown.decode(), text

    def refused(self, *command, message, status=1, **options):
        """It ends with `status` and one line on stderr that matches the regular expression `message`."""
        _, err = self.run_program(*command, status=status, **options)
        self.assertRegex(err, message)
        return err

    def samples_taken(self, engine, vcpu=None):
        """How many samples this engine's session has by now, of a vCPU or of all; without an engine, none."""
        stats = json.loads(self.run_program(VPROF, "ctl", engine, "query-stats", status=None)[0] or '{"total": {}, "vcpus": []}')
        one = stats["total"] if vcpu is None else dict(enumerate(stats["vcpus"])).get(vcpu, {})
        return one.get("sample", 0)

    def wait_for_samples(self, engine, number, vcpu=None):
        """Until the session has so many more than now."""
        until = self.samples_taken(engine, vcpu) + number
        wait_until(lambda: self.samples_taken(engine, vcpu) >= until, f"{number} samples of {engine}", 60)

    def report(self, recording, *options):
        """The report document and the rows of its first event."""
        report = json.loads(self.run_program(VPROF, "report", "-i", recording, "--json", *options)[0])
        return report, report["tables"][0]["rows"]

    def kernel_profile(self, recording, busiest):
        """The report, its samples in the kernel, those of them without a name, and that many of its busiest functions."""
        report, rows = self.report(recording)
        kernel = [row for row in rows if row["mode"] == "kernel"]
        samples = sum(row["samples"] for row in kernel)
        unknown = sum(row["samples"] for row in kernel if row["symbol"] == "[unknown]")
        top = [row["symbol"] for row in kernel[:busiest]]
        print(f"  {samples} samples in the kernel, {unknown} of them unknown; busiest: {', '.join(top)}", flush=True)
        return report, samples, unknown, top


def end_in_time():
    """ctest kills a test that takes too long, and what it has started would stay: fail a little earlier. A test
    that is ended by hand ends what it has started, too."""
    def late(*_):
        raise TimeoutError(f"not done {seconds} s after its start")

    def ended(number, _):
        ProgramTest.setUp = lambda test: test.fail("not begun: the tests were ended")
        raise InterruptedError(f"ended by signal {number}")

    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        signal.signal(number, ended)
    limit = int(os.environ.get("VPROF_TEST_SECONDS", 0))
    seconds = max(limit - 20, limit // 2)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)


def main():
    """Runs the tests of the calling script. One that was skipped makes the whole a visible skip."""
    end_in_time()
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful() and not emulator_fault.pass_again(result, STOCK_HOST):
        sys.exit(1)
    if result.skipped:
        print("; ".join(sorted({reason for _, reason in result.skipped})), flush=True)
        sys.exit(SKIPPED)
