#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Call chains of Debian's own programs, which have no frame pointers, up to their _start."""
import json
import os
import random
import threading

import harness
from harness import VPROF
from linux_guest import LinuxTest, leaves

COMMAND = """
python3.11 -I -S {sleeper} &
sort -o /tmp/sorted {lines}
i=0; while [ $i -lt 15 ]; do find / -xdev -name '*z*x' -o -name '*.nothing'; i=$((i + 1)); done
perl -e '{perl}'
python3.11 -I -S {python}
sqlite3 :memory: '{sql}'
openssl speed -seconds 1 -bytes 1024 sha256
{jit} 2
{cc1} -fpreprocessed -quiet -O2 -o /dev/null {source}
"""
PERL = "for my $i (1 .. 20000) { push @x, sprintf q(%x), $i * 7919 % 65537 } print scalar(grep { /^a.*f/ } sort @x)"
PYTHON = """
def digits(i):
    return len(repr(sorted(str(i * j) for j in range(40))))

class Work:
    def all(self):
        return sum(map(digits, range(1200)))

print(Work().all())
"""
# What calls digits: map() is C, which executes it in an interpreter of its own.
PYTHON_CALLERS = ["py::<module>", "py::Work.all", "py::digits"]
INTERPRETER = "_PyEval_EvalFrameDefault"
# It waits until the guest ends.
SLEEPER = """
import time

def wait(seconds):
    print("it waits", flush=True)
    time.sleep(seconds)

list(map(wait, [10000]))
"""
SQL = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000) "
       "SELECT count(*), sum(length(hex(x))) FROM (SELECT x FROM c ORDER BY x * 7919 % 65537);")
PROGRAMS = "sort", "find", "perl", "python3.11", "sqlite3", "openssl", "cc1"
LINES, FUNCTIONS = 15_000, 8
SAMPLES_MIN = 300
EACH_MIN = 15
WHOLE_MIN = 0.98  # of all, and of each program within the error of its number of samples
SECONDS = 180


def functions():
    """C that takes a compiler a while."""
    return "".join(f"int f{i}(int *p, int n) {{ int s = {i}; for (int k = 0; k < n; k++) {{ s += p[k] * (k ^ {i}); if (s > {i * 7}) s -= p[n - k - 1]; }} return s; }}\n"
                   for i in range(FUNCTIONS))


