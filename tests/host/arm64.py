#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The cross build, on a stock arm64 host (arm64_host.py): the demonstration guest and Debian's kernel under KVM, sampled by hardware
cycles; the unit tests that need such a host; reports beside those of this machine; and recordings of Debian's perf there. The host boots once and does
everything in turn."""
import gzip
import json
import os
import pathlib
import re
import struct
import subprocess

import arm64_host
import demo_shares
import harness
from arm64_host import ARM64
from harness import BIN, VPROF

SOURCE = harness.SOURCE
SECONDS = 400
UNIT_FACTOR = 40 * int(os.environ.get("VPROF_TEST_SLOWNESS", 1))  # of a test's limits: its programs are emulated
# perf and the libraries that only it needs.
PERF = "linux-perf", "libbabeltrace1", "libcap2", "libexpat1", "libnuma1", "libopencsd1", "libperl5.36", "libpython3.11", "libslang2", "libunwind8"
PERIOD = 1000000
SAMPLES_MIN = 100  # ten times fewer than there are
TAIL = 1e-4 / (2 * len(demo_shares.SHARES))  # one false alarm in 10,000 runs
# Cycles: at 1 GHz, some hundreds of samples. QEMU's overflows come late, and those that are due together come as one.
DEMO_PERIOD = 4000000
DEMO_SAMPLES_MIN = 100
DEMO_PATHS = {  # the callers of each function
    "render_page": ["user_main", "round_run"], "parse_request": ["user_main", "round_run"],
    "tcp_checksum": ["syscall_entry", "system_call"], "copy_page": ["syscall_entry", "system_call"],
}
DEMO_PHASES = 0x40, 0x60  # vmm/demo/kernel.c writes them to the register that the device tree names
PROBE_HITS = 20
PROBE_CHAIN = ["tcp_checksum", "system_call", "syscall_entry"]
PROBE_REFUSALS = [
    *(f"cannot place {probe}: guests of arm64 have no probes of this kind"
      for probe in ("tracepoint:sched:sched_switch", "syscall:read:return", "io:0x80", "msr:0x10")),
    "cannot place syscall:read: the guest's kernel has no function",
    "is in the middle of an instruction",
    'there is no register "rip"; an event can have x0 to x30, sp, pc and pstate',
]
LOOKS_MIN = 5
EXACT_STEPS_MIN = 100  # ten times fewer than there are
# Debian's kernel. Its console would take as long as all the rest, and the tests of its cryptography half of that.
LINUX_PERIOD = 8000000
LINUX_SAMPLES_MIN = 300  # several times fewer than there are
# Of the chains in the kernel; and a few while it exchanges its own page tables.
LINUX_CHAINS_WHOLE = 0.999
LINUX_CHAINS_CUT = 3
# Where they begin, but in the kernel before it has mapped itself; and the first and the last instructions of an exception.
LINUX_ROOTS = {"__primary_switched", "__secondary_switched", "ret_from_fork", "el0t_64_sync", "el0t_64_irq"}
LINUX_EDGES = ["vectors"], ["ret_to_user"]
LINUX_ROOTS_KNOWN = 0.98
# In there, perf counts and samples by the PMU that the guest has: KVM's. With the kernel's names it would take most of the time.
LINUX_PERF_PERIOD = 2000000
TYPED = "typed in"
LINUX_FILES = {
    "work": "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done\n",
    "inside": f"""
uname -m
nproc
read -r line
echo "read: $line"
cd /tmp
mount --bind /dev/null /proc/kallsyms
vprof-agent mark counted begin
perf stat -x, -e cycles:u,cycles:k sh /bin/work 2>&1
vprof-agent mark counted end
perf record -q -BN -e cycles -c {LINUX_PERF_PERIOD} -g -o own sh /bin/work
perf report -i own --stats 2>/dev/null
exit 5
""",
}
LINUX_OWN_SAMPLES_MIN = 30
REPORTS = {
    "report": "report -i arm64.data --kernel vmlinux.arm64 -g",
    "annotate": "annotate -i arm64.data --kernel vmlinux.arm64 memcpy",
    "folded": "export --to folded -i arm64.data -o -",
    "foreign": "report -i clock.data",
    "json": "report -i clock.data --json",
    "refused": "report -i arm64.data --kernel kernel.elf",
    # What was recorded there.
    "demo_report": "report -i demo.data -g",
    "demo_lines": "script -i demo.data -g",
    "linux_report": "report -i linux.data --sort comm,mode,sym --limit 40",
    "linux_json": "report -i linux.data --json",
}

JOB = """
bin={bin}
export VPROF_BIN=$bin VPROF_SOURCE={source} CK_DEFAULT_TIMEOUT=20 CK_TIMEOUT_MULTIPLIER={factor} VPROF_TEST_SLOWNESS={factor}
section machine
uname -m
$bin/vprof version

