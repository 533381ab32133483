#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A guest that stands still: what `vprof ps` and `vprof stack` say of it is the same by its memory and by a dump of that, compressed or
not, and it is what drgn says, by the kernel's debug information."""
import json
import re
import shutil
import socket
import sys

import harness
import registry
from harness import VPROF

BOOT_SECONDS = 240
COMMAND_LINE = "console=ttyS0 nokaslr mitigations=off panic=-1"
TASKS_MIN, STACKS_MIN = 15, 12
NAP, NAPS = "hrtimer_nanosleep", 6
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


def functions_of(stack):
    """Those of the kernel, without the suffixes of copies; the label in the system call's entry is a function to one of the two."""
    return [re.sub(r"\..*|_after_hwframe$", "", name) for name in stack if not name.startswith("0x")]


class Dump(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        harness.need((harness.BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        self.kernel = harness.script("kernel-tiny.sh")
        self.console, self.qmp, self.core = self.folder / "console", self.folder / "qmp", self.folder / "core"
        self.packed = self.folder / "packed"

    def command(self, name, **arguments):
        print(json.dumps({"execute": name, "arguments": arguments}), file=self.monitor, flush=True)
        for line in self.monitor:
            answer = json.loads(line)
            if "event" not in answer:
                return answer["return"]
        raise AssertionError("QEMU has closed its monitor")

    def boot(self):
        initrd, self.root = self.folder / "initrd", self.folder / "root"
        (self.root / "bin").mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), self.root / "bin" / "busybox")
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
        # What QEMU itself writes so is flattened.
        self.command("dump-guest-memory", **{"paging": False, "protocol": f"file:{self.packed}", "format": "kdump-zlib"})
        # QEMU answers one client.
        self.monitor.close()
        self.connection.close()

    def look(self, command, *which):
        # A kernel without BTF does not say where its page cache is.
        files = ["--symfs", self.root] if command == "stack" else []
        return json.loads(self.run_program(VPROF, command, "--json", "--kernel", self.kernel, *files, *which)[0])

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
        sleepers = [stack for (pid, _, cpu), stack in self.stacks.items() if cpu is None and NAP in stack]
        self.assertGreaterEqual(len(sleepers), NAPS, self.stacks)
        # Busybox, which is static and without frame pointers, has unwind tables of its C library, in which it sleeps.
        below = [stack[stack.index("entry_SYSCALL_64_after_hwframe") + 1:] for stack in sleepers]
        print(f"  in user space: {below}", flush=True)
        self.assertTrue(all(len(user) > 1 for user in below), below)
        on_cpu = [stack for (pid, _, cpu), stack in self.stacks.items() if cpu is not None]
        self.assertTrue(on_cpu and all(on_cpu), on_cpu)
        out, _ = self.run_program(VPROF, "stack", "--no-user", "--kernel", self.kernel, "--dump", self.core, 1)
        self.assertRegex(out, r"^running on CPU \d: ")
        self.refused(VPROF, "ps", "--dump", self.console, message="it is no ELF core of a guest")
        self.refused(VPROF, "ps", "--dump", self.core, "--pid", self.qemu.pid, status=2, message="--dump is the guest")

    def check_packed(self):
        self.assertEqual(self.packed.read_bytes()[:12], b"makedumpfile")
        self.assertLess(self.packed.stat().st_size, self.core.stat().st_size / 2)
        self.assertEqual(self.tasks_of(self.look("ps", "--dump", self.packed)), self.tasks)
        self.assertEqual(self.stacks_of(self.look("stack", "--dump", self.packed)), self.stacks)
        # One that is cut off says so.
        with self.packed.open("r+b") as file:
            file.truncate(self.packed.stat().st_size // 2)
        self.refused(VPROF, "ps", "--dump", self.packed, message="it is cut off in its pieces")

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
        kernel = {tid: functions_of(stack) for (_, tid, cpu), stack in self.stacks.items() if cpu is None}
        differ = {tid: (functions_of(task[4]), kernel.get(tid)) for tid, task in theirs.items()
                  if task[4] and kernel.get(tid) != functions_of(task[4])}
        compared = sum(bool(task[4]) for task in theirs.values())
        print(f"  drgn: {len(theirs)} tasks, {compared} stacks; opened in {answer['open']:.2f} s, looked for {answer['look']:.3f} s; "
              f"other stacks: {differ}", flush=True)
        self.assertGreater(compared, STACKS_MIN)
        self.assertEqual(differ, {})

    def test_stopped(self):
        self.boot()
        self.dump()
        self.check_dump()
        self.check_packed()
        self.check_drgn()


if __name__ == "__main__":
    harness.main()
