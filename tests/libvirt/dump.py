#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest that stands still: what `vprof ps` and `vprof stack` say of it is the same by its memory and by a dump of that, and it is what
drgn says, by the kernel's debug information."""
import json
import re
import socket
import subprocess
import sys

import harness
import registry
from harness import VPROF

BOOT_SECONDS = 240
COMMAND_LINE = "console=ttyS0 nokaslr mitigations=off panic=-1"
TASKS_MIN, STACKS_MIN = 15, 12
FASTER_MIN = 100  # than drgn, both without their starts
DRGN = "drgn==0.3.0"
# What vprof takes from a guest's memory, drgn takes from a note that QEMU writes with a device and a driver for it only.
VMCOREINFO = """OSRELEASE={release}
PAGESIZE=4096
SYMBOL(swapper_pg_dir)={tables:x}
SYMBOL(_stext)=ffffffff81000000
NUMBER(phys_base)=0
NUMBER(pgtable_l5_enabled)=0
KERNELOFFSET=0
"""


class Dump(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        harness.need((harness.BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        self.kernel = harness.script("kernel-tiny.sh")
        self.console, self.qmp, self.core = self.folder / "console", self.folder / "qmp", self.folder / "core"

    def command(self, name, **arguments):
        print(json.dumps({"execute": name, "arguments": arguments}), file=self.monitor, flush=True)
        for line in self.monitor:
            answer = json.loads(line)
            if "event" not in answer:
                return answer["return"]
        raise AssertionError("QEMU has closed its monitor")

    def boot(self):
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, harness.SOURCE / "tests" / "libvirt" / "dump.init")
        self.qemu = self.start("qemu-system-x86_64", "-name", "dump,debug-threads=on", "-machine", "pc", "-accel", "tcg", "-m", "128",
                               "-smp", "2", "-display", "none", "-nodefaults", "-serial", f"file:{self.console}",
                               "-qmp", f"unix:{self.qmp},server=on,wait=off", "-kernel", self.kernel.replace("vmlinux", "bzImage"),
                               "-initrd", initrd, "-append", COMMAND_LINE)
        self.addCleanup(self.qemu.kill)
        harness.wait_until(lambda: self.console.exists() and "init: waits" in self.console.read_text(errors="replace"),
                           "the guest's tasks to wait", BOOT_SECONDS)
        self.connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.connection.close)
        self.connection.connect(str(self.qmp))
        self.monitor = self.connection.makefile("rw")
        self.monitor.readline()
        self.command("qmp_capabilities")

    def dump(self):
        self.command("stop")
        self.command("dump-guest-memory", **{"paging": False, "protocol": f"file:{self.core}"})
        # QEMU answers one client.
        self.monitor.close()
        self.connection.close()

    def look(self, command, *which):
        return json.loads(self.run_program(VPROF, command, "--json", "--kernel", self.kernel, *which)[0])

    @staticmethod
    def tasks_of(document):
        return {task["tid"]: (task["pid"], task["comm"], task["state"], task["cpu-ns"],
                              task["wait-channel"] and task["wait-channel"]["symbol"]) for task in document["tasks"] if task["pid"] != 0}

    @staticmethod
    def stacks_of(document):
        return {(task["pid"], task["tid"], task["cpu"]): [frame["symbol"] or frame["ip"] for frame in stack["frames"]]
                for stack in document["stacks"] for task in stack["tasks"]}

    def check_dump(self):
        """The guest has QEMU's monitor, and the file has all of it."""
        running = "--pid", self.qemu.pid, "--qmp", self.qmp
        self.tasks = self.tasks_of(self.look("ps", "--dump", self.core))
        self.stacks = self.stacks_of(self.look("stack", "--dump", self.core))
        self.assertGreater(len(self.tasks), TASKS_MIN)
        self.assertEqual(self.tasks_of(self.look("ps", *running)), self.tasks)
        self.assertEqual(self.stacks_of(self.look("stack", *running)), self.stacks)
        sleepers = [stack for (pid, _, cpu), stack in self.stacks.items() if cpu is None and "do_nanosleep" in stack]
        self.assertGreaterEqual(len(sleepers), 6)
        # Busybox is static and without frame pointers; its C library has tables. It sleeps below its main.
        self.assertTrue(all(stack.index("do_nanosleep") < len(stack) - 5 for stack in sleepers), sleepers)
        on_cpu = [stack for (pid, _, cpu), stack in self.stacks.items() if cpu is not None]
        self.assertEqual(len(on_cpu), 2)
        self.assertTrue(all(on_cpu), on_cpu)
        out, _ = self.run_program(VPROF, "stack", "--no-user", "--kernel", self.kernel, "--dump", self.core, 1)
        self.assertRegex(out, r"^running on CPU \d: ")
        self.refused(VPROF, "ps", "--dump", self.console, message="it is no ELF core of a guest")
        self.refused(VPROF, "ps", "--dump", self.core, "--pid", self.qemu.pid, message="--dump is the guest")

    def drgn_look(self):
        packages = registry.pypi(DRGN)
        text = self.console.read_text(errors="replace")
        tables = int(re.search(r"^(?:init: )?([0-9a-f]{16}) \w (?:init_top_pgt|swapper_pg_dir)", text, re.M)[1], 16)
        release = re.search(r"^init: (\d+\.\d+\.\S+)", text, re.M)[1]
        note = self.folder / "vmcoreinfo"
        note.write_text(VMCOREINFO.format(release=release, tables=tables))
        out, _ = self.run_program("env", f"PYTHONPATH={packages}", sys.executable, harness.SUPPORT / "drgn_tasks.py", self.core,
                                  self.kernel, note, timeout=120)
        return json.loads(out)

    def check_drgn(self):
        answer = self.drgn_look()
        theirs = {int(tid): task for tid, task in answer["tasks"].items()}
        ours = {tid: [pid, comm, state, cpu_ns] for tid, (pid, comm, state, cpu_ns, _) in self.tasks.items()}
        self.assertEqual({tid: task[:4] for tid, task in theirs.items()}, ours)
        kernel = {tid: [name for name in stack if not name.startswith("0x")] for (_, tid, cpu), stack in self.stacks.items() if cpu is None}
        differ = {tid: (task[4], kernel.get(tid)) for tid, task in theirs.items()
                  if task[4] and kernel.get(tid, [])[:len(task[4])] != task[4]}
        compared = sum(bool(task[4]) for task in theirs.values())
        print(f"  drgn: {len(theirs)} tasks, {compared} stacks; opened in {answer['open']:.2f} s, looked for {answer['look']:.3f} s; "
              f"other stacks: {differ}", flush=True)
        self.assertGreater(compared, STACKS_MIN)
        self.assertEqual(differ, {})

    def test_stopped(self):
        self.boot()
        self.dump()
        self.check_dump()
        self.check_drgn()


if __name__ == "__main__":
    harness.main()
