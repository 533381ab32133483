#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guests of VMMs that have no monitor: ours, attached to as any other, one of the tests' own, and QEMU without QMP."""
import collections
import json
import math
import os
import pathlib
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

    def attach(self, pid, *options, seconds=2):
        return VPROF, "attach", "--pid", pid, "--duration", f"{seconds}s", "-o", self.recording, *options

    def doctor(self, pid):
        probe = json_schemas.check(self, "doctor", json.loads(self.run_program(VPROF, "doctor", "--pid", pid, "--json")[0]))
        print(probe, flush=True)
        self.assertTrue(probe["memory"]["usable"])
        self.assertFalse(probe["monitor"]["usable"])
        self.assertEqual(probe["accelerator"], "kvm")
        return probe

    def check_shares(self, samples=None):
        if samples is None:
            samples = [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]
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
        vmm = self.start(VMM, "--kernel", self.image, "--control", "none", "--memory", "160M",
                         stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(vmm.kill)
        time.sleep(1)
        probe = self.doctor(vmm.pid)
        self.assertEqual((probe["vcpus"], probe["memory-bytes"]), (1, 160 << 20))
        self.assertIn("no Linux kernel found in the guest", probe["kernel"]["why"])
        gives = {route["name"]: route["gives"] for route in probe["routes"]}
        self.assertTrue(gives["bpf"].startswith("no tasks as long as the guest's kernel is not known"), gives)
        self.run_program(*self.attach(vmm.pid, "--kernel", self.image, "-g"))
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
        time.sleep(1)
        probe = self.doctor(vmm.pid)
        self.assertEqual((probe["name"], probe["vcpus"], probe["memory-bytes"]), (f"other_vmm-{vmm.pid}", 6, 64 << 20))
        self.run_program(*self.attach(vmm.pid, "--kernel", self.image, "-g"))
        self.check_stat(vmm.pid)
        vmm.end()
        self.check_shares()
        self.check_time(seconds=2)

    def test_moved(self):
        """The recording begins before the vCPUs run, and memory is moved then: both are followed. The end of the VMM is the recording's."""
        vmm = OtherVmm(self, self.image)
        vprof = self.start(*self.attach(vmm.pid, "--kernel", self.image, "--no-report", "-v", seconds=60))
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording", 60)
        vmm.say("move")
        vmm.say("go")
        time.sleep(3)
        vmm.end()
        _, err = self.finish(vprof)
        self.assertIn("the VMM has ended", err)
        # Names are known from the moment on when the kernel was found.
        self.check_shares([sample for sample in perf.vprof_samples(self.recording) if sample["symbol"] in EXPECTED])

    def test_plugged(self):
        """A vCPU that is plugged in is followed, with what it computes in real mode."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        vprof = self.start(*self.attach(vmm.pid, "--kernel", self.image, "--no-report", "-g", seconds=5))
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording", 60)
        time.sleep(2)
        vmm.say("plug")
        self.finish(vprof)
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]
        plugged = [sample for sample in samples if sample["vcpu"] == PLUGGED]
        print("of the vCPU that was plugged in", collections.Counter((sample["mode"], sample["symbol"]) for sample in plugged), flush=True)
        self.assertGreater(len(plugged), SAMPLES_MIN)
        self.assertEqual({(sample["mode"], sample["symbol"]) for sample in plugged}, {("kernel", "real mode")})
        self.check_shares([sample for sample in samples if sample["vcpu"] != PLUGGED])
        vcpus = json.loads(self.run_program(VPROF, "report", "--json", self.recording)[0])["recording"]["time"]["vcpus"]
        whole, parts = vcpus[0]["parts-ns"]["wall"], vcpus[PLUGGED]["parts-ns"]
        print(whole, parts, flush=True)
        self.assertGreater(parts["offline"], 1e9)
        self.assertGreater(parts["guest"], 0.8 * len(plugged) * SECOND / HZ)
        self.assertLess(abs(parts["wall"] - whole), 0.1 * whole)
        self.assertLess(abs(parts["residual"]), 0.01 * parts["wall"])

    def test_paused(self):
        """A pause that only the VMM knows of is a gap in the recording. Memory that it moves meanwhile is found again; and that it is
        killed is the end."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        vprof = self.start(*self.attach(vmm.pid, "--kernel", self.image, "--no-report", "-g", seconds=120))
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording", 60)
        time.sleep(1)
        vmm.say("pause")
        paused = time.monotonic_ns()
        vmm.say("move")
        time.sleep(3)
        resumed = time.monotonic_ns()
        vmm.say("continue")
        time.sleep(4)
        vmm.process.kill()
        _, err = self.finish(vprof)
        self.assertIn("the VMM has ended", err)
        self.assertRegex(err, rf"other_vmm-{vmm.pid} is paused; the recording goes on\n(.*\n)*.*other_vmm-{vmm.pid} runs again, after [1-9] s")
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]
        parts = [[sample for sample in samples if low <= sample["time-ns"] < high] for low, high in (
            (0, paused), (paused + SECOND // 10, resumed), (resumed + 2 * SECOND, math.inf))]
        ends = json.loads(self.run_program(VPROF, "report", "--json", self.recording)[0])["recording"]["chain-ends"]["user"]
        print("before, during and after the pause", [len(part) for part in parts], ends, flush=True)
        self.assertGreater(len(parts[0]), SAMPLES_MIN)
        self.assertEqual(len(parts[1]), 0)
        self.assertGreater(len(parts[2]), SAMPLES_MIN)
        # The stacks are read where they are now.
        self.assertGreater(sum(ends.values()), SAMPLES_MIN)
        self.assertLess(ends["unreadable"], 0.3 * sum(ends.values()))
        self.check_shares(parts[0] + parts[2])
        self.check_time(seconds=6)

    def test_closed(self):
        """The end of the virtual machine is the recording's, if its VMM lives on."""
        vmm = OtherVmm(self, self.image)
        vmm.say("go")
        vprof = self.start(*self.attach(vmm.pid, "--kernel", self.image, "--no-report", seconds=60))
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording", 60)
        time.sleep(1)
        vmm.say("pause")
        vmm.say("close")
        _, err = self.finish(vprof)
        self.assertIn("the VMM has ended the guest, and runs on without it", err)
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
        out, _ = self.run_program(VPROF, "attach", "--all", "--duration", "2s", "-o", folder)
        for vmm in vmms:
            vmm.end()
        self.check_all(names, folder, out)

    def check_all(self, names, folder, out):
        """A recording of each."""
        self.assertEqual({file.name for file in folder.iterdir()}, {f"{name}.data" for name in names})
        for name in names:
            self.assertIn(f"==> {name} <==", out)
            modes = collections.Counter(sample["mode"] for sample in perf.vprof_samples(folder / f"{name}.data"))
            print(name, modes, flush=True)
            self.assertGreater(modes["user"], SAMPLES_MIN)
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
        time.sleep(2)
        names = [path.read_text() for path in pathlib.Path(f"/proc/{qemu.pid}/task").glob("*/comm")]
        self.assertNotRegex(" ".join(names), "/KVM")
        self.assertEqual(self.doctor(qemu.pid)["vcpus"], 2)
        self.run_program(*self.attach(qemu.pid, "--kernel", self.image, "-g"))
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