section agent
$bin/vprof-agent --version

section demo
$bin/vprof run --demo --append seconds=3 -g -c {demo_period} --no-report -o /run/shared/demo.data 2>&1
echo "$?"

section probes
give_way $bin/vprof-vmm --kernel $bin/demo-guest.elf --append seconds=600 --vcpus 2 --console none --control /tmp/guest.sock &
engine=$!
while [ ! -S /tmp/guest.sock ]; do sleep 0.1; done
for means in processor patch; do
	$bin/vprof trace /tmp/guest.sock -e function:tcp_checksum --registers x0,x30,pc -n {probe_hits} -g -j --breakpoints $means >/run/shared/$means.json
	$bin/vprof trace /tmp/guest.sock -e return:tcp_checksum -n {probe_hits} -j --breakpoints $means >/run/shared/return_$means.json
done
for probe in tracepoint:sched:sched_switch syscall:read:return syscall:read io:0x80 msr:0x10 function:tcp_checksum+2; do
	$bin/vprof trace /tmp/guest.sock -e $probe -n 1 2>&1
done
$bin/vprof trace /tmp/guest.sock -e function:tcp_checksum --registers rip -n 1 2>&1
kill $engine
wait

section exact
$bin/vprof run --demo --append seconds=60 --exact --duration 2 -g --no-report -o /run/shared/exact.data 2>&1
echo "$?"

section linux
cd /run/shared
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{perf}/usr/lib/aarch64-linux-gnu:{perf}/lib/aarch64-linux-gnu
for name in sh nproc uname mount; do
	programs="$programs --add {busybox}:/bin/$name"
done
echo "{typed}" | LD_LIBRARY_PATH=$LD_LIBRARY_PATH $bin/vprof run --kernel kernel.efi --uart pl011 --vcpus 2 --memory 512M --append "quiet cryptomgr.notests" --from-boot -g \
	-c {linux_period} --pmu kvm -v $programs --add {perf_program}:/bin/perf --add /run/shared/work:/bin/work \
	--add /run/shared/inside:/bin/inside --no-report -o /run/shared/linux.data --exec "{busybox} sh /bin/inside" 2>&1
echo "$?"

section stat
$bin/vprof stat --demo --append seconds=1 --vcpus 8 --json 2>/dev/null

section lower_rate
echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent
echo 500 >/proc/sys/kernel/perf_event_max_sample_rate
$bin/vprof run --demo --append seconds=1 -e task-clock --no-report -o /run/shared/lower.data 2>&1
echo "$?"
$bin/vprof run --demo -e task-clock -F 501 --no-report -o /run/shared/lower.data 2>&1
echo "$?"
echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent

section foreign_kernel
$bin/vprof run --kernel /run/shared/kernel.elf 2>&1
$bin/vprof run --demo --pmu emulated 2>&1
$bin/vprof run --demo --pmu kvm --pmu-filter ref-cycles 2>&1

section unit
mkdir -p /tmp && cd /tmp
for test in {tests}; do
	$bin/test_$test >/tmp/text 2>&1 </dev/null
	echo "$test $?"
	tail -n 30 /tmp/text >&3
done 3>/run/shared/unit.log

