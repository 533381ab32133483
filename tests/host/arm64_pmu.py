#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The PMU of a stock arm64 host in an emulator that counts instructions: each takes four nanoseconds, a nanosecond is a cycle. So what is
counted is known, an overflow comes when it is due, and how late the exit comes does not depend on this machine."""
import json

import arm64_host
import demo_shares
import harness
from arm64_host import ARM64

SECONDS = 200
ICOUNT = "shift=2,sleep=off"
CYCLES = 4  # of an instruction
TURNS = 25_000_000  # own_count.S: of two instructions
CLOSE = 0.01
PERIOD = 1_000_000
HZ = 1000
DEMO = "--demo --append seconds=1"
SAMPLED = {  # what is sampled, and how; the modes that the events count in
    "user": (f"-e cycles:u -c {PERIOD}", {"cycles:u": {"user"}}),
    "kernel": (f"-e cycles:k -c {PERIOD} --delivery sigtrap", {"cycles:k": {"kernel"}}),
    "frequency": (f"-e cycles -F {HZ}", {"cycles": {"user", "kernel"}}),
    "setsig": (f"-e cycles:u,cycles:k -c {PERIOD} --delivery setsig", {"cycles:u": {"user"}, "cycles:k": {"kernel"}}),
    "sigmask": (f"-e cycles,instructions -c {PERIOD} --delivery sigmask",
                {"cycles": {"user", "kernel"}, "instructions": {"user", "kernel"}}),
}
SAMPLES_MIN = 150  # of cycles, half as many as there are of the rarest event
TAIL = 1e-4 / (2 * len(demo_shares.SHARES) * 3)  # three reports of shares: one false alarm in 10,000 runs
MISSED_MAX = 0.1
LATE_MEDIAN_MAX, LATE_P90_MAX, LATE_P99_MAX = 1.1, 1.5, 4
# Several times as often as the host's kernel lets it be.
THROTTLED_PERIOD, THROTTLED_HZ = PERIOD // 4, 1000
THROTTLED_CLOSE = 0.15
# Eleven, for seven counters. A raw event by another name is another event.
MANY = [event + mode for event in ("cycles", "r11", "r0011", "instructions") for mode in ("", ":u", ":k")][:11]
MANY_CLOSE = 0.2  # of counts of a part of the time, two of which differ by a twentieth: the modes of the guest take turns as the events do
MODES_CLOSE = 0.1  # of the shares of modes
ESTIMATE_CLOSE = 0.3

JOB = """
bin={bin}
cd /run/shared
section own
for event in cycles instructions; do
	rm -f console
	$bin/vprof stat --kernel $bin/guest-own_count.elf --pmu kvm -e $event --console console --json 2>/dev/null >own_$event.json
	while [ ! -s console ]; do sleep 0.1; done
	cat console
done
section filter
rm -f console
$bin/vprof stat --kernel $bin/guest-own_count.elf --pmu kvm --pmu-filter deny:instructions -e instructions --console console --json 2>&1 >filter.json
while [ ! -s console ]; do sleep 0.1; done
cat console

section sampled
{sampled}
section throttled
echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent
echo {throttled_hz} >/proc/sys/kernel/perf_event_max_sample_rate
$bin/vprof run {demo} -e cycles -c {throttled_period} --no-report -o throttled.data 2>&1
echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent

section many
$bin/vprof stat {demo} -e {many} --json 2>/dev/null >many.json
$bin/vprof stat {demo} -e cycles,instructions:u --json 2>/dev/null >two.json
$bin/vprof run {demo} -e {many} 2>&1

