#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counters limited to tasks of the tiny kernel while it runs: by pid, by name, and with what those have made."""
import json

import harness
import linux_guest
from harness import VMM, VPROF

BOOT_SECONDS = 500
SECONDS = 1

# Process 1 and what it starts share the processor with a shell that never waits, and is in a cgroup of its own.
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mknod /dev/null c 1 3
busybox mkdir /cgroups
busybox mount -t cgroup2 cgroup2 /cgroups
busybox mkdir /cgroups/busy
/bin/sh -c 'echo 0 >/cgroups/busy/cgroup.procs; while :; do :; done' &
echo "init: ready"
while :; do
	read -r line </proc/version
	busybox cat /proc/version >/dev/null
done
"""


class Counters(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def boot(self):
        kernel = harness.script("kernel-tiny.sh")
        initrd, init, console = self.folder / "initrd", self.folder / "init", self.folder / "console"
        self.engine = self.folder / "engine.sock"
        init.write_text(INIT)
        harness.script("initramfs.sh", initrd, init)
        vmm = self.start(VMM, "--kernel", kernel, "--initrd", initrd, "--memory", linux_guest.TINY_MEMORY, "--console", console, "--control", self.engine)
        self.addCleanup(vmm.communicate)
        self.addCleanup(vmm.terminate)
        harness.wait_until(lambda: console.exists() and "init: ready" in console.read_text(errors="replace"), "/init",
                           BOOT_SECONDS)

    def vcpu_ns(self):
        return json.loads(self.run_program(VPROF, "mpstat", "--json", self.engine)[0])["total"]["clocks-ns"]["cpu"]

    def count(self, *tasks):
        """What was counted, and its share of what the vCPU's thread ran meanwhile."""
        before = self.vcpu_ns()
        out, _ = self.run_program(VPROF, "counter", "count", self.engine, "--duration", SECONDS, "--json", *tasks)
        counted, = json.loads(out)
        share = counted["value"] / (self.vcpu_ns() - before)
        print(f"  {tasks}: {counted['value']} ns, {share:.2f} of the time", flush=True)
        return counted, share

    def samples(self, *tasks, least=1):
        """Of at least ten samples and `least` tasks, for which a guest that gets little of its processor needs longer."""
        recording = self.folder / "recording"
        for seconds in SECONDS, 4 * SECONDS, 16 * SECONDS:
            self.run_program(VPROF, "counter", "record", self.engine, "--duration", seconds, "-o", recording, "--no-report", *tasks)
            out, _ = self.run_program(VPROF, "script", "-i", recording, "--json")
            samples = [json.loads(line) for line in out.splitlines()]
            if len(samples) > 10 and len({sample["pid"] for sample in samples}) >= least:
                break
        self.assertGreater(len(samples), 10)
        return {(sample["pid"], sample["comm"], sample["cgroup"]) for sample in samples}

    def check_exact(self):
        _, one = self.count("--pid", 1)
        _, shell = self.count("--comm", "s?")
        _, family = self.count("--pid", 1, "--descendants")
        # The shell is one of process 1's children, and neither of the two has the processor for itself.
        self.assertLess(0, min(one, shell))
        self.assertLess(max(one, shell), min(family, 0.9))
        self.assertLessEqual(family, 1)
        self.assertEqual(self.count("--comm", "no-such*")[0]["value"], 0)
        self.assertEqual(self.count("--pid", 4_000_000)[0]["value"], 0)

    def check_estimate(self):
        counted, share = self.count("--comm", "sh", "--estimate")
        self.assertLess(0, share)
        self.assertLess(share, 0.9)
        self.assertGreater(counted["modes"]["user"], 0)

    def test_tasks(self):
        self.boot()
        self.check_exact()
        self.check_estimate()
        self.assertEqual({(pid, cgroup) for pid, _, cgroup in self.samples("--pid", 1)}, {(1, "/")})
        shells = self.samples("--comm", "sh")
        self.assertEqual({(comm, cgroup) for _, comm, cgroup in shells}, {("sh", "/busy")})
        pid, = {pid for pid, _, _ in shells}
        self.assertEqual(self.samples("--pid", pid), {(pid, "sh", "/busy")})
        self.assertGreater(len({pid for pid, _, _ in self.samples("--pid", 1, "--descendants", least=3)}), 2)


if __name__ == "__main__":
    harness.main()