cd /run/shared
{reports}
section perf
export LD_LIBRARY_PATH
{perf_program} record -N -e cycles -c {period} -g --user-regs=sp,pc -o /tmp/perf.data -- sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done' 2>&1
echo "$?"
cp /tmp/perf.data .
"""


def zboot(packed):
    """As Linux has it for EFI, drivers/firmware/efi/libstub/zboot-header.S."""
    return struct.pack("<2s2x4sII8x32s8x", b"MZ", b"zimg", 64, len(packed), b"gzip") + packed


def report_job(name, command):
    return f"section {name}\n{ARM64}/vprof {command} 2>&1\n"


class Arm64(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        arm64_host.need_host()

    def run_job(self):
        """What each section printed."""
        self.host = arm64_host.Arm64Host(self)
        subprocess.run([BIN / "make_recordings"], cwd=self.host.shared, check=True)
        for name, text in LINUX_FILES.items():
            (self.host.shared / name).write_text(text)
        kernel = pathlib.Path(harness.script("kernel-debian.sh", "6.12", "arm64"))
        (self.host.shared / "kernel.efi").write_bytes(zboot(gzip.compress(kernel.read_bytes(), 1)))
        perf = harness.script("package-arm64.sh", *PERF)
        job = JOB.format(
            bin=ARM64, source=SOURCE, factor=UNIT_FACTOR, tests=" ".join(sorted(arm64_host.UNIT_TESTS)),
            reports="\n".join(report_job(name, command) for name, command in REPORTS.items()), perf=perf, demo_period=DEMO_PERIOD,
            probe_hits=PROBE_HITS,
            perf_program=f"{perf}/usr/bin/perf", period=PERIOD, typed=TYPED,
            busybox=pathlib.Path(harness.script("package-arm64.sh", "busybox-static")) / "bin/busybox", linux_period=LINUX_PERIOD)
        return self.host.sections(job, SECONDS)

    def check_unit(self, text):
        """Each test's exit status; 77: it lacks something, and says what."""
        statuses = dict(line.rsplit(" ", 1) for line in text.splitlines() if line)
        failed = {name: status for name, status in statuses.items() if status not in ("0", "77")}
        print(f"{len(statuses)} unit tests, {sum(status == '77' for status in statuses.values())} skipped", flush=True)
        self.assertEqual(len(statuses), len(arm64_host.UNIT_TESTS))
        self.assertEqual(failed, {}, (self.host.shared / "unit.log").read_text(errors="replace"))

    def check_reports(self, parts):
        """The same bytes there and here."""
        for name, command in REPORTS.items():
            here = subprocess.run([VPROF, *command.split()], cwd=self.host.shared, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "dumb"}).stdout
            self.assertEqual(parts[name], here, command)

    def check_perf(self, text):
        """A recording of the machine's perf, with hardware cycles: reported here, sample by sample as the perf of this machine does."""
        self.assertEqual(text.splitlines()[-1], "0", text)
        report, rows = self.report(self.host.shared / "perf.data")
        self.assertEqual(report["recording"]["arch"], "aarch64")
        self.assertEqual(report["tables"][0]["event"], "cycles")
        samples = sum(row["samples"] for row in rows)
        print(f"{samples} samples of perf on arm64", flush=True)
        self.assertGreater(samples, SAMPLES_MIN)

    def check_demo(self, text):
        """Shares, modes and callers, by overflows of the PMU that count in the guest only."""
        self.assertEqual(text.splitlines()[-1], "0", text)
        report, rows = self.report(self.host.shared / "demo.data", "-g")
        table = report["tables"][0]
        print(text, flush=True)
        self.assertEqual(report["recording"]["arch"], "aarch64")
        self.assertEqual(table["event"], "cycles")
        self.assertGreater(sum(row["samples"] for row in rows), DEMO_SAMPLES_MIN)
        total = report["recording"]["statistics"]["total"]
        self.assertEqual(total["overflow"], total["sample"])
        self.assertEqual(total["chain-end"], total["sample"])
        demo_shares.check(self, rows, TAIL)
        self.assertEqual([phase["value"] for phase in report["recording"]["phases"]], list(DEMO_PHASES))
        paths = {path[-1]: list(path[:-1]) for path, _ in demo_shares.stacks(table["calls"]) if path[-1] in DEMO_PATHS}
        self.assertEqual(paths, DEMO_PATHS)

    def check_linux(self, text):
        """Boot, a program in it, tasks, and callers in the kernel and from there in user space. Each exit is one overflow."""
        self.assertTrue(text.endswith("5\n"), text)
        # On PL011s: the console, and the agent, which has no other port.
        self.assertIn("command line: console=ttyAMA0 panic=-1 nokaslr", text)
        self.assertIn(f"\naarch64\n2\nread: {TYPED}\n", text)
        recording = self.host.shared / "linux.data"
        report, rows = self.report(recording, "--sort", "comm")
        total = report["recording"]["statistics"]["total"]
        self.assertEqual([(mark["name"], mark["kind"]) for mark in report["recording"]["marks"] if mark["name"] == "counted"],
                         [("counted", "begin"), ("counted", "end")])
        self.assertEqual(report["recording"]["arch"], "aarch64")
        self.assertGreater(total["sample"], LINUX_SAMPLES_MIN)
        self.assertEqual(total["overflow"], total["sample"])
        self.check_own_perf(text)
        self.assertLessEqual({"init", "busybox", "perf"}, {row["comm"] for row in rows})
        ends = report["recording"]["chain-ends"]["kernel"]
        seconds = (report["recording"]["last-ns"] - report["recording"]["first-ns"]) / 1e9
        print(f"Linux: {total['sample']} samples in {seconds:.0f} s; chains in the kernel: {ends}", flush=True)
        self.assertGreaterEqual(ends["whole"] + LINUX_CHAINS_CUT, LINUX_CHAINS_WHOLE * sum(ends.values()))
        self.check_roots(recording)

    def check_own_perf(self, text):
        """perf in the guest counted and sampled by a PMU that interrupts it, while this host did."""
        self.assertIn("vprof-vmm: PMU: kvm: KVM's, on the host's PMU", text)
        user, kernel = (int(re.search(rf"(?m)^(\d+),,cycles:{mode},", text).group(1)) for mode in "uk")
        samples = int(re.search(r"(?m)^cycles stats:\n +SAMPLE events: +(\d+)$", text).group(1))
        print(f"perf in the guest: cycles:u {user}, cycles:k {kernel}, {samples} samples of {LINUX_PERF_PERIOD} cycles", flush=True)
        self.assertGreater(min(user, kernel), 0)
        self.assertGreater(samples, LINUX_OWN_SAMPLES_MIN)
        # The same work again; an overflow that comes late is one sample all the same.
        self.assertLess(samples * LINUX_PERF_PERIOD, 2 * (user + kernel))

    def check_roots(self, recording):
        """Chains in the kernel begin where its threads and its entries do; from an entry, they go on into user space."""
        lines = self.run_program(VPROF, "script", "-i", recording, "-g", "--json")[0].splitlines()
        chains = [json.loads(line)["chain"] for line in lines]
        kernel = [[frame["symbol"] for frame in chain if frame["mode"] == "kernel"] for chain in chains]
        roots = [names[-1] for names in kernel if names and names not in LINUX_EDGES]
        known = sum(name in LINUX_ROOTS for name in roots)
        print(f"{known} of {len(roots)} begin at {', '.join(sorted(set(roots) & LINUX_ROOTS))}", flush=True)
        self.assertGreaterEqual(known, LINUX_ROOTS_KNOWN * len(roots))
        calls = [chain for chain, names in zip(chains, kernel) if names and names[-1] == "el0t_64_sync"]
        self.assertTrue(any(chain[-1]["mode"] == "user" for chain in calls), len(calls))

    def events(self, name):
        """What vprof trace has printed, but the end."""
        lines = [json.loads(line) for line in (self.host.shared / f"{name}.json").read_text().splitlines()]
        return [line for line in lines if "probe" in line]

    def check_probes(self, text):
        """Breakpoints of the processor, and BRK in the code: each where the function begins or returns, once for each call."""
        for means in "processor", "patch":
            events, returns = self.events(means), self.events(f"return_{means}")
            self.assertEqual((len(events), len(returns)), (PROBE_HITS, PROBE_HITS), text)
            for event in events:
                self.assertEqual((event["func"], event["fields"]["pc"]), ("tcp_checksum", event["ip"]))
                self.assertEqual([frame.split("+")[0] for frame in event["stack"]], PROBE_CHAIN)
            for event in returns:
                self.assertTrue(event["func"].startswith("tcp_checksum+"), event)
                self.assertGreater(int(event["fields"]["ns"], 16), 0)
        for message in PROBE_REFUSALS:
            self.assertIn(message, text)

    def check_exact(self, text):
        """Every instruction, from the first on."""
        report, rows = self.report(self.host.shared / "exact.data", "-g")
        total = report["recording"]["statistics"]["total"]
        print(f"{total['sample']} steps", flush=True)
        self.assertEqual(report["tables"][0]["event"], "steps", text)
        self.assertGreater(total["sample"], EXACT_STEPS_MIN)
        self.assertEqual((total["overflow"], total["chain-end"], total["unstepped"]), (total["sample"], total["sample"], 0))
        self.assertIn("start_high", {row["symbol"] for row in rows})

    def check_stat(self, text):
        """The vCPUs that PSCI starts, eight in all: nothing ends their KVM_RUN but the clock of the modes."""
        vcpus = json.loads(text)["vcpus"]
        looks = [vcpu["looks"]["kernel"] + vcpu["looks"]["user"] for vcpu in vcpus]
        print(f"looks at {len(vcpus)} vCPUs: {looks}", flush=True)
        self.assertEqual(len(vcpus), 8)
        self.assertGreater(min(looks), LOOKS_MIN)
        for vcpu in vcpus[1:]:
            self.assertLess(vcpu["parts-ns"]["offline"], vcpu["parts-ns"]["wall"] / 2)

    def test_arm64(self):
        parts = self.run_job()
        self.assertTrue(parts["machine"].startswith("aarch64\nvprof "), parts["machine"])
        self.assertRegex(parts["agent"], r"^vprof-agent \d")
        self.check_demo(parts["demo"])
        self.check_probes(parts["probes"])
        self.check_exact(parts["exact"])
        self.check_linux(parts["linux"])
        self.check_stat(parts["stat"])
        self.assertRegex(parts["lower_rate"], r"(?s)samples are taken at 500 Hz instead of 999 Hz: .*\n0\n.*\bfrequency 501 Hz .* is above .*\n2\n")
        self.assertIn("it is for x86-64, this host is arm64", parts["foreign_kernel"])
        self.assertIn("an emulated PMU: --pmu emulated is for x86-64; take --pmu kvm\n", parts["foreign_kernel"])
        self.assertIn('event "ref-cycles" is none; expected cycles, ', parts["foreign_kernel"])
        self.check_reports(parts)
        self.check_perf(parts["perf"])
        self.check_unit(parts["unit"])


if __name__ == "__main__":
    harness.main()
