#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Probes at random places of a running kernel's functions: each is set or refused, the kernel goes on, and its code is afterwards what it
was before, byte for byte. probes.py does it with the tiny kernel. By hand, with Debian's, on a host with a KVM that lacks nothing
(host_lacks):

    VPROF_PLACEMENTS=20000 VPROF_PLACEMENTS_TOGETHER=480 tests/linux/placements.py Debian.test_6_1 Debian.test_6_12

$VPROF_SEED repeats a run; the seed is printed."""
import collections
import functools
import os
import random
import re
import subprocess
import time

import harness
from engine import Client
from harness import VMM

BOOT_SECONDS = 500
# Probes of a client at the same time, of 512 that it may have.
TOGETHER = int(os.environ.get("VPROF_PLACEMENTS_TOGETHER", 48))
READ_BYTES = 4096
OFFSET_MAX = 400
GOES_ON_SECONDS = 120  # with the busiest functions stepped

# Rounds of system calls, of which the console has a line each. The shell reads the file by itself, a byte at a time; busybox's cat is
# another task.
ROUNDS = """i=0
while :; do
	i=$((i + 1))
	read -r line </proc/version
	busybox cat /proc/version /proc/meminfo >/dev/null
	echo "init: round $i"
done
"""
INIT = f"""#!/bin/sh
busybox mount -t proc proc /proc
{ROUNDS}"""

# What probe-add says of a place that is none, or is the kernel's own.
REFUSALS = (r"in the middle of an instruction|behind an INT3 of the guest's own|behind bytes that are no instruction|not in its code|"
            r"mapped as data|no code mapped there|too far behind the last symbol|which the guest's kernel changes itself|"
            r"has no function|is padding in front of|is no function of the kernel's image|has 4 breakpoints, and they are taken|"
            r"there is a probe|there is a breakpoint instruction at")

TROUBLE = r"BUG|Oops|WARNING|[Pp]anic|invalid opcode|segfault|stall"


class Fuzz:
    """A client of an engine with a guest that runs INIT."""

    def __init__(self, test, engine, kernel, console):
        self.test, self.engine, self.console = test, engine, console
        seed = int(os.environ.get("VPROF_SEED", random.randrange(1 << 32)))
        print(f"  VPROF_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.client = Client.connect(engine)
        test.addCleanup(self.client.close)
        out = subprocess.run([harness.BIN / "kernel_text", kernel, "functions"], stdout=subprocess.PIPE, text=True, check=False).stdout
        self.text = [int(word, 16) for word in re.search(r"^text (\w+) (\w+)$", out, re.MULTILINE).groups()]
        self.functions = sorted(set(re.findall(r"^(function \S+)$", out, re.MULTILINE)))
        # A place for what the machine's KVM can do.
        self.means = [means for means, feature in (("processor", "breakpoint"), ("patch", "patch"), ("any", "breakpoint"))
                      if not harness.host_lacks(feature)]
        self.outcomes = collections.Counter()

    def code(self):
        start, end = self.text
        return b"".join(bytes.fromhex(self.client.execute("mapping-read", address=hex(at), bytes=min(READ_BYTES, end - at))["bytes"])
                        for at in range(start, end, READ_BYTES))

    def rounds(self):
        return self.console.read_text(errors="replace").count("init: round")

    def place(self):
        function = self.random.choice(self.functions).replace(" ", ":")
        offset = self.random.choice((0, 0, self.random.randrange(1, 32), self.random.randrange(1, OFFSET_MAX)))
        means = self.random.choice(self.means)
        answer = self.client.ask("probe-add", probe=f"{function}+{offset}" if offset else function, breakpoint=means,
                                 stack=self.random.random() < 0.2)
        error = answer.get("error")
        if error:
            self.test.assertRegex(error["desc"], REFUSALS)
        self.outcomes[f"{means}: {'refused' if error else 'set'}"] += 1

    def go_on(self):
        """The guest does something with these probes, and something without."""
        probes = self.client.execute("query-probes")["probes"]
        where = [f"{probe['name']} by {probe['breakpoint']}" for probe in probes]
        before = self.rounds()
        if probes:
            self.client.execute("probe-record", on=True)
        harness.wait_until(lambda: self.rounds() > before, f"a round of the guest with {where}", GOES_ON_SECONDS)
        if probes:
            self.outcomes["events"] += self.client.execute("query-probes")["statistics"]["event"]
            self.client.execute("probe-record", on=False)
        for probe in probes:
            self.client.execute("probe-remove", id=probe["id"])

    def run(self, n):
        """At least `n` placements; what became of them."""
        said = len(self.console.read_text(errors="replace"))
        before = self.code()
        began = time.monotonic()
        for _ in range(0, n, TOGETHER):
            for _ in range(TOGETHER):
                self.place()
            self.go_on()
        after = self.code()
        changed = [hex(self.text[0] + i) for i in range(len(before)) if before[i] != after[i]]
        self.test.assertEqual(changed, [])
        self.test.assertNotRegex(self.console.read_text(errors="replace")[said:], TROUBLE)
        print(f"  {len(before)} bytes of code, in {time.monotonic() - began:.0f} s: {dict(self.outcomes)}", flush=True)
        return self.outcomes


class Debian(harness.ProgramTest):
    def check(self, series):
        harness.need_kvm()
        harness.need_feature("breakpoint", "patch")
        kernel = harness.script("kernel-debian.sh", series, "cloud")
        initrd, init, console = self.folder / "initrd", self.folder / "init", self.folder / "console"
        init.write_text(INIT)
        harness.script("initramfs.sh", initrd, init)
        vmm = self.start(VMM, "--kernel", kernel, "--initrd", initrd, "--vcpus", 2, "--console", console, "--control",
                         self.folder / "engine.sock")
        self.addCleanup(vmm.communicate)
        self.addCleanup(vmm.terminate)
        harness.wait_until(lambda: console.exists() and "init: round" in console.read_text(errors="replace"), "/init", BOOT_SECONDS)
        Fuzz(self, self.folder / "engine.sock", kernel, console).run(int(os.environ.get("VPROF_PLACEMENTS", 1000)))

    test_6_1 = functools.partialmethod(check, "6.1")
    test_6_12 = functools.partialmethod(check, "6.12")


if __name__ == "__main__":
    harness.main()
