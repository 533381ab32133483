#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""On a stock host: a QEMU with KVM that runs Debian's Linux is attached to, as root with the rights that Debian leaves to root. What its
tasks wait for is what the guest itself says."""
import collections
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import time

import harness
import perf
from harness import VPROF

WHOLE_MIN = 98.0  # per cent of the kernel's call chains
USER_WHOLE_MIN, USER_SECONDS = 0.7, 2.5  # of user space's, at the end: those before the tables are there are cut
SAMPLES_MIN = 500
NAMED_MIN = 0.99
TASK = re.compile(r"^task (\S+) (\d+) \((.*)\) ([A-Za-z]) ", re.MULTILINE)  # as the guest has it
SLEEPERS_MIN, CHANGED_MAX = 40, 8
WAIT_MIN, LOOKED_SECONDS = 0.6, 2  # of the time from the first look to the last one
NAPS, NAP_SECONDS = 15, 0.2  # at least so many of 30
PLUGGED = 128 << 20  # bytes: a block of Linux's
TWO_CPUS = "-smp", "1,maxcpus=2"
CPU, SECOND_CPU = "host-x86_64-cpu", {"id": "second", "socket-id": 0, "die-id": 0, "core-id": 1, "thread-id": 0}
CPU_SAMPLES_MIN = 60
PANIC_SECONDS, NMIS_MAX = 5, 6
PAUSE_SECONDS = 2
RESTORED_MIN = 500  # samples
WAITED = re.compile(r"^waited (\S+) (\d+) ([0-9.]+) ([0-9a-f]+)", re.MULTILINE)  # what its programs have said
CHILD_SECONDS = 0.1
KNOWN_AGREE, KNOWN_LINE = 0.1, 0.4  # of what they say, and seconds: two lines of a terminal, with time to write them
WAKER_MIN = 0.9  # of the time for which what ends it is known
WAITS_AGREE, WAITS_ENDS = 0.15, 1  # looks and switches: a share, and seconds before the first look and after the last one
ROOT = re.compile(r"entry_SYSCALL_64_after_hwframe|ret_from_fork(_asm)?|asm_(sysvec|exc|common)_.*")
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
busybox mount -t sysfs sys /sys
echo online_movable >/sys/devices/system/memory/auto_online_blocks
busybox ln -s busybox /bin/dd
busybox mkdir /cgroup
busybox mount -t cgroup2 cgroup /cgroup
busybox mkdir -p /cgroup/a/b
(echo 0 >/cgroup/a/b/cgroup.procs; exec busybox sleep 10000) &
echo 1 >/proc/sys/kernel/unknown_nmi_panic
[ "$1" = waits ] || echo 0 >/proc/sys/kernel/panic
busybox mkfifo /fifo
busybox cat /fifo &
busybox sleep 10000 & stopped=$!
busybox sleep 1
kill -STOP $stopped
for task in /proc/[0-9]*; do
	read -r wchan <$task/wchan
	read -r stat <$task/stat && echo "task $wchan $stat"
done
# A processor that is plugged in waits for this, and has work then.
if [ "$1" = plugs ]; then
	(until busybox sh -c 'echo 1 >/sys/devices/system/cpu/cpu1/online' 2>/dev/null; do busybox sleep 0.2; done
	echo "init: two processors"; exec user_spin_static 10000) &
fi
# For tasks that wait known ways: two that compute all the time beside the one below, for two processors, and one that naps.
if [ "$1" = waits ]; then
	user_spin_static 10000 &
	user_spin_static 10000 &
	echo 'n=0; while [ $n -lt 30 ]; do busybox sleep 0.2; echo nap; n=$((n + 1)); done; echo c >/proc/sysrq-trigger' >/napper
	busybox sh /napper &
	busybox mkdir /dev/pts
	busybox mount -t devpts devpts /dev/pts
	known_waits 5 &
fi
echo "init: up"
while :; do
	user_spin_static 1
	dd if=/dev/zero of=/dev/null bs=4k count=20000
done
"""


