#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guests of VMMs that have no monitor: ours, attached to as any other, one of the tests' own, and QEMU without QMP."""
import collections
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import time

import harness
import perf
import json_schemas
from harness import BIN, VMM, VPROF
from other_vmm import OtherVmm
from terminal import Terminal

EXPECTED = {"three_quarters": 0.75, "one_quarter": 0.25}
SIGMAS = 5  # false alarms: 6e-7
SAMPLES_MIN = 100
HUGEPAGES = pathlib.Path("/proc/sys/vm/nr_hugepages")
HUGEPAGES_WANTED = 32  # for the 64 MiB of other_vmm
SECOND = 10**9
HZ = 999  # unless another rate is given
PLUGGED = 3  # the vCPU that other_vmm plugs in


class Strangers(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need((BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        self.image = harness.guest("user_shares")
        self.recording = self.folder / "recording"
        self.said = self.folder / "said"

    def attach(self, pid, *options, seconds=2):
        return VPROF, "attach", "--pid", pid, "--duration", f"{seconds}s", "-o", self.recording, *options

    def attach_until(self, pid, *options):
        """A recording with enough samples; its seconds."""
        def record(seconds):
            self.run_program(*self.attach(pid, *options, seconds=seconds))
            return self.guest_samples()
        return harness.longer_until(lambda samples: len(samples) > SAMPLES_MIN, record, 2)[1]

    def guest_samples(self):
        return [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]

    def start_recording(self, pid, *options):
        """It goes on until it is ended. What it says is in a file."""
        with self.said.open("w") as said:
            vprof = self.start(*self.attach(pid, "--no-report", *options, seconds=3600), stderr=said)
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording", 60)
        return vprof

    def wait_for_words(self, words):
        harness.wait_until(lambda: re.search(words, self.said.read_text()), words, 60)

    def doctor(self, pid):
        probe = json_schemas.check(self, "doctor", json.loads(self.run_program(VPROF, "doctor", "--pid", pid, "--json")[0]))
        print(probe, flush=True)
        self.assertTrue(probe["memory"]["usable"])
        self.assertFalse(probe["monitor"]["usable"])
        self.assertEqual(probe["accelerator"], "kvm")
        return probe

    def check_shares(self, samples=None):
        if samples is None:
            samples = self.guest_samples()
        self.assertGreater(len(samples), SAMPLES_MIN)
        self.assertEqual({sample["vcpu"] for sample in samples}, {0})
        for symbol, share in EXPECTED.items():
            found = sum(sample["symbol"] == symbol for sample in samples)
            # A guest that its host holds up now and then has runs of samples in a function.
            allowed = SIGMAS * math.sqrt(len(samples) * share * (1 - share)) + 0.03 * len(samples)
            print(symbol, found, "of", len(samples), flush=True)
            self.assertLess(abs(found - share * len(samples)), allowed, symbol)

    def check_stat(self, pid):
        """KVM's own statistics, without KVM's file of them: vCPU 0 computes."""
        stat = json.loads(self.run_program(VPROF, "stat", "--pid", pid, "--duration", "1s", "--json")[0])
        print(stat["counters"], flush=True)
        self.assertGreater(stat["counters"]["exits"], 0)
        self.assertIn("halt_wait_ns", stat["counters"])

    def check_time(self, seconds):
        """The recording has an account of its own time."""
        spent = json.loads(self.run_program(VPROF, "report", "--json", self.recording)[0])["recording"]["time"]
        parts = spent["vcpus"][0]["parts-ns"]
        print(spent["untraced"], parts, flush=True)
        self.assertGreater(parts["wall"], 0.9e9 * seconds)
        self.assertGreater(parts["guest"], 0)
        if not spent["untraced"]:
            self.assertLess(abs(parts["residual"]), 0.01 * parts["wall"])
            self.assertEqual(sum(row["count"] for row in spent["kvm-exits"]), spent["total"]["exits"])

    def test_ours(self):
        vmm = self.start(VMM, "--kernel", self.image, "--control", "none", "--memory", "160M")
        self.addCleanup(vmm.kill)
        self.wait_for_line(vmm)
        probe = self.doctor(vmm.pid)
        self.assertEqual((probe["vcpus"], probe["memory-bytes"]), (1, 160 << 20))
        self.assertIn("no Linux kernel found in the guest", probe["kernel"]["why"])
        gives = {route["name"]: route["gives"] for route in probe["routes"]}
        self.assertTrue(gives["bpf"].startswith("no tasks as long as the guest's kernel is not known"), gives)
        self.attach_until(vmm.pid, "--kernel", self.image, "-g")
        vmm.terminate()
        self.finish(vmm, status=130)
        self.check_shares()

    def hugepages(self):
        """The option for memory in hugepages, which are reserved for the test. A stock host has them free."""
        number = int(HUGEPAGES.read_text())
        self.addCleanup(HUGEPAGES.write_text, str(number))
        HUGEPAGES.write_text(str(number + HUGEPAGES_WANTED))
        reserved = int(HUGEPAGES.read_text()) == number + HUGEPAGES_WANTED
        self.assertTrue(reserved or not harness.STOCK_HOST.exists(), "a stock host has no memory for hugepages")
        print("hugepages" if reserved else "this host has no memory for hugepages: without them", flush=True)
        return ["--hugepages"] * reserved

    def test_jailed(self):
        """Names of threads, of which one is a lie, and copies of descriptors do not matter, nor do another root, user and PID namespace,
        nor memory in hugepages."""
        root = self.folder / "root"
        root.mkdir()
        vmm = OtherVmm(self, self.image, root, options=self.hugepages())
        vmm.say("go")
        harness.wait_for_work(vmm.pid)
        probe = self.doctor(vmm.pid)
        self.assertEqual((probe["name"], probe["vcpus"], probe["memory-bytes"]), (f"other_vmm-{vmm.pid}", 6, 64 << 20))
        seconds = self.attach_until(vmm.pid, "--kernel", self.image, "-g")
        self.check_stat(vmm.pid)
        vmm.end()
        self.check_shares()
        self.check_time(seconds)

    def test_moved(self):
        """The recording begins before the vCPUs run, and memory is moved then: both are followed. The end of the VMM is the recording's."""
        vmm = OtherVmm(self, self.image)
        vprof = self.start_recording(vmm.pid, "--kernel", self.image, "-v")
        vmm.say("move")
        vmm.say("go")
        self.wait_for_words("has booted again; symbols are taken from it from now on")
        self.wait_for_samples(f"other_vmm-{vmm.pid}", 3 * SAMPLES_MIN)
        vmm.end()
        self.finish(vprof)
        self.wait_for_words("the VMM has ended")
        self.check_shares([sample for sample in self.guest_samples() if sample["symbol"] in EXPECTED])

    def test_plugged(self):
        """A vCPU that is plugged in is followed, with what it computes in real mode."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        vprof = self.start_recording(vmm.pid, "--kernel", self.image, "-g")
        begun = time.monotonic_ns()
        self.wait_for_samples(f"other_vmm-{vmm.pid}", 2 * SAMPLES_MIN)
        unplugged = time.monotonic_ns() - begun
        vmm.say("plug")
        self.wait_for_samples(f"other_vmm-{vmm.pid}", 2 * SAMPLES_MIN, vcpu=PLUGGED)
        vprof.send_signal(signal.SIGINT)
        self.finish(vprof)
        samples = self.guest_samples()
        plugged = [sample for sample in samples if sample["vcpu"] == PLUGGED]
        print("of the vCPU that was plugged in", collections.Counter((sample["mode"], sample["symbol"]) for sample in plugged), flush=True)
        self.assertGreater(len(plugged), SAMPLES_MIN)
        self.assertEqual({(sample["mode"], sample["symbol"]) for sample in plugged}, {("kernel", "real mode")})
        self.check_shares([sample for sample in samples if sample["vcpu"] != PLUGGED])
        vcpus = json.loads(self.run_program(VPROF, "report", "--json", self.recording)[0])["recording"]["time"]["vcpus"]
        whole, parts = vcpus[0]["parts-ns"]["wall"], vcpus[PLUGGED]["parts-ns"]
        print(whole, parts, flush=True)
        self.assertGreater(parts["offline"], 0.9 * unplugged)
        self.assertGreater(parts["guest"], 0.8 * len(plugged) * SECOND / HZ)
        self.assertLess(abs(parts["wall"] - whole), 0.1 * whole)
        self.assertLess(abs(parts["residual"]), 0.01 * parts["wall"])

    def test_paused(self):
        """A pause that only the VMM knows of is a gap in the recording. Memory that it moves meanwhile is found again; and that it is
        killed is the end."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        name = f"other_vmm-{vmm.pid}"
        vprof = self.start_recording(vmm.pid, "--kernel", self.image, "-g")
        begun = time.monotonic()
        self.wait_for_samples(name, 2 * SAMPLES_MIN)
        vmm.say("pause")
        paused = time.monotonic_ns()
        vmm.say("move")
        self.wait_for_words(f"{name} is paused; the recording goes on")
        resumed = time.monotonic_ns()
        vmm.say("continue")
        self.wait_for_words(rf"{name} runs again, after [1-9]\d* s")
        again = time.monotonic_ns()
        self.wait_for_samples(name, 3 * SAMPLES_MIN)
        seconds = time.monotonic() - begun
        vmm.process.kill()
        self.finish(vprof)
        self.wait_for_words("the VMM has ended")
        samples = self.guest_samples()
        parts = [[sample for sample in samples if low <= sample["time-ns"] < high] for low, high in (
            (0, paused), (paused + SECOND // 10, resumed), (again, math.inf))]
        ends = self.report(self.recording, "--time", f"{again / SECOND:.9f},")[0]["recording"]["chain-ends"]["user"]
        print("before, during and after the pause", [len(part) for part in parts], ends, flush=True)
        self.assertGreater(len(parts[0]), SAMPLES_MIN)
        self.assertEqual(len(parts[1]), 0)
        self.assertGreater(len(parts[2]), SAMPLES_MIN)
        # The stacks are read where they are now.
        self.assertGreater(sum(ends.values()), SAMPLES_MIN)
        self.assertLess(ends["unreadable"], 0.3 * sum(ends.values()))
        self.check_shares(parts[0] + parts[2])
        self.check_time(seconds)

    def test_closed(self):
        """The end of the virtual machine is the recording's, if its VMM lives on."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        vprof = self.start_recording(vmm.pid, "--kernel", self.image)
        self.wait_for_samples(f"other_vmm-{vmm.pid}", 2 * SAMPLES_MIN)
        vmm.say("pause")
        vmm.say("close")
        self.finish(vprof)
        self.wait_for_words("the VMM has ended the guest, and runs on without it")
        self.assertIsNone(vmm.process.poll())
        self.check_shares()

    def test_all(self):
        """Two guests at once, where no others are, so not beside other tests."""
        vmms = [OtherVmm(self, self.image) for _ in range(2)]
        for vmm in vmms:
            vmm.say("go")
        names = [f"other_vmm-{vmm.pid}" for vmm in vmms]
        self.check_top(*names)
        folder = self.folder / "all"

        def record(seconds):
            out, _ = self.run_program(VPROF, "attach", "--all", "--duration", f"{seconds}s", "-o", folder)
            self.assertEqual({file.name for file in folder.iterdir()}, {f"{name}.data" for name in names})
            return out
        out, _ = harness.longer_until(lambda _: all(self.modes(folder, name)["user"] > SAMPLES_MIN for name in names), record, 2)
        for vmm in vmms:
            vmm.end()
        self.check_all(names, folder, out)

    @staticmethod
    def modes(folder, name):
        return collections.Counter(sample["mode"] for sample in perf.vprof_samples(folder / f"{name}.data"))

    def check_all(self, names, folder, out):
        """A recording of each."""
        for name in names:
            self.assertIn(f"==> {name} <==", out)
            modes = self.modes(folder, name)
            print(name, modes, flush=True)
            self.assertEqual(modes["kernel"], 0)

    def check_top(self, first, second):
        """Of all guests, and into the selected one and back."""
        terminal = Terminal(self)
        terminal.open(f"'{VPROF}' top -d 1; echo left $?; read -r wait")
        for name in first, second:
            terminal.shows(rf"^{name} +other_vmm +\d+ +2 ")
        terminal.press("Down", "Enter")
        terminal.shows(rf"^vprof top: ({first}|{second}), 6 vCPUs")
        terminal.shows(r"^ *\d+\.\d\d% +\d+ +user ")
        terminal.press("q")
        terminal.shows(rf"^{second} +other_vmm ")
        terminal.press("q")
        terminal.shows("^left 0$")

    def test_qemu(self):
        """A QEMU without a monitor, and without names for its threads."""
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        qemu = self.start("qemu-system-x86_64", "-accel", "kvm", "-m", "128", "-display", "none", "-nodefaults",
                          "-no-user-config", "-smp", "2", "-kernel", self.image, stdin=subprocess.DEVNULL)
        self.addCleanup(qemu.wait)
        self.addCleanup(qemu.kill)
        # By then its firmware has started the image.
        harness.wait_until(lambda: "firmware" not in json.loads(self.run_program(
            VPROF, "doctor", "--pid", qemu.pid, "--json", status=None)[0] or '{"kernel": {"why": "firmware"}}')["kernel"]["why"],
            "the image", 60)
        harness.wait_for_work(qemu.pid)
        names = [path.read_text() for path in pathlib.Path(f"/proc/{qemu.pid}/task").glob("*/comm")]
        self.assertNotRegex(" ".join(names), "/KVM")
        self.assertEqual(self.doctor(qemu.pid)["vcpus"], 2)
        self.attach_until(qemu.pid, "--kernel", self.image, "-g")
        qemu.kill()
        self.check_shares()

    def test_refused(self):
        """What is no VMM, and what may not be looked into."""
        sleeper = self.start("sleep", "60")
        self.refused(*self.attach(sleeper.pid), message="is no VMM: it has no vCPU of KVM")
        sleeper.kill()
        sleeper.communicate()
        self.refused(*self.attach(sleeper.pid), message=f"there is no process {sleeper.pid} here")
        without = "setpriv", "--bounding-set=-bpf,-sys_admin"
        vmm = OtherVmm(self, self.image)
        self.refused(*without, *self.attach(vmm.pid), message="cannot tell which threads of process")
        vmm.say("go")
        self.refused(*without, *self.attach(vmm.pid, "--route", "bpf"), message="lets us load no BPF program")


if __name__ == "__main__":
    harness.main()
