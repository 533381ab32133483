#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a probe of a function adds to a system call in a guest: by bpftrace in the guest, and by vprof. A Debian kernel with one
processor; on a machine whose KVM emulates guests, in a stock host (tests/README.md), with whole paths:

    VPROF_SOURCE=$PWD VPROF_BIN=$PWD/build/release/bin VPROF_GUESTS=$PWD/build/release/guests PYTHONPATH=$PWD/tests/support:$PWD/tests/host \\
        tests/host/stock_host.py run FOLDER 6.12 -- python3 $PWD/tests/bench/bench_bpftrace.py"""
import re
import signal

import harness
import one_liners
from harness import VPROF

FUNCTION = "kprobe:__x64_sys_getppid"
SCRIPTS = {"a false predicate": FUNCTION + " /arg0 == 1/ { @ = count(); }", "a count by a key": FUNCTION + " { @[comm] = count(); }"}
MEANS = "processor", "patch"
INIT = one_liners.WITH_BPFTRACE + """bench_calls "no probe"
for script in /bin/*.bt; do
	out=/out-${script##*/}
	/bpftrace/bin/bpftrace -B none $script >$out 2>&1 & tracer=$!
	until both $out || [ ! -e /proc/$tracer ]; do busybox usleep 200000; done
	busybox grep -q beat $out || busybox cat $out
	bench_calls "bpftrace ${script##*/}"
	busybox kill -INT $tracer
	wait $tracer
done
for number in 1 2 3 4; do
	until_told $number
	bench_calls "vprof $number"
done
until_told end
"""


class Bench(harness.ProgramTest):
    boot, tell, said, bpftrace = (getattr(one_liners.Lessons, name) for name in ("boot", "tell", "said", "bpftrace"))

    def figure(self, name):
        """Nanoseconds of a call with it, once they are there."""
        pattern = re.compile(f"^bench: {re.escape(name)}: (\\d+) ns", re.MULTILINE)
        harness.wait_until(lambda: pattern.search(self.said()) or self.engine.process.poll() is not None, name, 100)
        return int(pattern.search(self.said())[1])

    def traced(self, number, script, means):
        trace = self.start(VPROF, "trace", self.engine.path, "--breakpoints", means, "-e", one_liners.READY + script)
        self.wait_for_line(trace)
        self.tell(str(number))
        taken = self.figure(f"vprof {number}")
        trace.send_signal(signal.SIGINT)
        _, said = self.finish(trace)
        return taken, said.strip().splitlines()[-1]

    def test_calls(self):
        harness.need_program("bpftrace", "bpftrace")
        files = [harness.BIN / "bench_calls"]
        for number, script in enumerate(SCRIPTS.values()):
            files.append(self.folder / f"{number}.bt")
            files[-1].write_text(one_liners.BEAT.format(1) + script + "\n" + one_liners.BEAT.format(2))
        self.boot(INIT, files, self.bpftrace())
        self.engine.execute("guest-start")
        without = self.figure("no probe")
        print(f"  a call: {without} ns", flush=True)
        theirs = {name: self.figure(f"bpftrace {number}.bt") - without for number, name in enumerate(SCRIPTS)}
        number = 0
        for means in MEANS:
            for name, script in SCRIPTS.items():
                number += 1
                if harness.host_lacks("breakpoint" if means == "processor" else means):
                    continue
                taken, said = self.traced(number, script, means)
                ours = taken - without
                print(f"  {name}: bpftrace {theirs[name]} ns, vprof by {means} {ours} ns: {ours / theirs[name]:.1f} times; {said}", flush=True)


if __name__ == "__main__":
    harness.main()