class Attach(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need_program("qemu-system-x86_64", "qemu-system-x86")
        self.recording = self.folder / "recording"
        self.console = self.folder / "qmp.console"
        self.qmp = self.folder / "qmp"
        self.series = re.match(r"\d+\.\d+", os.uname().release)[0]
        self.kernel = harness.script("kernel-debian.sh", self.series, "amd64")
        (self.folder / "init").write_text(INIT)
        harness.script("initramfs.sh", self.folder / "initrd", self.folder / "init", harness.BIN / "user_spin_static",
                       harness.BIN / "known_waits")

    def start_qemu(self, name, *options):
        """A guest with 256 MiB, and two monitors: `name` and `name`-2."""
        qemu = self.start("qemu-system-x86_64", "-name", "guest,debug-threads=on", "-accel", "kvm", "-cpu", "host", "-m",
                          "256,slots=1,maxmem=1G", "-display", "none", "-vga", "none", "-serial", f"file:{self.folder / name}.console",
                          "-kernel", self.kernel, "-initrd", self.folder / "initrd", "-append", "console=ttyS0 panic=-1 quiet", "-no-reboot",
                          *(word for path in (name, f"{name}-2") for word in ("-qmp", f"unix:{self.folder / path},server=on,wait=off")),
                          *options)
        self.addCleanup(qemu.communicate)
        self.addCleanup(qemu.terminate)
        return qemu

    def boot(self, *options):
        self.vmm = self.qemu = self.start_qemu("qmp", *options)
        self.wait_for_init()

    def tell(self, name, *commands):
        """Says commands to a monitor of QEMU's; the last answer."""
        with socket.socket(socket.AF_UNIX) as monitor, monitor.makefile("rw") as stream:
            monitor.connect(str(self.folder / name))
            for command in {"execute": "qmp_capabilities"}, *commands:
                print(json.dumps(command), file=stream, flush=True)
                answer = {"event": None}
                while "event" in answer or "QMP" in answer:
                    answer = json.loads(stream.readline())
                self.assertIn("return", answer, command)
        return answer["return"]

    def wait_for_console(self, text):
        def is_there():
            there = self.console.exists() and text in self.console.read_text(errors="replace")
            if not there:
                self.check_alive()
            return there
        harness.wait_until(is_there, text, 120)

    def wait_for_init(self):
        self.wait_for_console("init: up")

    def check_alive(self):
        """The guest's VMM has not ended, as it does when an emulator's fault has ended the guest."""
        if self.vmm.poll() is not None:
            out, err = self.vmm.communicate()
            console = self.console.read_text(errors="replace") if self.console.exists() else ""
            self.fail(f"the VMM has ended with {self.vmm.returncode}: {out}{err}\n{console[-2000:]}")

    def guest(self):
        return "--pid", self.qemu.pid, "--qmp", self.qmp

    def record(self, *options, before=()):
        return self.run_program(*before, VPROF, "attach", *self.guest(), "--duration", "5s", "-o", self.recording, *options,
                                timeout=60)

    def check_modes(self, samples):
        """The kernel is in the upper half of the address space, and user space in the lower."""
        wrong = [sample for sample in samples if sample["mode"] == ("user" if int(sample["ip"], 16) >> 63 else "kernel")]
        self.assertEqual(wrong, [])

    def check_tasks(self, samples):
        tasks = collections.Counter(sample["comm"] for sample in samples)
        print("tasks", tasks.most_common(8), flush=True)
        for name in "user_spin_stati", "dd":
            self.assertGreater(tasks[name], 0.05 * len(samples))
        self.assertGreater(sum(count for name, count in tasks.items() if name and name != "[unknown]"), NAMED_MIN * len(samples))

    def check_waits(self):
        """Tasks wait for as long as they are looked at, each where it does; what runs has all but no waiting."""
        document = json.loads(self.run_program(VPROF, "report", "--json", "-i", self.recording, "--sort", "state,comm,sym")[0])
        (table,) = [table for table in document["tables"] if table["event"] == "wall"]
        seconds = {(row["state"], row["comm"], row["symbol"]): row["period"] / 1e9 for row in table["rows"]}
        print(f"  waits {seconds}", flush=True)
        one = seconds["sleeping", "busybox", "hrtimer_nanosleep"]
        self.assertGreater(one, WAIT_MIN * perf.looked_seconds(self.recording))
        self.assertLess(one, (document["recording"]["last-ns"] - document["recording"]["first-ns"]) / 1e9 + 0.5)
        for state, channel in ("sleeping", "fifo_open|wait_for_partner"), ("stopped", "do_signal_stop|get_signal"):
            (other,) = [ns for (s, comm, symbol), ns in seconds.items() if (s, comm) == (state, "busybox") and re.fullmatch(channel, symbol)]
            self.assertAlmostEqual(other, one, delta=0.05 * one)
        self.assertLess(sum(ns for (state, *_), ns in seconds.items() if state == "disk-sleep"), 0.5 * one)

    def check_root(self):
        """Root takes the best route."""
        out, _ = self.run_program(VPROF, "doctor", *self.guest())
        self.assertRegex(out, r"ok +route +bpf: ")
        self.assertRegex(out, r"ok +default +bpf\n")
        vprof = self.start_recording(self.recording.name, *self.guest(), "--wall")
        self.wait_for_user_chains(self.recording)
        harness.wait_until(lambda: perf.looked_seconds(self.recording) > LOOKED_SECONDS, "looks at tasks", 60)
        err = self.detach(vprof, self.recording.name)
        self.assertIn("route bpf, task-clock at 999 Hz", err)
        self.assertNotIn("best route", err)
        chains = re.search(r"# chains +kernel, by ORC: .*", self.run_program(VPROF, "report", "-i", self.recording)[0])
        print(chains and chains[0], flush=True)
        self.assertGreater(float(re.search(r"([0-9.]+) % whole", chains[0])[1]), WHOLE_MIN)
        self.assertGreater(self.report(self.recording)[0]["recording"]["unwind-tables"]["sources"]["guest memory"], 0)
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["mode"] != "vmm" and sample["event"] == "task-clock"]
        self.check_modes(samples)
        self.check_tasks(samples)
        self.check_waits()

    def check_less(self):
        """A route that is not the best is named. Above level 2, Debian's kernel asks for CAP_SYS_ADMIN; without it, vprof says so beforehand and when it records."""
        without = "setpriv", "--bounding-set=-sys_admin"
        why = r"bpf: not permitted with kernel.perf_event_paranoid=3; run vprof as root"
        out, _ = self.run_program(*without, VPROF, "doctor", *self.guest())
        self.assertRegex(out, f"note +route +{why}")
        self.assertRegex(out, r"ok +default +monitor\n")
        out, err = self.record(before=without)
        self.assertRegex(err, f"vprof: monitor is not the best route; {why}")
        self.assertRegex(out, f"route: {why}")

    def check_ps(self, *which):
        """States and wait channels are those that the guest's /proc has said a moment before, and so are the tasks; its programs wait in
        known ways."""
        rows = json.loads(self.run_program(VPROF, "ps", "--json", *which)[0])["tasks"]
        ours = {row["tid"]: (row["state"], row["wait-channel"] and row["wait-channel"]["symbol"]) for row in rows if row["pid"] != 0}
        told = {int(pid): (state, None if wchan == "0" else wchan)
                for wchan, pid, _, state in TASK.findall(self.console.read_text(errors="replace"))}
        sleepers = {pid: told[pid] for pid in told if told[pid][0] in "SITD"}
        changed = {pid: (task, ours.get(pid)) for pid, task in sleepers.items() if ours.get(pid) != task}
        print(f"  {len(rows)} tasks, {len(sleepers)} that slept, changed {changed}", flush=True)
        self.assertGreater(len(sleepers), SLEEPERS_MIN)
        self.assertLessEqual(len(changed), CHANGED_MAX, changed)
        for state, channel, cgroup in ("S", "hrtimer_nanosleep", "/a/b"), ("S", "fifo_open|wait_for_partner", "/"), ("T", "do_signal_stop|get_signal", "/"):
            found = [row for row in rows if row["state"] == state and row["cgroup"] == cgroup and row["wait-channel"]
                     and re.fullmatch(channel, row["wait-channel"]["symbol"]) and row["comm"] == "busybox"]
            self.assertEqual(len(found), 1, (state, channel, found))
        return rows

    def check_stacks(self, *which):
        """All that do not run have whole stacks, but those that ran meanwhile, and those that have ended."""
        document = json.loads(self.run_program(VPROF, "stack", "--json", "--no-user", *which)[0])
        asleep = [stack for stack in document["stacks"] if all(task["cpu"] is None for task in stack["tasks"])]
        without = [task for stack in asleep for task in stack["tasks"] if not stack["frames"] and task["state"] not in "ZX"]
        self.assertLessEqual(len(without), document["torn"], without)
        self.assertEqual([stack for stack in asleep if stack["frames"]
                          and (stack["chain-end"] != "whole" or not ROOT.fullmatch(stack["frames"][-1]["symbol"]))], [])
        self.assertGreater(max(stack["count"] for stack in asleep), 4)
        return [stack for stack in document["stacks"] if stack not in asleep]

    def check_user_stacks(self, *which):
        """Of busybox, which is static and without frame pointers, by the tables that it has in the guest's memory: those of its C library,
        in which its naps are."""
        document = json.loads(self.run_program(VPROF, "stack", "--json", *which, "busybox")[0])
        stacks = {}
        for stack in document["stacks"]:
            user = [frame for frame in stack["frames"] if not frame["ip"].startswith("0xffff")]
            stacks.update({task["tid"]: ([frame["symbol"] for frame in stack["frames"]], user) for task in stack["tasks"]})
        naps = {tid: user for tid, (names, user) in stacks.items() if "hrtimer_nanosleep" in names}
        print(f"  user space of naps: {[(len(user), user[:1]) for user in naps.values()]}", flush=True)
        self.assertGreater(len(naps), 0)
        self.assertTrue(all(user and user[0]["module"] == "/bin/busybox" for user in naps.values()), naps)
        self.assertTrue(any(len(user) > 2 for user in naps.values()), naps)

    def check_tasks_now(self):
        self.check_ps(*self.guest())
        running = self.check_stacks(*self.guest())
        print(f"  runs: {[(stack['tasks'][0]['comm'], len(stack['frames'])) for stack in running]}", flush=True)
        self.assertTrue(any(stack["frames"] for stack in running))
        self.check_user_stacks(*self.guest())
        # By KVM alone; what runs is sampled.
        self.check_ps("--pid", self.qemu.pid)
        harness.wait_until(lambda: any(stack["frames"] for stack in self.check_stacks("--pid", self.qemu.pid)),
                           "a sample of a task that runs", 60)

    def wait_for_panic(self):
        self.wait_for_console("end Kernel panic")

    def check_panicked(self, *which):
        """What has panicked is there with its stack, and every task that slept before it."""
        running = self.check_stacks(*which)
        stacks = [[frame["symbol"] for frame in stack["frames"]] for stack in running]
        print(f"  panicked: {stacks}", flush=True)
        self.assertTrue(any("panic" in stack for stack in stacks))
        tasks = json.loads(self.run_program(VPROF, "ps", "--json", *which)[0])["tasks"]
        self.assertGreater(len([task for task in tasks if task["state"] in "SI" and task["wait-channel"]]), SLEEPERS_MIN)

    def check_panic(self):
        """Of another VMM, a guest that has panicked in an NMI, with interrupts off. On a busy stock host one was seen to be lost."""
        for _ in range(NMIS_MAX):
            self.tell("qmp", {"execute": "inject-nmi"})
            with contextlib.suppress(AssertionError):
                harness.wait_until(lambda: "Kernel panic" in self.console.read_text(errors="replace"), "the panic", 10)
                break
        self.wait_for_panic()
        self.check_panicked(*self.guest())

    def check_known_waits(self, samples):
        """Waits are as long as the programs say that they were, end by those that end them, and are for the locks that these hold."""
        known = {what: {} for what in ("terminal", "child", "futex")}
        for what, pid, seconds, number in WAITED.findall(self.console.read_text(errors="replace")):
            known[what][int(pid)] = float(seconds), int(number, 16)
        print(f"  known {known}", flush=True)
        waits, wakers = collections.Counter(), collections.Counter()
        for sample in samples:
            waits[sample["pid"], sample["tid"], sample["state"]] += sample["period"] / 1e9
            if sample["state"] != "runnable":
                wakers[sample["comm"], sample["symbol"], sample.get("waker")] += sample["period"] / 1e9

        def part(comm, symbol, waker):
            return (sum(s for (c, f, w), s in wakers.items() if (c, w) == (comm, waker) and re.fullmatch(symbol, f))
                    / sum(s for (c, f, w), s in wakers.items() if c == comm and re.fullmatch(symbol, f)))
        document = json.loads(self.run_program(VPROF, "report", "--contention", "--json", "-i", self.recording)[0])
        locks = [row for row in document["locks"] if row["waiter"] in ("reader_a", "reader_b", "futex", "holder")]
        print("\n".join(f"  {row}" for row in locks), flush=True)
        (child, (of_child, n_naps)), = known["child"].items()
        print(f"  a child {waits[child, child, 'disk-sleep']}, ready {waits[child, child, 'runnable']}", flush=True)
        self.assertTrue(0.99 * CHILD_SECONDS * n_naps < waits[child, child, "disk-sleep"] < (1 + KNOWN_AGREE) * of_child)
        self.assertGreater(sum(waits[child, child, state] for state in ("disk-sleep", "runnable")), (1 - KNOWN_AGREE) * of_child)
        self.assertGreater(part("vforker", "wait_for_vfork_done|kernel_clone|wait_for_common|wait_for_completion.*", "vforker"), WAKER_MIN)
        (futex, (of_futex, address)), = known["futex"].items()
        of_locks = sum(row["period"] for row in locks if (row["lock"], row["waiter"]) == (f"0x{address:x} of pid {futex}", "futex")) / 1e9
        print(f"  a futex {of_locks}, ready {waits[futex, futex, 'runnable']}", flush=True)
        self.assertLess(of_locks, (1 + KNOWN_AGREE) * of_futex)
        self.assertGreater(of_locks + waits[futex, futex, "runnable"], (1 - KNOWN_AGREE) * of_futex)
        self.assertGreater(part("futex", ".*futex.*", "holder"), WAKER_MIN)
        self.assertEqual(len(known["terminal"]), 2)
        # They wait for a processor, too, before the first time that they take and after the last one.
        for pid, (seconds, _) in known["terminal"].items():
            slept = sum(s for (p, _, state), s in waits.items() if p == pid and state != "runnable")
            whole = sum(s for (p, *_), s in waits.items() if p == pid)
            print(f"  a reader: {seconds} s, slept {slept}, waited {whole}", flush=True)
            self.assertLess(slept, (1 + KNOWN_AGREE) * seconds + KNOWN_LINE)
            self.assertGreater(whole, (1 - KNOWN_AGREE) * seconds - KNOWN_LINE)
        asleep = [sum(s for (p, _, state), s in waits.items() if (p, state) == (pid, "sleeping")) for pid in known["terminal"]]
        print(f"  readers asleep {asleep}", flush=True)
        of_readers = [row for row in locks if row["kind"] == "mutex" and {row["waiter"], row["owner"]} == {"reader_a", "reader_b"}]
        terminal = max(of_readers, key=lambda row: row["period"])["lock"]
        held, elsewhere = (sum(row["period"] for row in of_readers if (row["lock"] == terminal) == its) / 1e9 for its in (True, False))
        # One waits for the mutex, and one for input. The kernel does not have them take turns. For their lines, they may meet at another.
        self.assertAlmostEqual(held, sum(asleep) / 2, delta=KNOWN_AGREE * sum(asleep) + KNOWN_LINE)
        self.assertLess(elsewhere, KNOWN_AGREE * held + KNOWN_LINE)
        for one, other in ("reader_a", "reader_b"), ("reader_b", "reader_a"):
            self.assertGreater(part(one, ".*mutex_lock.*", other), WAKER_MIN)
        self.assertGreater(part("holder", "hrtimer_nanosleep", "[interrupt]"), WAKER_MIN)

    def check_exact_waits(self):
        """Naps are as long as was asked for, but for one that was interrupted on its way to sleep; tasks that only compute wait for a
        processor; and looks find the same times, up to the panic."""
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["event"] != "task-clock"]
        end = max(sample["time-ns"] for sample in samples if sample["event"] == "off-cpu")
        seconds = collections.Counter()
        for sample in samples:
            if sample["time-ns"] <= end:
                seconds[sample["event"], sample["pid"]] += sample["period"] / 1e9
        exact = [sample for sample in samples if sample["event"] == "off-cpu"]
        naps = [sample["period"] / 1e9 for sample in exact if (sample["symbol"], sample["state"]) == ("hrtimer_nanosleep", "sleeping")]
        print(f"  naps {sorted(naps)}", flush=True)
        self.assertGreaterEqual(len([nap for nap in naps if nap > 0.99 * NAP_SECONDS]), NAPS)
        waits = collections.Counter()
        for sample in exact:
            waits[sample["comm"], sample["pid"], sample["state"]] += sample["period"] / 1e9
        spinners = sorted((wait for wait in waits if wait[::2] == ("user_spin_stati", "runnable")), key=waits.get)[-2:]
        (napper,) = {sample["pid"] for sample in exact if (sample["comm"], sample["symbol"]) == ("busybox", "do_wait")}
        self.assertGreater(waits["busybox", napper, "sleeping"], NAPS * NAP_SECONDS)
        for pid in napper, *(pid for _, pid, _ in spinners):
            by_switches, by_looks = seconds["off-cpu", pid], seconds["wall", pid]
            print(f"  pid {pid}: by switches {by_switches:.2f} s, by looks {by_looks:.2f} s", flush=True)
            self.assertAlmostEqual(by_switches, by_looks, delta=WAITS_AGREE * by_switches + WAITS_ENDS)
        for comm, pid, state in spinners:
            self.assertGreater(waits[comm, pid, state], 0.9 * seconds["off-cpu", pid])
        self.check_known_waits(exact)
        self.assertIn("every wait", self.run_program(VPROF, "report", "-i", self.recording)[0])
        contention = json.loads(self.run_program(VPROF, "report", "--contention", "--json", "-i", self.recording)[0])
        locks = {row["function"] for row in contention["rows"] if row["kind"] == "rwsem"}
        self.assertEqual([name for name in locks if not re.fullmatch("(__)?(percpu_)?down_(read|write).*", name)], [])

    def engine(self):
        """The only one."""
        (engine,) = json.loads(self.run_program(VPROF, "list", "--json")[0])
        return engine["status"]["pid"]

    def test_run(self):
        """Tasks of a guest of `vprof run`, by its engine, and their waits; then its kernel panics."""
        vprof = self.start(VPROF, "run", "--kernel", self.kernel, "--initrd", self.folder / "initrd", "--vcpus", 2, "-m", "256M",
                           "--append", "waits", "--console", self.console, "--no-report", "-o", self.recording, "--off-cpu", "--wall",
                           "--on-panic", "keep")
        self.vmm = vprof
        self.wait_for_init()
        which = self.engine()
        self.check_ps(which)
        running = [stack for stack in self.check_stacks(which) if stack["tasks"][0]["pid"] != 0]
        print(f"  runs: {[(stack['tasks'][0]['comm'], len(stack['frames'])) for stack in running]}", flush=True)
        self.assertTrue(any(stack["frames"] for stack in running))
        self.wait_for_panic()
        self.check_panicked(which)
        # The engine says so once the kernel has been silent for a while.
        time.sleep(PANIC_SECONDS)
        vprof.send_signal(signal.SIGINT)
        _, err = self.finish(vprof, status=94)
        self.assertIn("vprof-vmm: the guest has panicked and is kept: Kernel panic - not syncing: sysrq triggered crash", err)
        self.check_exact_waits()

    def wait_for_user_chains(self, recording):
        """Of a static program without frame pointers, in the last seconds: tables, stack and page tables are read from the guest's memory.
        Busybox has tables of the C library only."""
        def are_whole():
            so_far = self.report(recording)[0]["recording"]
            if so_far["samples"] < SAMPLES_MIN:
                return False
            last = so_far["last-ns"] / 1e9
            ends = self.report(recording, "--comm", "user_spin_stati", "--time", f"{last - USER_SECONDS:.9f},{last:.9f}")[0]["recording"]["chain-ends"]["user"]
            print(f"  {recording.name}: {so_far['samples']} samples, user space {ends}", flush=True)
            return ends["whole"] > USER_WHOLE_MIN * max(1, sum(ends.values()))
        harness.wait_until(are_whole, "chains in user space", 60)

    def start_recording(self, name, *which):
        """Until detach(). What it says is in a file."""
        with self.said(name).open("w") as said:
            vprof = self.start(VPROF, "attach", *which, "-g", "--no-report", "-o", self.folder / name, stderr=said)
        self.addCleanup(vprof.kill)

        def begun():
            if vprof.poll() is not None:
                self.fail(self.said(name).read_text())
            return (self.folder / name).exists()
        harness.wait_until(begun, "the recording", 30)
        return vprof

    def said(self, name):
        return self.folder / f"{name}.said"

    def wait_for_word(self, name, word):
        harness.wait_until(lambda: word in self.said(name).read_text(), word)

    def check_plug(self):
        """Memory that is plugged in is read: user space of programs that start afterwards is there, as Linux was told. A vCPU is followed."""
        vprof = self.start_recording("plug", "--pid", self.qemu.pid)
        self.tell("qmp-2", {"execute": "object-add", "arguments": {"qom-type": "memory-backend-memfd", "id": "more", "size": PLUGGED}},
                  {"execute": "device_add", "arguments": {"driver": "pc-dimm", "id": "dimm", "memdev": "more"}},
                  {"execute": "device_add", "arguments": {"driver": CPU, **SECOND_CPU}})
        self.wait_for_console("init: two processors")
        self.wait_for_samples(self.engine(), 2 * CPU_SAMPLES_MIN, vcpu=1)
        self.wait_for_user_chains(self.folder / "plug")
        self.detach(vprof, "plug")
        self.check_alive()
        samples = [sample for sample in perf.vprof_samples(self.folder / "plug") if sample["mode"] != "vmm"]
        tasks = collections.Counter(sample["comm"] for sample in samples if sample["vcpu"] == 1)
        print(f"  on the vCPU that was plugged in: {tasks.most_common(4)}", flush=True)
        self.assertGreater(tasks["user_spin_stati"], CPU_SAMPLES_MIN)
        (used,) = [os.stat(link).st_blocks * 512 for link in pathlib.Path(f"/proc/{self.qemu.pid}/fd").iterdir()
                   if os.readlink(link).startswith("/memfd:memory-backend-memfd")]
        print(f"  {used >> 10} KiB of what was plugged in are used", flush=True)
        self.assertGreater(used, 0)
        doctor = json.loads(self.run_program(VPROF, "doctor", "--pid", self.qemu.pid, "--json")[0])
        self.assertGreater(doctor["memory-bytes"], PLUGGED + (255 << 20))

    def pause(self, name):
        self.tell("qmp-2", {"execute": "stop"})
        self.wait_for_word(name, "is paused")
        time.sleep(PAUSE_SECONDS)
        self.tell("qmp-2", {"execute": "cont"})
        self.wait_for_word(name, "runs again")

    def end(self, vprof, name):
        """What it has said by its end."""
        self.finish(vprof)
        said = self.said(name).read_text()
        print(said, flush=True)
        return said

    def detach(self, vprof, name):
        vprof.send_signal(signal.SIGINT)
        return self.end(vprof, name)

    def check_pause(self):
        """A pause and a migration away, as KVM shows them, and as QEMU's monitor tells them."""
        saved = self.folder / "saved"
        pause = r"is paused; the recording goes on\n(.*\n)*.* runs again, after [1-9] s\n"
        by_kvm = self.start_recording("kvm", "--pid", self.qemu.pid)
        self.pause("kvm")
        self.assertRegex(self.detach(by_kvm, "kvm"), pause)
        by_monitor = self.start_recording("monitor", *self.guest())
        self.pause("monitor")
        self.tell("qmp-2", {"execute": "migrate", "arguments": {"uri": f"exec:cat >{saved}"}})
        said = self.end(by_monitor, "monitor")
        self.assertRegex(said, pause)
        self.assertIn("the guest has migrated to another host; attach again there", said)
        # Its process stays, and its memory is there still.
        by_kvm = self.start_recording("migrated", "--pid", self.qemu.pid)
        self.wait_for_word("migrated", "is paused, or has migrated away: its VMM has KVM log what it writes; the recording goes on")
        self.detach(by_kvm, "migrated")
        return saved

    def check_restored(self, saved):
        """The same guest elsewhere, attached to before its state comes in."""
        self.qemu.terminate()
        self.qemu.wait()
        other = self.start_qemu("other", "-incoming", "defer", "-object", f"memory-backend-memfd,id=more,size={PLUGGED}",
                                "-device", "pc-dimm,id=dimm,memdev=more", *TWO_CPUS,
                                "-device", ",".join([CPU, *(f"{key}={value}" for key, value in SECOND_CPU.items())]))
        harness.wait_for_socket(self.folder / "other-2")
        vprof = self.start_recording("restored", "--pid", other.pid)
        self.tell("other-2", {"execute": "migrate-incoming", "arguments": {"uri": f"exec:cat {saved}"}})
        # Its kernel is looked for when it runs, for some seconds.
        self.wait_for_word("restored", "has booted")
        self.wait_for_samples(self.engine(), RESTORED_MIN)
        self.detach(vprof, "restored")
        samples = [sample for sample in perf.vprof_samples(self.folder / "restored") if sample["mode"] != "vmm"]
        self.check_modes(samples)
        tasks = collections.Counter(sample["comm"] for sample in samples)
        print("  tasks", tasks.most_common(4), flush=True)
        for name in "user_spin_stati", "dd":
            self.assertGreater(tasks[name], 0.01 * len(samples))

    def test_life(self):
        """What becomes of a guest without libvirt while it is recorded."""
        self.boot(*TWO_CPUS, "-append", "console=ttyS0 panic=-1 quiet plugs")
        self.check_plug()
        self.check_restored(self.check_pause())

    def test_attach(self):
        self.boot()
        if self.series == "6.12":
            self.check_tasks_now()
            self.check_root()
        else:
            self.check_root()
            self.check_less()
            self.check_panic()


if __name__ == "__main__":
    harness.main()
