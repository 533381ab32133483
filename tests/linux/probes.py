#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Probes of the tiny kernel while it runs: system calls by name, functions with their callers, and the tasks of both. With one vCPU, what
else an engine shows of this kernel, for which it would have to be booted again."""
import json
import re
import subprocess

import harness
import linux_guest
import placements
from counters import BESIDE, CounterChecks
from harness import VMM, VPROF
from lies import LieChecks

BOOT_SECONDS = 500

PLACEMENTS = 144  # in a few seconds
ROUNDS = 1500  # events, some rounds of the guest's loop


# By lines from the console, it has its processor for itself, and panics.
INIT_OF_ONE = f"""#!/bin/sh
busybox mount -t proc proc /proc
{BESIDE}trap 'exit 1' TERM
(read -r line && kill $busy && echo "init: alone" && read -r line && kill 1) </dev/console &
{placements.ROUNDS}"""


class Probes(harness.ProgramTest, CounterChecks, LieChecks):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def boot(self, vcpus, init):
        self.kernel = harness.script("kernel-tiny.sh")
        initrd, script, self.console = self.folder / "initrd", self.folder / "init", self.folder / "console"
        self.engine = self.folder / "engine.sock"
        script.write_text(init)
        harness.script("initramfs.sh", initrd, script)
        with open(self.console, "wb") as console:
            self.vmm = self.start(VMM, "--kernel", self.kernel, "--initrd", initrd, "--vcpus", vcpus, "--memory", linux_guest.TINY_MEMORY,
                                  "--on-panic", "keep", "--control", self.engine, stdin=subprocess.PIPE, stdout=console)
        self.addCleanup(self.end)
        self.wait_for_console("init: round", BOOT_SECONDS)

    def end(self):
        if self.vmm.returncode is None:
            self.vmm.terminate()
            self.vmm.communicate()

    def wait_for_console(self, text, seconds=60):
        harness.wait_until(lambda: text in self.console.read_text(errors="replace"), f'"{text}" on the console', seconds)

    def tell_init(self, answer):
        """A line; what it does then is seen on the console."""
        self.vmm.stdin.write("\n")
        self.vmm.stdin.flush()
        self.wait_for_console(answer)

    def trace(self, *options):
        """The events and the end."""
        out, _ = self.run_program(VPROF, "trace", self.engine, "-j", *options, timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        return lines[:-1], lines[-1]["end"]

    def count(self, *options):
        """The rows of the only --count-by, by their keys."""
        counts = self.trace(*options)[1]["counts"]
        self.assertEqual(len(counts), 1)
        return {row["key"]: row["count"] for row in counts[0]["rows"]}

    def script(self, text):
        """The texts and the maps of a script, by name, with the parts of a key joined."""
        out, _ = self.run_program(VPROF, "trace", self.engine, "-j", "-e", text, timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([lines[-1]["end"]["statistics"][name] for name in ("dropevt", "map-full", "fault")], [0, 0, 0])
        return ([line["text"] for line in lines if "text" in line],
                {line["map"]: {tuple(map(str, entry["key"])): entry["value"] for entry in line["entries"]} for line in lines if "map" in line})

    def check_scripts(self):
        """What the tasks of the guest's loop do, counted where it is done: a read of the shell is one byte."""
        texts, maps = self.script("""
            syscall:read /comm == "init"/ { @in = count(); @asked = sum(arg2); @fd[arg0] = count(); }
            kprobe:vfs_read /comm == "init"/ { @start[tid] = nsecs; @stacks[kstack(2)] = count(); }
            kretprobe:vfs_read /@start[tid]/ { @ns = hist(nsecs - @start[tid]); @bytes = sum(retval); @n++; delete(@start[tid]); }
            syscall:openat { printf("%s %d %s", comm, pid, str(arg1)); @opened[str(arg1)] = count(); }
            syscall:read:return /comm == "init" && @n > 300/ { exit(); }""")
        entered, done = maps["@in"][()], maps["@n"][()]
        self.assertLessEqual(abs(entered - done), 1)
        self.assertEqual((maps["@asked"][()], maps["@bytes"][()]), (entered, done))
        self.assertEqual(maps["@fd"], {("0",): entered})
        self.assertEqual(sum(range_["count"] for range_ in maps["@ns"][()]), done)
        self.assertLessEqual(len(maps["@start"]), 1)
        for stack in maps["@stacks"]:
            self.assertRegex(stack[0], r"\['vfs_read', 'ksys_read\+0x")
        # What was printed is what was counted.
        opened = {}
        for text in texts:
            comm, pid, path = text.split()
            self.assertIn(comm, ("init", "busybox"))
            self.assertGreater(int(pid), 0)
            opened[path,] = opened.get((path,), 0) + 1
        self.assertEqual(maps["@opened"], opened)
        self.assertIn(("/proc/version",), opened)

    def check_probes(self):
        self.check_scripts()
        events, end = self.trace("-e", "syscall:read", "-n", 50, "-p", 1)
        self.assertEqual({(event["pid"], event["tid"], event["comm"]) for event in events}, {(1, 1, "init")})
        self.assertEqual({event["fields"]["nr"] for event in events}, {"0x0"})
        # The shell reads its line from descriptor 0, a byte at a time.
        self.assertEqual({(event["fields"]["arg0"], event["fields"]["arg2"]) for event in events}, {("0x0", "0x1")})
        self.assertEqual(end["statistics"]["dropevt"], 0)

        events, _ = self.trace("-e", "function:vfs_read", "-g", "-n", 5, "--comm", "init")
        for event in events:
            self.assertEqual((event["func"], event["comm"]), ("vfs_read", "init"))
            frames = [re.sub(r"\+.*", "", frame) for frame in event["stack"]]
            # Between the two pairs, a kernel with frame pointers has the wrappers of the system call.
            kernel = [frame for frame in frames if "x64_sys" not in frame]
            self.assertEqual(kernel[:4], ["vfs_read", "ksys_read", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"])

        # User space by the file that is mapped there, which has no symbols; and both parts of the chain apart.
        self.assertRegex(events[0]["stack"][-1], r"^busybox\+0x")
        rows = self.count("-e", "syscall:read", "--count-by", "kstack,ustack", "-n", 20, "--filter", "comm=init", "--filter",
                          "ustack=*busybox+0x*")
        self.assertGreaterEqual(sum(rows.values()), 20)
        for key in rows:
            self.assertRegex(key, r"^(entry_SYSCALL_64_after_hwframe\+0x\w+;)?do_syscall_64(\+0x\w+)?, (\S+;)?busybox\+0x\w+$")

        # A read returns what its function has returned, in some time. The shell reads a byte at a time.
        events, end = self.trace("-e", "return:vfs_read", "-e", "syscall:read:return", "-g", "-n", 20, "--filter", "comm=init", "--filter",
                                 "retval>0")
        for name, frames in (("return:vfs_read", ["ksys_read", "do_syscall_64"]), ("syscall:read:return", ["do_syscall_64"])):
            of = [event for event in events if event["probe"] == name]
            self.assertGreater(len(of), 5)
            self.assertEqual({event["fields"]["retval"] for event in of}, {"0x1"})
            for event in of:
                names = [re.sub(r"\+.*", "", frame) for frame in event["stack"]]
                self.assertEqual([frame for frame in names[1:] if "x64_sys" not in frame][:len(frames)], frames)
        self.assertTrue(all(0 < int(event["fields"]["ns"], 16) < 1e9 for event in events if "ns" in event["fields"]))
        self.assertEqual(end["statistics"]["forgotten"], 0)
        rows = self.count("-e", "syscall:read:return", "--count-by", "retval", "--filter", "retval<=0", "--duration", 2)
        self.assertLessEqual(set(rows), {"0", "-11", "-21"})

        four = [word for name in ("vfs_read", "vfs_open", "schedule") for word in ("-e", f"function:{name}")]
        rows = self.count(*four, "-e", "syscall:openat", "--count-by", "probe", "-n", ROUNDS, "--duration", 20 * harness.SLOWNESS)
        self.assertEqual(set(rows), {"function:vfs_read", "function:vfs_open", "function:schedule", "syscall:openat"})
        self.refused(VPROF, "trace", self.engine, "--breakpoints", "processor", *four, "-e", "syscall:openat", "-e",
                     "function:do_exit",
                     message="cannot place function:do_exit: the processor has 4 breakpoints, and they are taken by "
                             "function:vfs_read, function:vfs_open, function:schedule, syscall:openat")

        five = [word for name in ("vfs_read", "vfs_open", "schedule", "fput", "do_sys_openat2")
                for word in ("-e", f"function:{name}")]
        rows = self.count("--breakpoints", "patch", *five, "-e", "syscall:openat", "--count-by", "probe", "-n", ROUNDS, "--duration", 20 * harness.SLOWNESS)
        self.assertEqual(set(rows), {*five[1::2], "syscall:openat"})

        # All functions that match, each by its own name; and none, and too many.
        hit = set(self.count("-e", "function:vfs_rea*", "-e", "function:[k]sys_read", "--count-by", "func", "-n", 20))
        self.assertLessEqual({"vfs_read", "ksys_read"}, hit)
        self.assertEqual([name for name in hit if not re.fullmatch("vfs_rea.*|ksys_read", name)], [])
        self.refused(VPROF, "trace", self.engine, "-e", "function:nothing*", message=r"function:nothing\* matches nothing that can be probed")
        self.refused(VPROF, "trace", self.engine, "-e", "function:*", message=r"function:\* matches \d+, and there can be 512 probes")
        outcomes = placements.Fuzz(self, self.engine, self.kernel, self.console).run(PLACEMENTS)
        self.assertGreater(outcomes["patch: set"], PLACEMENTS // 20)
        self.assertGreater(outcomes["events"], 0)

    def test_one_vcpu(self):
        self.boot(1, INIT_OF_ONE)
        self.check_counters()
        self.tell_init("init: alone")
        self.check_probes()
        self.tell_init("Kernel panic")
        self.check_lies(self.vmm)

    def test_two_vcpus(self):
        harness.need_fast_guests()
        self.boot(2, placements.INIT)
        self.check_probes()


if __name__ == "__main__":
    harness.main()
