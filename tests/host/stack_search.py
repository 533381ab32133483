#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where KVM keeps no stack pointer, page tables and GS base in memory (VMX), they are found in the guest's. Here KVM has them: the
engine is told to take each sample twice, as it is and as it would be there, and both are compared.

    stack_search.py SERIES [Class.test]    of Debian's cloud kernel that the guest runs: 6.1, 6.12"""
import collections
import lzma
import os
import pathlib
import re
import subprocess
import sys

import harness
import paired_samples
from harness import VPROF

SERIES = sys.argv.pop(1)
SECONDS, HZ = 10, 797
SAMPLES_MIN = 800
BOOT_SECONDS = 60
# Processors with VMX need neither, and their kernels return without a thunk.
COMMAND_LINE = "console=ttyS0 panic=-1 loglevel=4 retbleed=off spec_rstack_overflow=off"
# Files; processes; pipes, the network, signals; sorting, page faults; a module's kernel thread, and what waits for it.
LOAD = """#!/bin/sh
PATH=/bin:/usr/bin
busybox mount -t proc proc /proc; busybox mount -t sysfs sysfs /sys; busybox mkdir -p /tmp; busybox mount -t tmpfs tmp /tmp
busybox mount -t devtmpfs dev /dev
busybox ifconfig lo 127.0.0.1 up
( while :; do busybox dd if=/dev/zero of=/tmp/a bs=4k count=500; busybox sync; busybox rm /tmp/a; done 2>/dev/null ) &
( while :; do busybox find /proc /sys -maxdepth 4; busybox cat /proc/*/maps; busybox usleep 50000; done >/dev/null 2>&1 ) &
( while :; do busybox yes | busybox head -n 20000 | busybox cat >/dev/null; busybox sleep 10 & busybox kill $!; done 2>/dev/null ) &
( while :; do for i in 1 2 3 4; do busybox sh -c "busybox true; busybox ps >/dev/null" & done; wait; done ) &
( while :; do busybox nc -l -p 4000 >/dev/null; done ) &
( while :; do busybox dd if=/dev/urandom bs=2k count=300 2>/dev/null | busybox nc 127.0.0.1 4000; busybox usleep 20000; done 2>/dev/null ) &
( while :; do busybox seq 1 20000 | busybox sort -r | busybox gzip >/dev/null; done ) &
busybox insmod /bin/loop.ko
( busybox dd if=/dev/zero of=/tmp/disk bs=1M count=16; busybox losetup /dev/loop0 /tmp/disk
while :; do busybox dd if=/dev/zero of=/dev/loop0 bs=64k count=200 conv=fsync; done ) 2>/dev/null &
( while :; do sort -o /tmp/sorted /usr/share/lines; gzip -c /usr/share/lines >/dev/null; openssl speed -seconds 1 -bytes 1024 sha256
perl -e 'for my $i (1 .. 20000) { push @x, sprintf q(%x), $i * 7919 % 65537 } print scalar(grep { /^a.*f/ } sort @x)'
sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000)
SELECT count(*), sum(length(hex(x))) FROM (SELECT x FROM c ORDER BY x * 7919 % 65537);'
done >/dev/null 2>&1 ) &
busybox sleep 4
echo "load: running"
while :; do busybox usleep 20000; done
"""
MODULES = 0xffffffffc0000000  # where they are, above the kernel's image (MODULES_VADDR), up to the words that divide a chain
# What at least is right of the kernel samples with a chain that is known, what at most is wrong, and of the tasks.
RIGHT_MIN, WRONG_MAX, TASKS_MIN = 0.95, 0.003, 0.995
# Of Debian's, which have no frame pointers.
PROGRAMS = "sort", "gzip", "openssl", "perl", "sqlite3"
# Some 35 to 140 in 10 s. By frame pointers alone, next to none are right. Of 6,423, half were found, and 7 of these were wrong.
USER_SAMPLES_MIN, USER_RIGHT_MIN, USER_WRONG_MAX = 20, 0.25, 0.005
MODULE_SAMPLES_MIN, MODULE_RIGHT_MIN = 20, 0.75  # some 100 go through a module, 94 % of them right


def has_module(chain):
    return any(MODULES <= word < paired_samples.CONTEXT_USER for word in chain)


def libraries(program):
    """And the dynamic linker."""
    return re.findall(r"(/\S+)", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)


