#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program of this host runs in the tiny kernel: its streams, its signals, its end, and a profile of it alone."""
import hashlib
import re
import shutil
import signal
import subprocess

import harness
import linux_guest
import perf
from harness import VPROF

BOOT_SECONDS = 500
PAGE = 4096
FLOOD_LINES = 270
FLOOD_TEXT = "of a flood that is wider than it is deep" + ", which is more than a pipe holds" * 6

FLOOD_SECONDS = 2

STORM_MAPPINGS = 300
STORM_BYTES_PER_SECOND = 2 << 20

# Says what it was given and what a base initramfs has, answers a signal, prints numbers as fast as they get out, marks a phase, floods its
# output, copies its input, and fails.
STREAMS = f"""#!/bin/sh
echo "arguments: $1 and $2 in $(pwd), COLOUR=$COLOUR LEFT_OUT=$LEFT_OUT"
echo "to standard error" >&2
trap 'caught=yes' USR1
cat /etc/from-base
echo "ready"
while [ -z "$caught" ]; do :; done
echo "caught USR1"
busybox timeout {FLOOD_SECONDS} busybox seq 1 1000000000
echo
echo "after the numbers"
vprof-agent mark flood begin
i=0
while [ $i -lt {FLOOD_LINES} ]; do
	echo "line $i {FLOOD_TEXT}"
	i=$((i + 1))
done
vprof-agent mark flood end
echo "begin pipe" >/run/vprof-agent.marks
echo "input:"
cat
echo "end pipe" >/run/vprof-agent.marks
exit 3
"""
# Counts its runs, measures itself, and crashes in the fourth.
REPEATS = """#!/bin/sh
read runs </tmp/runs
runs=$((runs + 1))
echo $runs >/tmp/runs
echo "run $runs"
printf 'vprof: metric ops=%d00 1/s\\nvprof: metric worse=-1\\n' $runs
printf 'vprof: metric latency=0.%d ms\\n' $runs >&2
[ $runs -lt 4 ] || kill -SEGV $$
"""

# Puts zeros where the code of the guest's init is. The kernel panics without it.
KILLS_THE_AGENT = """#!/bin/sh
echo "before the panic"
exec busybox dd if=/dev/zero of=/proc/1/mem bs=4096 seek={first} count={number} conv=notrunc
"""

FLOOD = "".join(f"line {i} {FLOOD_TEXT}\n" for i in range(FLOOD_LINES))
INPUT = "".join(f"{i} squared is {i * i}\n" for i in range(500))


def code_pages(program):
    """The number of the first page with code, and how many there are."""
    headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    (segment,) = re.findall(r"^  LOAD +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) R E ", headers, re.MULTILINE)
    address, size = (int(word, 16) for word in segment)
    return address // PAGE, (address + size - 1) // PAGE - address // PAGE + 1