class Programs(LinuxTest):
    engine = f"user_chains-{os.getpid()}"

    def check_compiled(self):
        """Code that was compiled at run time has the names of the perf map and the jitdump that its process has written and left behind."""
        report, rows = self.report(self.recording, "--comm", "jit_spin", "--mode", "user", "--sort", "module,sym")
        jit = {row["symbol"]: row["samples"] for row in rows if row["module"].endswith(".map")}
        print(f"  compiled at run time: {jit}, of {len(rows)} rows {[(row['module'], row['symbol'], row['samples']) for row in rows[:4]]}", flush=True)
        self.assertEqual(set(jit), {"jit one", "jit three"})
        self.assertNotIn(".dump", str(report["recording"]["missing"]))
        total = sum(jit.values())
        self.assertGreater(total, EACH_MIN)
        self.assertAlmostEqual(jit["jit three"] / total, 0.75, delta=4 * (0.75 * 0.25 / total) ** 0.5)

    def check_python(self, script):
        """Python's functions call each other, each in front of the interpreter that executes it."""
        calls = self.report(self.recording, "--comm", "python3.11", "-g", "--percent-limit", "0.0001")[0]["tables"][0]["calls"]
        total, right, executed = 0, 0, 0
        for path, samples in leaves(calls):
            of_script = [i for i, node in enumerate(path) if node["symbol"].startswith("py::") and node["module"] == str(script)]
            names = [path[i]["symbol"] for i in of_script]
            if "py::digits" not in names:
                continue
            total += samples
            right += samples if names[:3] == PYTHON_CALLERS else 0
            inner = path[of_script[names.index("py::Work.all")] + 1]["symbol"]
            executed += samples if inner == INTERPRETER else 0
        print(f"  in digits: {total} samples, {right} with its callers, {executed} of these executed by {INTERPRETER}", flush=True)
        self.assertGreater(total, 2 * EACH_MIN)
        self.assertGreater(right, 0.97 * total)
        self.assertGreater(executed, 0.97 * total)

    def output_take(self, vprof, waits):
        """Of the guest's programs, until the end; sets `waits` once the one that waits says so, or they have ended."""
        for line in vprof.stdout:
            if line.strip() == "it waits":
                waits.set()
        waits.set()

    def check_waiting_python(self, sleeper):
        """One look at a program in Python that waits has the functions of both."""
        stacks = json.loads(self.run_program(VPROF, "stack", "--json", self.engine, "python3.11")[0])["stacks"]
        frames = [[(frame["symbol"], frame["module"]) for frame in stack["frames"]] for stack in stacks]
        pythons = [[name for name, module in stack if module == str(sleeper)] for stack in frames]
        self.assertIn(["py::wait", "py::<module>"], pythons, frames)
        names = [name for name, _ in frames[pythons.index(["py::wait", "py::<module>"])]]
        self.assertLess(names.index("hrtimer_nanosleep"), names.index("py::wait"))
        self.assertEqual(names[names.index("py::wait") - 1], INTERPRETER)

    def test_chains_are_whole(self):
        numbers = random.Random(1)
        lines, command, source = self.folder / "lines", self.folder / "command", self.folder / "functions.i"
        lines.write_text("".join(f"{numbers.random()} line\n" for _ in range(LINES)))
        source.write_text(functions())
        script, sleeper = self.folder / "work.py", self.folder / "sleeper.py"
        script.write_text(PYTHON)
        sleeper.write_text(SLEEPER)
        cc1 = self.run_program("gcc", "-print-prog-name=cc1")[0].strip()
        command.write_text(COMMAND.format(lines=lines, perl=PERL, python=script, sleeper=sleeper, sql=SQL, cc1=cc1, source=source, jit=harness.BIN / "jit_spin"))
        kernel = harness.script("kernel-debian.sh", "6.12", "cloud")
        programs = [f"/usr/bin/{name}" for name in PROGRAMS if name != "cc1"]
        files = lines, command, source, script, sleeper, cc1, harness.BIN / "jit_spin", "/usr/lib/python3.11/encodings", *programs
        vprof = self.start(VPROF, "run", "--kernel", kernel, "--name", self.engine, "--memory", "512M",
                           "--vcpus", 2, "--append", "quiet", "-F", 500, "-g", "--call-depth", 127,
                           "-o", self.recording, "--no-report", *(word for file in files for word in ("--add", file)),
                           "--exec", f"/bin/sh {command}")
        waits = threading.Event()
        output = threading.Thread(target=self.output_take, args=(vprof, waits))
        output.start()
        self.assertTrue(waits.wait(SECONDS))
        self.check_waiting_python(sleeper)
        output.join()
        self.finish(vprof, timeout=SECONDS)
        # What a task runs before its execve(2) is over, it runs under another name.
        report, rows = self.report(self.recording, "--comm", ",".join(PROGRAMS), "--sort", "comm")
        self.assertEqual({row["comm"] for row in rows}, set(PROGRAMS))
        ends = report["recording"]["chain-ends"]["user"]
        total = sum(ends.values())
        print(f"  {total} samples with a chain of user space: {ends}; {report['recording']['unwind-tables']}", flush=True)
        self.assertGreater(total, SAMPLES_MIN, ends)
        self.assertGreater(ends.get("whole", 0), WHOLE_MIN * total, ends)
        for name in PROGRAMS:
            own = self.report(self.recording, "--comm", name)[0]["recording"]["chain-ends"]["user"]
            whole, number = own["whole"], sum(own.values())
            print(f"  {name}: {whole} of {number} whole, {({end: n for end, n in own.items() if n and end != 'whole'})}", flush=True)
            self.assertGreater(number, EACH_MIN, name)
            self.assertGreaterEqual(whole, WHOLE_MIN * number - 3 * (WHOLE_MIN * (1 - WHOLE_MIN) * number) ** 0.5, name)
        self.check_compiled()
        self.check_python(script)
        self.assertNotIn("unwind tables", "".join(report["recording"].get("missing") or []))


if __name__ == "__main__":
    harness.main()