section host
$bin/vprof-vmm --kernel $bin/demo-guest.elf --append seconds=60 --vcpus 2 --console none --control /tmp/guest.sock &
engine=$!
while [ ! -S /tmp/guest.sock ]; do sleep 0.1; done
$bin/vprof counter host /tmp/guest.sock
$bin/vprof counter count /tmp/guest.sock -e cycles,cycles:u,cycles:k,instructions --duration 1 --json >count.json
$bin/vprof counter count /tmp/guest.sock -e cycles --estimate --duration 1 --json >estimate.json
$bin/vprof counter record /tmp/guest.sock -e cycles:u -c {period} --duration 1 --no-report -o counter.data 2>&1
section tasks
$bin/vprof counter count /tmp/guest.sock -e cycles --cr3 0x1000 --duration 1 2>&1
$bin/vprof counter count /tmp/guest.sock -e cycles -p 1 --estimate --duration 1 2>&1
kill $engine
wait
"""


def near(value, expected, share):
    return abs(value - expected) <= share * expected


class Arm64Pmu(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        arm64_host.need_host()

    def json_of(self, name):
        return json.loads((self.host.shared / f"{name}.json").read_text())

    def events_of(self, name):
        """What each event counted, scaled to all of the time, and for which share of that it had a counter."""
        return {event["event"]: (event["value"] * event["enabled-ns"] / event["running-ns"], event["running-ns"] / event["enabled-ns"])
                for event in self.json_of(name)["events"]}

    def own_counts(self, text):
        return [[int(number, 16) for number in line.split()[1:]] for line in text.splitlines() if line.startswith("own: ")]

    def check_filter(self, text):
        """What the guest may not count stands still for it; the host counts it."""
        (cycles, instructions), = self.own_counts(text)
        self.assertTrue(near(cycles, 2 * TURNS * CYCLES, CLOSE), cycles)
        self.assertEqual(instructions, 0)
        (counted, _), = self.events_of("filter").values()
        self.assertTrue(near(counted, 2 * TURNS, CLOSE), counted)

    def check_own(self, text):
        """A loop of known length: the guest's own count, and what the host has counted of the whole guest."""
        own = self.own_counts(text)
        self.assertEqual(len(own), 2, text)
        for (cycles, instructions), event in zip(own, ("cycles", "instructions")):
            (counted, share), = self.events_of(f"own_{event}").values()
            print(f"{event}: the guest's own count {cycles if event == 'cycles' else instructions}, the host's {counted:.0f}", flush=True)
            self.assertEqual(share, 1)
            self.assertTrue(near(instructions, 2 * TURNS, CLOSE), instructions)
            self.assertTrue(near(cycles, 2 * TURNS * CYCLES, CLOSE), cycles)
            self.assertTrue(near(counted, cycles if event == "cycles" else instructions, CLOSE), counted)

    def check_lateness(self, table):
        late = table["lateness"]
        print(f"  {table['event']}: {table['samples']} samples; from one to the next, median {late['median']}, 90 % {late['p90']}, "
              f"99 % {late['p99']} periods", flush=True)
        self.assertLess(late["median"], LATE_MEDIAN_MAX)
        self.assertLess(late["p90"], LATE_P90_MAX)
        self.assertLess(late["p99"], LATE_P99_MAX)

    def check_sampled(self, name, options, modes):
        """Each overflow was an exit, and found the guest in a mode that the event counts."""
        report, _ = self.report(self.host.shared / f"{name}.data")
        total = report["recording"]["statistics"]["total"]
        print(f"{options}: {total['overflow']} overflows, {total['sample']} samples, {total['filtered']} found in another mode, "
              f"{total['throttled']} coalesced", flush=True)
        self.assertEqual(total["overflow"], total["sample"] + total["filtered"])
        self.assertLess(total["filtered"] + total["throttled"], MISSED_MAX * total["overflow"])
        self.assertEqual(total["sample"], report["recording"]["samples"])
        self.assertEqual({table["event"] for table in report["tables"]}, set(modes))
        for table in report["tables"]:
            self.assertLessEqual({row["mode"] for row in table["rows"]}, modes[table["event"]] | {"vmm"})
            if "-c" in options.split():
                self.check_lateness(table)
            if "instructions" in table["event"]:
                continue
            self.assertGreater(table["samples"], SAMPLES_MIN)
            if modes[table["event"]] == {"user", "kernel"}:
                demo_shares.check(self, table["rows"], TAIL)

    def check_throttled(self, text):
        """The host's kernel stops the event, and lets it go on at its next tick: what is missing is said, and no part of the guest misses more
        than another."""
        report, rows = self.report(self.host.shared / "throttled.data")
        total = report["recording"]["statistics"]["total"]
        counted = sum(row["period"] for row in rows)
        whole, _ = self.events_of("two")["cycles"]
        print(f"throttled {total['throttles']} times, for {total['throttled-ns'] / 1e9:.3f} s; {total['sample']} samples of {counted} of "
              f"{whole:.0f} cycles", flush=True)
        self.assertIn(f"the host's kernel stopped events {total['throttles']} times", text)
        self.assertGreater(total["throttles"], 0)
        self.assertLess(counted, whole / 2)
        # A nanosecond is a cycle.
        self.assertTrue(near(counted + total["throttled-ns"], whole, THROTTLED_CLOSE), text)
        self.assertEqual(total["overflow"], total["sample"])
        demo_shares.check(self, rows, TAIL)

    def check_many(self, text):
        """More events than counters take turns, and agree with two that need not."""
        counted, two = self.events_of("many"), self.events_of("two")
        print({event: f"{value:.0f}, {100 * share:.1f} %" for event, (value, share) in counted.items()}, flush=True)
        self.assertEqual([share for _, share in two.values()], [1, 1])
        for event, (value, share) in counted.items():
            self.assertLess(share, 0.9, event)
            same = event.replace("r0011", "cycles").replace("r11", "cycles")
            self.assertTrue(near(value, counted[same][0], MANY_CLOSE), event)
        for event, (value, _) in two.items():
            self.assertTrue(near(counted[event][0], value, MANY_CLOSE), event)
        self.assertIn("--event takes 8 names at most", text)

    def check_counter(self, host, tasks):
        """Counts, estimates and samples of a counter beside the session; tasks need a kernel that has some."""
        self.assertRegex(host, r"(?m)^PMU: Arm PMU, version 3$")
        self.assertRegex(host, r"(?m)^cycles +perf-hardware ")
        both, user, kernel, instructions = (counter["value"] for counter in self.json_of("count"))
        self.assertTrue(near(user + kernel, both, CLOSE * 5), (user, kernel, both))
        self.assertTrue(near(instructions * CYCLES, both, CLOSE * 5), (instructions, both))
        estimate, = self.json_of("estimate")
        print(f"cycles: {both} counted in a second, {estimate['value']} by samples: {estimate['modes']}", flush=True)
        # Of another second, in which exits took a part.
        self.assertTrue(near(estimate["value"], both, ESTIMATE_CLOSE), estimate)
        self.assertTrue(near(estimate["modes"]["user"] / estimate["value"], user / both, MODES_CLOSE), estimate)
        report, rows = self.report(self.host.shared / "counter.data")
        self.assertEqual({row["mode"] for row in rows}, {"user"})
        self.check_lateness(report["tables"][0])
        self.assertIn('guests of arm64 have no "cr3"', tasks)
        self.assertIn("cannot tell the guest's tasks apart", tasks)

    def test_pmu(self):
        self.host = arm64_host.Arm64Host(self)
        sampled = "".join(f"$bin/vprof run {DEMO} {options} --no-report -o {name}.data 2>&1\n" for name, (options, _) in SAMPLED.items())
        parts = self.host.sections(JOB.format(bin=ARM64, demo=DEMO, sampled=sampled, many=",".join(MANY), period=PERIOD, throttled_period=THROTTLED_PERIOD,
                                              throttled_hz=THROTTLED_HZ), SECONDS, ICOUNT)
        self.check_own(parts["own"])
        self.check_filter(parts["filter"])
        for name, (options, modes) in SAMPLED.items():
            self.check_sampled(name, options, modes)
        self.check_throttled(parts["throttled"])
        self.check_many(parts["many"])
        self.check_counter(parts["host"], parts["tasks"])


if __name__ == "__main__":
    harness.main()