class Exec(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.kernel = harness.script("kernel-tiny.sh")
        self.recording = self.folder / "recording"

    def script(self, text):
        path = self.folder / "script"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def begin(self, command, *options, **process):
        return self.start(VPROF, "run", "--kernel", self.kernel, "--exec", command, "--memory", linux_guest.TINY_MEMORY, "-o", self.recording,
                          "--no-report", *options, cwd=self.folder, **process)

    def recorded(self):
        """What the recording says of its run."""
        return self.report(self.recording)[0]["recording"]

    def check_numbers(self, out):
        first, *numbers, cut = out.splitlines()
        self.assertEqual(first, "caught USR1")
        self.assertEqual(numbers, [str(i) for i in range(1, len(numbers) + 1)])
        self.assertTrue(str(len(numbers) + 1).startswith(cut), cut)
        self.assertGreater(len(out), 30_000)
        print(f"{len(out)} bytes in {FLOOD_SECONDS} s", flush=True)

    def test_streams(self):
        """Nothing of them is lost, and nothing stands still."""
        self.script(STREAMS)
        (self.folder / "etc").mkdir()
        (self.folder / "etc/from-base").write_text("from the base\n")
        subprocess.run(["bsdtar", "--format=newc", "-C", self.folder, "-cf", self.folder / "base", "etc"], check=True)
        busybox = shutil.which("busybox")
        vprof = self.begin("./script 'the first' second", "--env", "COLOUR=blue", "--initrd", "base", "--add", f"{busybox}:/bin/busybox",
                           "--add", "/bin/cat", stdin=-1, env={"PATH": "/usr/bin:/bin", "LEFT_OUT": "is not inherited"})
        lines = []
        while "ready\n" not in lines:
            lines.append(vprof.stdout.readline())
            self.assertNotEqual(lines[-1], "", vprof.stderr.read() if lines[-1] == "" else "")
        vprof.send_signal(signal.SIGUSR1)
        rest, messages = self.finish(vprof, status=3, timeout=BOOT_SECONDS, typed=INPUT)
        self.assertEqual("".join(lines), f"arguments: the first and second in {self.folder}, COLOUR=blue LEFT_OUT=\n"
                                         "from the base\nready\n")
        numbers, _, rest = rest.partition("after the numbers\n")
        self.check_numbers(numbers)
        self.assertEqual(hashlib.sha256(rest.encode()).hexdigest(), hashlib.sha256(f"{FLOOD}input:\n{INPUT}".encode()).hexdigest())
        self.assertIn("to standard error\n", messages)
        self.assertIn("script exited with status 3\n", messages)
        self.assertNotIn("Linux version", messages)
        phases = {name: self.report(self.recording, "--phase", name)[0]["recording"]
                  for name in ("repeat-1", "flood", "pipe")}
        self.assertLess(phases["flood"]["last-ns"], phases["pipe"]["first-ns"])
        self.assertGreater(phases["flood"]["samples"], 50)
        # The session begins a little before the command.
        self.assertGreater(phases["repeat-1"]["samples"], 0.5 * self.recorded()["samples"])

    def test_mappings(self):
        """Of a kernel that says nothing of its types, the agent knows what its processes have mapped."""
        bare = self.folder / "vmlinux"
        harness.need_program("strip", "binutils")
        self.run_program("strip", "--strip-debug", "-o", bare, self.kernel, timeout=120)
        self.kernel = bare
        program = harness.BIN / "user_spin"
        vprof = self.begin(f"{program} 4", "-F", 500)
        out, messages = self.finish(vprof, timeout=BOOT_SECONDS)
        self.assertEqual(out, "user_spin: done\n", messages)
        report, rows = self.report(self.recording, "--sort", "mode,module,sym")
        missing = report["recording"]["missing"]
        print(missing, rows[:8], flush=True)
        self.assertTrue(any(sentence.startswith("tasks: ") for sentence in missing), missing)
        self.assertIn("mapped files: those that the agent in the guest has told", missing)
        user = [row for row in rows if row["mode"] == "user"]
        spin = sum(row["samples"] for row in user if (row["module"], row["symbol"]) == (str(program), "spin_in_user_mode"))
        self.assertGreater(spin, 0.8 * sum(row["samples"] for row in user))
        self.assertGreater(spin, 20)
        script = perf.perf("script", "-i", self.recording, "--show-mmap-events", "--show-task-events", "-F", "ip")
        self.assertRegex(script, rf"PERF_RECORD_MMAP 0/0: .* x? ?{program}")
        self.assertRegex(script, r"PERF_RECORD_COMM: user_spin:\d+/\d+")

    def test_mappings_go(self):
        """Where a program is mapped for a while, the recording says when that is over; to perf, too."""
        program = harness.BIN / "user_spin"
        out, messages = self.finish(self.begin(f"{program} 3 more", "-F", 200), timeout=BOOT_SECONDS)
        mapped, = re.findall(r"user_spin: mapped at ([0-9a-f]+)\n", out)
        script = perf.perf("script", "-i", self.recording, "--show-mmap-events", "-F", "ip")
        records = re.findall(r"PERF_RECORD_MMAP2? (\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\).*\]: \S+ (\S+)", script)
        said = [(pid, name) for pid, start, size, name in records
                if int(start, 16) <= int(mapped, 16) < int(start, 16) + int(size, 16)]
        print(mapped, said, flush=True)
        # Once more for each other change of its mappings meanwhile, as of the build-ids of those.
        self.assertEqual({name for _, name in said[:-1]}, {str(program)}, script[:3000])
        self.assertEqual(said[-1], (said[0][0], "[unmapped]"))
        user = [row for row in self.report(self.recording, "--sort", "mode,sym")[1] if row["mode"] == "user"]
        self.assertEqual(user[0]["symbol"], "spin_in_user_mode", messages)

    def test_map_storm(self):
        """A program with many mappings that forks in a loop: no sample is lost, and the recording stays small."""
        program = harness.BIN / "map_storm"
        out, messages = self.finish(self.begin(f"{program} {STORM_MAPPINGS} 6"), timeout=BOOT_SECONDS)
        self.assertEqual(out, "map_storm: done\n")
        self.assertNotIn("lost", messages)
        recorded = self.recorded()
        total = recorded["statistics"]["total"]
        print({name: total[name] for name in ("sample", "dropbuf-sample", "dropevt", "mappings-later", "build-ids-later")}, flush=True)
        self.assertEqual((recorded["lost"], total["dropbuf-sample"], total["dropevt"]), (0, 0, 0))
        self.assertGreater(total["mappings-later"], 0)
        seconds = (recorded["last-ns"] - recorded["first-ns"]) / 1e9
        size = self.recording.stat().st_size
        print(f"{size} bytes in {seconds:.1f} s", flush=True)
        self.assertLess(size, (seconds + 1) * STORM_BYTES_PER_SECOND)
        user = [row for row in self.report(self.recording, "--sort", "mode,module,sym")[1] if row["mode"] == "user"]
        # Each child has all mappings; the one that it runs in is told first.
        self.assertEqual((user[0]["module"], user[0]["symbol"]), (str(program), "spin_in_child"), user[:5])

    def test_repeats(self):
        self.script(REPEATS)
        (self.folder / "runs").write_text("0\n")
        vprof = self.begin("./script", "--add", "runs:/tmp/runs", "--warmup", 1, "--repeat", 5, "-F", 500)
        out, messages = self.finish(vprof, status=128 + signal.SIGSEGV, timeout=BOOT_SECONDS)
        self.assertEqual(out, "".join(f"run {run}\nvprof: metric ops={run}00 1/s\nvprof: metric worse=-1\n"
                                      for run in range(1, 5)))
        self.assertIn("invalid metric in the command's output in repeat-1: the value is no", messages)
        self.assertIn("script was ended by signal 11 (Segmentation fault)\n", messages)
        recorded = self.recorded()
        runs = recorded["exec"]["runs"]
        self.assertEqual([run["phase"] for run in runs], ["warmup-1", "repeat-1", "repeat-2", "repeat-3"])
        self.assertEqual([(run["status"], run["signal"]) for run in runs], [(0, 0)] * 3 + [(0, signal.SIGSEGV)])
        for number, run in enumerate(runs, 1):
            self.assertCountEqual(run["metrics"], [{"name": "ops", "value": 100 * number, "unit": "1/s"},
                                                   {"name": "latency", "value": number / 10, "unit": "ms"}])
            self.assertGreater(run["wall-ns"], 0)
            self.assertGreater(run["user-ns"] + run["system-ns"], 0)
        marks = recorded["marks"]
        self.assertEqual([(mark["name"], mark["kind"]) for mark in marks],
                         [(run["phase"], kind) for run in runs for kind in ("begin", "end")])
        times = [mark["time-ns"] for mark in marks]
        self.assertEqual(times, sorted(times))
        # Nothing of the boot or the warm-up; the agent is asked for the first repetition when the session has begun.
        sampled = [sample["time-ns"] for sample in perf.vprof_samples(self.recording)]
        self.assertGreater(len(sampled), 10)
        self.assertGreater(min(sampled), times[1])
        self.assertLess(min(sampled), times[3])

    def test_time_limit(self):
        self.script("#!/bin/sh\ntrap '' TERM\necho endless\nexec sleep 1000\n")
        vprof = self.begin("./script", "--add", "/bin/sleep", "--time-limit", "5s", "-F", 100)
        out, messages = self.finish(vprof, status=124, timeout=BOOT_SECONDS)
        self.assertEqual(out, "endless\n")
        self.assertIn("script was ended: its time limit of 5 s is over\n", messages)
        (run,) = self.recorded()["exec"]["runs"]
        # It is up and ignores SIGTERM by then; SIGKILL comes five seconds later.
        self.assertEqual((run["status"], run["signal"], run["time-limit"]), (0, signal.SIGKILL, True))
        self.assertGreater(run["wall-ns"], 10e9)

    def test_panic(self):
        harness.need_program("readelf", "binutils")
        first, number = code_pages(harness.BIN / "vprof-agent")
        self.script(KILLS_THE_AGENT.format(first=first, number=number))
        busybox = shutil.which("busybox")
        vprof = self.begin("./script", "--add", f"{busybox}:/bin/busybox")
        out, messages = self.finish(vprof, status=94, timeout=BOOT_SECONDS)
        self.assertEqual(out, "before the panic\n")
        self.assertRegex(messages, "Kernel panic - not syncing: Attempted to kill init!.*, before the command had ended")
        self.assertRegex(messages, r"Last console lines:\n(.*\n)*.*RIP: 0033:")


if __name__ == "__main__":
    harness.main()