class StackSearch(harness.ProgramTest):
    def boot(self):
        kernel = harness.script("kernel-debian.sh", SERIES)
        init, initrd, self.console = self.folder / "load", self.folder / "initrd", self.folder / "console"
        init.write_text(LOAD)
        (module,) = (path for path in pathlib.Path(kernel).parents[1].rglob("loop.ko*"))
        data = module.read_bytes()
        plain = self.folder / "loop.ko"
        plain.write_bytes(lzma.decompress(data) if module.suffix == ".xz" else data)
        harness.script("initramfs.sh", initrd, init, plain)
        self.programs_add(initrd)
        self.qmp = self.folder / "qmp"
        qemu = self.start("qemu-system-x86_64", "-name", "guest,debug-threads=on", "-accel", "kvm", "-cpu", "host", "-m", "512",
                          "-smp", "2", "-display", "none", "-nodefaults", "-no-reboot", "-serial", f"file:{self.console}",
                          "-qmp", f"unix:{self.qmp},server=on,wait=off", "-kernel", kernel, "-initrd", initrd,
                          "-append", COMMAND_LINE)
        self.addCleanup(qemu.wait)
        self.addCleanup(qemu.kill)
        harness.wait_until(lambda: self.console.exists() and "load: running" in self.console.read_text(errors="replace"),
                           "the guest's load", BOOT_SECONDS)
        return qemu

    def programs_add(self, initrd):
        programs = [f"/usr/bin/{name}" for name in PROGRAMS]
        root = self.folder / "root"
        for path in {*programs, *(path for program in programs for path in libraries(program))}:
            to = root / path.lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(pathlib.Path(path).read_bytes())
            to.chmod(0o755)
        lines = root / "usr/share/lines"
        lines.parent.mkdir(parents=True, exist_ok=True)
        lines.write_text("".join(f"{i * 7919 % 65537} line\n" for i in range(15000)))
        self.run_program("bsdtar", "-cf", self.folder / "more", "--format", "newc", "-C", root, *(path.name for path in root.iterdir()))
        with open(initrd, "ab") as archive:
            archive.write((self.folder / "more").read_bytes())

    def record_pairs(self, qemu):
        """Of as many recordings of the guest as the statistics need; the last one."""
        pairs = []
        while True:
            recording = self.folder / "recording"
            self.record(qemu, recording)
            pairs += paired_samples.pairs(recording.read_bytes())
            known = paired_samples.known_chains(pairs)
            numbers = len(known), len(paired_samples.known_user_chains(pairs)), sum(has_module(truth.kernel) for truth, _ in known)
            print(f"  {SERIES}: samples with a chain that is known: {numbers[0]} in the kernel, {numbers[2]} of them through a module, "
                  f"{numbers[1]} in user mode", flush=True)
            if all(number > least for number, least in zip(numbers, (SAMPLES_MIN, USER_SAMPLES_MIN, MODULE_SAMPLES_MIN))):
                qemu.kill()
                return pairs, recording

    def record(self, qemu, recording):
        command = [VPROF, "attach", "--pid", qemu.pid, "--qmp", self.qmp, "--route", "bpf", "-g", "-F", HZ, "--duration", SECONDS,
                   "-o", recording]
        process = self.start(*command, env=os.environ | paired_samples.WITHHOLD)
        _, errors = process.communicate(timeout=120 * harness.SLOWNESS)
        self.assertEqual(process.returncode, 0, errors)

    def check_user(self, pairs):
        known = paired_samples.known_user_chains(pairs)
        verdicts = collections.Counter(paired_samples.user_verdict(*pair) for pair in known)
        print(f"  in user mode: {paired_samples.told(verdicts)}", flush=True)
        for truth, found in known:
            if paired_samples.user_verdict(truth, found) == "wrong":
                print(f"  wrong: {[f'{word:x}' for word in truth.user]}, found {[f'{word:x}' for word in found.user]}")
        self.assertGreaterEqual(verdicts["right"], USER_RIGHT_MIN * len(known))
        self.assertLessEqual(verdicts["wrong"], 1 + USER_WRONG_MAX * len(known))

    def test_same_as_the_registers_say(self):
        harness.need_kvm()
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        pairs, recording = self.record_pairs(self.boot())
        known = paired_samples.known_chains(pairs)
        verdicts = collections.Counter(paired_samples.verdict(*pair) for pair in known)
        tasks = [(truth, found) for truth, found in pairs if truth.pid != -1]
        right = sum((truth.pid, truth.tid) == (found.pid, found.tid) for truth, found in tasks)
        through = collections.Counter(paired_samples.verdict(*pair) for pair in known if has_module(pair[0].kernel))
        report = self.report(recording)[0]["recording"]["statistics"]["total"]
        print(f"  in the kernel: {paired_samples.told(verdicts)}; through a module: {paired_samples.told(through)}; "
              f"tasks {right / len(tasks):.2%} right of {len(tasks)}")
        print(f"  { {name: count for name, count in report.items() if name.startswith(('stack-', 'user-stack-'))} }", flush=True)
        self.check_user(pairs)
        for truth, found in known:
            if paired_samples.verdict(truth, found) == "wrong":
                print(f"  wrong: {[f'{word:x}' for word in truth.kernel]}, found {[f'{word:x}' for word in found.kernel]}")
        self.assertEqual([pair for pair in pairs if pair[0].mode != pair[1].mode], [])
        self.assertGreaterEqual(verdicts["right"], RIGHT_MIN * len(known))
        self.assertLessEqual(verdicts["wrong"], WRONG_MAX * len(known))
        self.assertGreaterEqual(right, TASKS_MIN * len(tasks))
        self.assertGreaterEqual(through["right"], MODULE_RIGHT_MIN * through.total())


if __name__ == "__main__":
    harness.main()
