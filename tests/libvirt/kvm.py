#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A KVM domain with known code: its shares by each route, its chains, and what happens to it while it is attached."""
import json
import math
import os
import pathlib
import re
import signal

import harness
import libvirt
import perf
from harness import VPROF

EXPECTED = {"three_quarters": 0.75, "one_quarter": 0.25}
HZ = 198  # at most 200, by the monitor
TAINT = "custom monitor"  # libvirt's word for a domain after commands to its QEMU
SIGMAS = 5  # false alarms: 6e-7


class Kvm(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.image = harness.guest("user_shares")
        self.recording = self.folder / "recording"
        self.said = self.folder / "said"

    def create(self, **options):
        """vCPU 1 waits for its start, idle."""
        console = self.libvirt.create("shares", self.image, accelerator="kvm", vcpus=3, vcpus_now=2, memory=128, **options)
        self.wait_console(console, "one_quarter", 60)

    def record(self, *options):
        return self.run_until(100, *self.attach("shares", "--kernel", self.image, "-F", HZ, "-o", self.recording, *options))

    def run_until(self, least, *attach):
        """A command of attach, until its recording has more samples of the guest than so many. What it printed."""
        def record(seconds):
            return self.run_program(*attach, "--duration", f"{seconds}s", timeout=60 + 2 * seconds)
        return harness.longer_until(lambda _: len(self.guest_samples()) > least, record, 1)[0]

    def guest_samples(self):
        return [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm"]

    def check_shares(self, least=50):
        samples = self.guest_samples()
        self.assertGreater(len(samples), least)
        self.assertEqual({sample["vcpu"] for sample in samples}, {0}, "vCPU 1 does nothing")
        for symbol, share in EXPECTED.items():
            found = sum(sample["symbol"] == symbol for sample in samples)
            allowed = SIGMAS * math.sqrt(len(samples) * share * (1 - share)) + 0.01 * len(samples)
            print(symbol, found, "of", len(samples), flush=True)
            self.assertLess(abs(found - share * len(samples)), allowed, symbol)

    def check_chains(self):
        """The guest stood still while its stack was read."""
        folded = self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0]
        weights = {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in folded.splitlines())}
        known = sum(weight for stack, weight in weights.items() if re.fullmatch(
            "guest;user_main(;three_quarters|;one_quarter)?(;exit:vmm)?", stack))
        print("chains", weights, flush=True)
        self.assertGreater(known, 0.99 * sum(weights.values()))

    def vprof(self, command, *options):
        """A command beside attach, on the domain."""
        return self.run_program(VPROF, command, "--connect", self.libvirt.uri, "shares", *options, timeout=120)[0]

    def check_doctor(self):
        """Each route with a verdict, and the kernel: not Linux, and no image of it given."""
        text = self.vprof("doctor")
        self.assertRegex(text, r"ok +guest +shares, 3 vCPUs, accelerator kvm, process \d+ of user root\n")
        self.assertRegex(text, r"ok +monitor +")
        self.assertRegex(text, r"ok +memory +")
        self.assertRegex(text, r"note +kernel +no Linux kernel found in the guest")
        self.assertRegex(text, r"ok +route +perf: ")
        self.assertRegex(text, r"ok +route +monitor: ")
        self.assertTrue(text.endswith("This guest can be profiled.\n"), text)
        probe = json.loads(self.vprof("doctor", "--json"))
        self.assertTrue(probe["monitor"]["usable"] and probe["memory"]["usable"])

    def check_clocks(self):
        """vCPU 0 computes all the time, vCPU 1 waits for its start: nothing of it ran."""
        stat = json.loads(self.vprof("stat", "--duration", "2s", "--json"))
        busy, idle, unplugged = stat["vcpus"]
        print("stat:", busy, stat["counters"], flush=True)
        self.assertEqual(unplugged["parts-ns"]["offline"], unplugged["parts-ns"]["wall"])
        for vcpu in (busy, idle):
            parts = vcpu["parts-ns"]
            modes = {part: ns for part, ns in parts.items() if part.startswith("guest-")}
            self.assertEqual(sum(modes.values()), parts["guest"])
            self.assertEqual(sum(parts.values()) - parts["wall"] - parts["guest"], parts["wall"])
            self.assertGreater(parts["wall"], 1.5e9)
        clocks = busy["clocks-ns"]
        self.assertGreater(clocks["cpu"] + clocks["runnable"], 0.9 * clocks["wall"])
        self.assertLess(idle["clocks-ns"]["cpu"], 0.1 * clocks["wall"])
        self.assertGreater(stat["counters"]["exits"], 0)
        # The same thread's time, by perf and by the scheduler.
        self.assertAlmostEqual(stat["counters"]["task-clock"] / (clocks["cpu"] + idle["clocks-ns"]["cpu"]), 1, delta=0.1)
        text = self.vprof("mpstat", "1", "1")
        self.assertRegex(text, r"VCPU +SECONDS +%GUEST")
        self.assertRegex(text, r"\n +0 +1\.\d+ +\d+")

    def assert_untainted(self):
        self.assertNotRegex(self.libvirt.virsh("dominfo", "shares").stdout, TAINT)

    def check_no_monitor(self):
        """Without the monitor and without BPF, samples have addresses. With BPF, KVM says where everything is."""
        without = ("setpriv", "--bounding-set=-bpf,-sys_admin")
        attach = self.attach("shares", "--no-monitor", "-F", HZ, "-o", self.recording)
        err = self.run_until(50, *without, *attach)[1]
        self.assertRegex(err, "neither KVM nor a monitor says where its memory is: .*; --no-monitor was given")
        self.run_until(50, *attach, "--kernel", self.image)
        self.check_shares()
        text = self.vprof("doctor", "--no-monitor")
        self.assertRegex(text, r"note +monitor +--no-monitor was given\n")
        self.assertRegex(text, r"note +route +monitor: --no-monitor was given")

    def test_routes(self):
        # Of a processor that was never started, QEMU's monitor does not say that it is halted.
        self.create(seabios=True)
        self.check_no_monitor()
        self.check_doctor()
        self.check_clocks()
        _, err = self.record("-g")
        self.assertIn("route bpf", err)
        self.check_shares()
        self.check_chains()
        self.record("--route", "perf")
        self.check_shares()
        self.assert_untainted()
        self.record("--route", "monitor", "-g")
        self.assertRegex(self.libvirt.virsh("dominfo", "shares").stdout, TAINT)
        self.check_shares()
        tree = self.run_program(VPROF, "report", "-g", "-i", self.recording)[0]
        self.assertRegex(tree, r"(?s)user_main\n.*three_quarters\n")
        self.refused(*self.attach("shares", "--route", "perf", "-g", "-o", self.recording),
                     status=2, message="route perf, which sees no registers")
        self.refused(*self.attach("shares", "--route", "pigeon", "-o", self.recording), message="no such route, but bpf")
        self.refused(*self.attach("shares", "--route", "monitor", "-F", "999", "-o", self.recording),
                     status=2, message="its maximum is 200 Hz")
        self.refused(*self.attach("sharse", "-o", self.recording), message="cannot find domain sharse")
        self.check_no_bpf()
        self.assertEqual(self.libvirt.state("shares"), "running")

    def doctor_as(self, *setpriv, status=0, domain=()):
        """What a user with fewer rights is told."""
        return self.run_program("setpriv", *setpriv, VPROF, "doctor", *domain, status=status)

    def check_permissions(self, pid):
        """Each thing that is not allowed is said by itself, with what to do."""
        nobody = "--reuid=65534", "--regid=65534", "--clear-groups"
        domain = "--connect", self.libvirt.uri, "shares"
        _, err = self.doctor_as(*nobody, domain=domain, status=1)
        self.assertRegex(err, r"cannot connect to .*: Permission denied|cannot connect to .*Failed to connect socket")
        self.assertIn("are you in the group libvirt?", err)
        out, _ = self.doctor_as(*nobody, domain=("--pid", pid), status=1)
        self.assertRegex(out, r"note +route +perf: not permitted with kernel.perf_event_paranoid=.*; run vprof as root, "
                              r"with CAP_PERFMON")
        self.assertRegex(out, r"note +monitor +there is none; give --qmp SOCKET")
        self.assertIn("MISSING  route", out)
        out, _ = self.doctor_as("--bounding-set=-sys_ptrace,-perfmon,-sys_admin", domain=domain)
        self.assertRegex(out, r"note +memory +cannot read the memory of the VMM .*Permission denied; run vprof as its user")
        self.assertRegex(out, r"note +route +perf: not permitted with kernel.perf_event_paranoid=")
        self.assertRegex(out, r"ok +route +monitor: ")

    def check_several(self):
        """Two names, a recording each; one that is wrong does not stop the other."""
        folder = self.folder / "several"
        out, err = self.run_program(*self.attach("shares", "sharse", "--duration", "1s", "-o", folder), status=1)
        self.assertIn("cannot find domain sharse", err)
        self.assertRegex(out, r"==> shares <==\n(.*\n)*# +samples")
        self.assertEqual([file.name for file in folder.iterdir()], ["shares.data"])
        out, _ = self.run_program(*self.attach("--all", "-F", HZ, "--duration", "1s", "-o", folder))
        self.assertIn("==> shares <==", out)
        self.assertGreater(len(perf.vprof_samples(folder / "shares.data")), 0)

    def check_no_bpf(self):
        """Without the right to load BPF programs it is said, and the next best route taken."""
        without = ("setpriv", "--bounding-set=-bpf,-sys_admin")
        self.refused(*without, *self.attach("shares", "--route", "bpf", "-o", self.recording),
                     message="lets us load no BPF program .Operation not permitted.; run vprof as root, or with CAP_BPF")
        _, err = self.run_program(*without, *self.attach("shares", "--duration", "1s", "--kernel", self.image, "-o",
                                                         self.recording))
        self.assertIn("route perf", err)
        self.assertRegex(err, r"vprof: perf is not the best route; bpf: .*lets us load no BPF program")
        listing = self.run_program(*without, *self.attach("--list"))[0]
        self.assertRegex(listing, "shares .* perf, monitor\n +not bpf: the kernel lets us load no BPF program")
        self.assertRegex(self.run_program(*self.attach("--list"))[0], "shares .* bpf, perf, monitor\n")

    def test_without_libvirt(self):
        """By process id alone there is no monitor: KVM says where the vCPUs and the memory are."""
        self.create()
        _, err = self.run_until(100, VPROF, "attach", "--pid", self.libvirt.pid("shares"), "-g", "--kernel", self.image,
                                "-F", HZ, "-o", self.recording)
        self.assertIn("route bpf", err)
        self.check_shares()
        self.check_chains()
        self.check_permissions(self.libvirt.pid("shares"))
        self.check_several()

    def wait_for_words(self, words):
        harness.wait_until(lambda: re.search(words, self.said.read_text()), words, 60)

    def engine_of(self, vprof):
        return harness.child(vprof.pid, "vprof-attach")

    def check_privileges(self, engine):
        """No capability is left, in no thread, and root's user id is not."""
        for thread in pathlib.Path(f"/proc/{engine}/task").iterdir():
            self.assertRegex((thread / "status").read_text(), r"Uid:\t(\d{9,})\t\1\t\1\t\1\n")
            sets = dict(re.findall(r"^(Cap\w+):\s+(\w+)$", (thread / "status").read_text(), re.M))
            for name in "CapEff", "CapPrm", "CapInh", "CapBnd":
                self.assertEqual(int(sets[name], 16), 0, (name, sets))

    def check_status(self):
        """The engine says by which route it samples, and which there are."""
        status = json.loads(self.run_program(VPROF, "ctl", "shares", "query-status")[0])
        self.assertEqual((status["state"], status["route"]), ("running", "perf"))
        host = json.loads(self.run_program(VPROF, "ctl", "shares", "query-host")[0])
        self.assertEqual({route["name"]: route["usable"] for route in host["routes"]}.get("monitor"), True)

    def test_life(self):
        """Paused, resumed, a vCPU plugged in, libvirtd gone, saved: the recording survives it all."""
        self.create()
        with self.said.open("w") as said:
            vprof = self.start(*self.attach("shares", "--kernel", self.image, "--route", "perf", "--no-report", "-o",
                                            self.recording), stderr=said)
        self.addCleanup(vprof.kill)
        self.wait_for_samples("shares", 100)
        self.check_status()
        self.check_privileges(self.engine_of(vprof))
        self.libvirt.virsh("suspend", "shares")
        self.wait_for_words("shares is paused")
        self.libvirt.virsh("resume", "shares")
        self.libvirt.virsh("setvcpus", "shares", 3, "--live")
        self.wait_for_samples("shares", 50)
        self.libvirt.end_daemon()
        self.wait_for_samples("shares", 50)
        self.libvirt.start()
        self.assertEqual(self.libvirt.state("shares"), "running")
        self.wait_for_samples("shares", 100)
        self.assertIsNone(vprof.poll())
        saved = self.folder / "saved"
        self.libvirt.virsh("save", "shares", saved)
        self.finish(vprof)
        self.wait_for_words("the VMM has ended|the domain was saved to a file; attach again once it is restored")
        self.check_shares()
        self.libvirt.virsh("restore", saved)
        self.record("--route", "perf")
        self.check_shares()

    def test_engine_killed(self):
        """The domain never notices, and what was recorded is kept."""
        self.create()
        vprof = self.start(*self.attach("shares", "--kernel", self.image, "--no-report", "-o", self.recording))
        self.addCleanup(vprof.kill)
        self.wait_for_samples("shares", 100)
        os.kill(self.engine_of(vprof), signal.SIGKILL)
        _, err = self.finish(vprof, status=1)
        self.assertIn("the engine was killed by signal 9", err)
        self.assertEqual(self.libvirt.state("shares"), "running")
        self.check_shares()
        self.record("--route", "perf")


if __name__ == "__main__":
    harness.main()
