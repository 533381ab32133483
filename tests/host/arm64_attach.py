#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof attach on a stock arm64 host (arm64_host.py): to Debian's kernel as a guest of a vprof-vmm that is not ours, and of QEMU, which moves
it by KASLR. Only KVM is asked. Then the first is asked itself, for counters of some of its guest's tasks."""
import functools
import gzip
import json
import os
import pathlib
import subprocess

import arm64_host
import harness
from arm64_host import ARM64
from harness import VPROF

SECONDS = 270
# QEMU and the libraries that only it needs.
QEMU = ("qemu-system-arm", "libaio1", "libdaxctl1", "libfuse3-3", "libgmp10", "libgnutls30", "libhogweed6", "libibverbs1", "libidn2-0", "libjpeg62-turbo",
        "libkmod2", "libndctl6", "libnl-3-200", "libnl-route-3-200", "libnuma1", "libp11-kit0", "libpixman-1-0", "libpmem1", "libpng16-16",
        "librdmacm1", "libsasl2-2", "libslirp0", "libtasn1-6", "libudev1", "libunistring2", "liburing2", "libvdeplug2")
PERIOD = 2000000
MEMORY_MIB = 256
SAMPLES_MIN = 50  # several times fewer than there are
UNNAMED_MAX = 0.01
WHOLE_MIN = 0.999  # of the chains in the kernel
INTO_USER_MIN, CALLS_MIN = 0.9, 30
RESIDUAL_MAX = 0.01
# What counts beside each other in the guest of vprof-vmm, which are of some of its tasks.
COUNTERS = {"whole": "", "own": "--pid 1", "busy": "--comm 'busy*'", "family": "--pid 1 --descendants", "nothing": "--comm no-such",
            "estimate": "--pid 1 --estimate"}
COUNTED_SECONDS = 3
# By the clock of the vCPUs' threads: this PMU's counters are wrong now and then where several are read. Programs start one after the
# other, so their seconds are not the same.
PARTS_CLOSE = 0.5
TASK_SAMPLES_MIN = 5  # several times fewer than there are
# vprof-vmm has virtio devices for it.
MODULES = "virtio_mmio", "virtio_blk"
READ, WRITTEN, PORT = "on the disk", "into the disk", "org.vprof.agent.0"
INIT = f"""#!/bin/sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t sysfs sys /sys
for module in {' '.join(MODULES)}; do
	/bin/busybox insmod /$module.ko
done
if [ -b /dev/vda ]; then
	read -r line </dev/vda
	echo "disk: $line"
	echo "{WRITTEN}" | /bin/busybox dd of=/dev/vda bs=512 seek=1 conv=sync,fsync 2>/dev/null
	for name in /sys/class/virtio-ports/*/name; do
		read -r line <$name
		echo "port: $line"
	done
fi
/bin/sleep 1000 &
/bin/sleep 2000 &
echo "init: up"
while :; do
	n=0
	while [ $n -lt 50 ]; do n=$((n + 1)); done
	/bin/busybox dd if=/dev/zero of=/dev/null bs=4k count=200 2>/dev/null
done
"""
JOB = """
bin={bin}
export VPROF_BIN=$bin
cd /run/shared
give_way $bin/vprof-vmm --kernel Image.gz --initrd guest.cpio --memory {memory}M --vcpus 2 --disk disk --serial2 port --append "quiet cryptomgr.notests rdinit=/init" --console console --control /tmp/guest.sock &
guest=$!
while ! grep -q "init: up" console 2>/dev/null; do sleep 0.2; done

section doctor
$bin/vprof doctor --pid $guest --json
section list
$bin/vprof attach --list --json
section perf
$bin/vprof attach --pid $guest --route perf -c {period} --duration 2s --no-report -o perf.data 2>&1
echo "$?"
section bpf
$bin/vprof attach --pid $guest -c {period} -g --wall --duration 3s --no-report -o bpf.data 2>&1
echo "$?"
section stack
$bin/vprof stack --pid $guest --json sleep
section stat
mount -t tracefs -o mode=755 tracefs /sys/kernel/tracing
$bin/vprof stat --pid $guest --duration 1s --json 2>/dev/null
section counters
# Its main thread and no other. For the first of them, it reads its kernel, which takes longer than a client waits.
renice -n 0 -p $guest >/dev/null
until $bin/vprof counter count /tmp/guest.sock -e task-clock --pid 1 --duration 1 >/dev/null 2>&1; do
	sleep 1
done
{counters}wait $counting
$bin/vprof counter record /tmp/guest.sock -e cycles -c {period} --pid 1 --duration 1 --no-report -o own.data 2>&1
$bin/vprof counter record /tmp/guest.sock -e cycles -c {period} --comm 'busy*' -g --duration 1 --no-report -o busy.data 2>&1
section without_bpf
chmod 666 /dev/kvm
chmod -R a+rX /sys/kernel/tracing/events/kvm
mkdir -m 777 /tmp/daemon
XDG_RUNTIME_DIR=/tmp/daemon su -p -s /run/bin/sh daemon -c "$bin/vprof-vmm --probe" >probe.json 2>&1
XDG_RUNTIME_DIR=/tmp/daemon su -p -s /run/bin/sh daemon -c "$bin/vprof stat --demo --append seconds=1 --json" 2>/dev/null
section other
$bin/vprof attach --pid $guest --kernel $bin/demo-guest.elf --duration 1s 2>&1
kill $guest
wait

section qemu
LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{qemu}/usr/lib/aarch64-linux-gnu:{qemu}/lib/aarch64-linux-gnu
LD_LIBRARY_PATH=$LD_LIBRARY_PATH give_way {qemu_program} -machine virt,gic-version=3 -accel kvm -cpu host -smp 2 -m {memory} -nodefaults -display none -nic none \
	-serial file:qemu.console -kernel {kernel} -initrd guest.cpio -append "quiet cryptomgr.notests console=ttyAMA0 rdinit=/init" 2>qemu.log &
guest=$!
while ! grep -q "init: up" qemu.console 2>/dev/null; do sleep 0.2; done
$bin/vprof attach --pid $guest -c {period} -g --duration 2s --no-report -o qemu.data 2>&1
echo "$?"
kill $guest
wait
"""


class Arm64Attach(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        arm64_host.need_host()

    def make_guest(self, folder, kernel):
        """Its initramfs and disk."""
        (folder / "disk").write_bytes(f"{READ}\n".encode().ljust(1 << 20, b"\0"))
        root = self.folder / "guest"
        for place in "bin", "proc", "dev", "sys":
            (root / place).mkdir(parents=True)
        for module in arm64_host.module_files(kernel, MODULES):
            arm64_host.unpacked(module, root)
        busybox = pathlib.Path(harness.script("package-arm64.sh", "busybox-static")) / "bin/busybox"
        (root / "bin/busybox").write_bytes(busybox.read_bytes())
        for name in "sh", "sleep":
            (root / "bin" / name).symlink_to("busybox")
        (root / "init").write_text(INIT)
        for program in root / "bin/busybox", root / "init":
            program.chmod(0o755)
        subprocess.run(["bsdtar", "-cf", folder / "guest.cpio", "--format", "newc", "--uid", "0", "--gid", "0", "-C", root, *os.listdir(root)],
                       check=True)

    def check_doctor(self, probe):
        """The kernel is found in memory, where KVM's slots say that it is."""
        print(probe, flush=True)
        self.assertEqual((probe["accelerator"], probe["vcpus"], probe["memory-bytes"]), ("kvm", 2, MEMORY_MIB << 20))
        self.assertTrue(probe["memory"]["usable"])
        self.assertRegex(probe["kernel"]["release"], r"^6\.12\..*-arm64$")
        self.assertTrue(next(route for route in probe["routes"] if route["name"] == "perf")["usable"])

    def check_modes(self, recording):
        """Mode and instruction pointer are the guest's, in every sample; what the recording says of itself."""
        report, rows = self.report(recording, "--sort", "mode,sym")
        waits = sum(row["samples"] for table in report["tables"][1:] for row in table["rows"])
        samples = report["recording"]["statistics"]["total"]["sample"] - waits
        modes = {mode: sum(row["samples"] for row in rows if row["mode"] == mode) for mode in ("kernel", "user")}
        unnamed = sum(row["samples"] for row in rows if row["mode"] == "kernel" and row["symbol"].startswith("["))
        print(f"{samples} samples: {modes}, {unnamed} of the kernel without a name", flush=True)
        self.assertEqual((report["recording"]["arch"], report["tables"][0]["event"]), ("aarch64", "cycles"))
        self.assertGreater(min(modes.values()), SAMPLES_MIN)
        self.assertEqual(sum(modes.values()), samples)
        self.assertLessEqual(unnamed, UNNAMED_MAX * modes["kernel"])
        return report["recording"]

    @functools.cache
    def samples(self, recording):
        return [json.loads(line) for line in self.run_program(VPROF, "script", "-i", recording, "-g", "--json")[0].splitlines()]

    def check_chains(self, recording):
        """Tasks, and callers up to where the kernel's threads and its entries begin, and from there in user space. Where do_idle is."""
        ends = self.check_modes(recording)["chain-ends"]
        print("chains:", ends, flush=True)
        self.assertGreaterEqual(ends["kernel"]["whole"], WHOLE_MIN * sum(ends["kernel"].values()))
        samples = [sample for sample in self.samples(recording) if sample["event"] == "cycles"]
        self.assertLessEqual({"init", "busybox", "swapper"}, {sample["comm"] for sample in samples})
        chains = [sample["chain"] for sample in samples]
        calls = [chain for chain in chains if "el0t_64_sync" in [frame["symbol"] for frame in chain]]
        into_user = [chain for chain in calls if chain[-1]["mode"] == "user"]
        print(f"{len(into_user)} of {len(calls)} system calls and faults go on in user space", flush=True)
        self.assertGreater(len(calls), CALLS_MIN)
        self.assertGreaterEqual(len(into_user), INTO_USER_MIN * len(calls))
        self.assertIn("ret_from_fork", [chain[-1]["symbol"] for chain in chains])
        return min(int(frame["ip"], 16) for chain in chains for frame in chain if frame["symbol"] == "do_idle") >> 16

    def check_waits(self, stack, recording):
        """What does not run: its state and where it waits, up to the system call in user space, and how long."""
        sleepers = [task for stack in stack["stacks"] for task in stack["tasks"]]
        waits = [sample for sample in self.samples(recording) if sample["event"] == "wall" and sample["comm"] == "sleep"]
        print(f"{sleepers}, waits of {[round(sample['period'] / 1e9, 2) for sample in waits]} s", flush=True)
        self.assertEqual([(task["comm"], task["state"], task["wait-channel"]["symbol"]) for task in sleepers],
                         2 * [("sleep", "S", "hrtimer_nanosleep")])
        self.assertEqual({sample["tid"] for sample in waits}, {task["tid"] for task in sleepers})
        for chain in [stack["frames"] for stack in stack["stacks"]] + [sample["chain"] for sample in waits]:
            symbols = [frame["symbol"] for frame in chain]
            self.assertIn("hrtimer_nanosleep", symbols)
            self.assertIn("el0t_64_sync", symbols[:-1])
            self.assertFalse(chain[-1]["ip"].startswith("0xffff"), chain)
        for task in sleepers:
            own = [sample for sample in waits if sample["tid"] == task["tid"]]
            self.assertEqual(sum(sample["period"] for sample in own[1:]), own[-1]["time-ns"] - own[0]["time-ns"])

    def check_devices(self, folder):
        """It has read its disk and written to it, and found its console port, by the device tree."""
        console = (folder / "console").read_text(errors="replace")
        self.assertIn(f"disk: {READ}", console)
        self.assertIn(f"port: {PORT}", console)
        self.assertEqual((folder / "disk").read_bytes()[512:1024], f"{WRITTEN}\n".encode().ljust(512, b"\0"))

    def check_counters(self, host, text):
        """A counter in each of the modes for tasks counts while these run, and its samples are theirs."""
        counted = {name: json.loads((host.shared / f"{name}.json").read_text())[0] for name in COUNTERS}
        value = {name: counter["value"] for name, counter in counted.items()}
        print(value, counted["estimate"]["modes"], flush=True)
        self.assertEqual(value["nothing"], 0)
        self.assertGreater(min(value[name] for name in COUNTERS if name != "nothing"), 0)
        self.assertLess(value["family"], (1 + PARTS_CLOSE) * value["whole"])
        self.assertLess(value["own"] + value["busy"], (1 + PARTS_CLOSE) * value["family"])
        self.assertLess(value["estimate"], (1 + PARTS_CLOSE) * value["family"])
        self.assertEqual(sum(counted["estimate"]["modes"].values()), value["estimate"])
        for name, wanted in ("own", ("pid", 1)), ("busy", ("comm", "busybox")):
            recording = host.shared / f"{name}.data"
            self.assertTrue(recording.exists(), text)
            samples = self.samples(recording)
            self.assertGreater(len(samples), TASK_SAMPLES_MIN, text)
            self.assertEqual({sample[wanted[0]] for sample in samples}, {wanted[1]})

    def check_without_bpf(self, host, stat):
        """Who may open perf events and load no program gets the same from those."""
        exits = json.loads((host.shared / "probe.json").read_text())["exits"]
        self.assertTrue(exits["usable"])
        self.assertIn("no permission to load a BPF program", exits["without-bpf"])
        self.check_exits(stat)

    def check_exits(self, stat):
        """KVM's exits by the names of exception classes; with the guest and the VMM they make up the time."""
        exits = {exit["name"]: exit["count"] for exit in stat["kvm-exits"]}
        spent = stat["total"]["parts-ns"]
        print(exits, spent, flush=True)
        self.assertIsNone(stat["untraced"])
        self.assertLessEqual({"WFx", "IRQ"}, set(exits))
        self.assertGreater(min(spent["guest"], spent["kvm"]), 0)
        self.assertLess(abs(spent["residual"]), RESIDUAL_MAX * spent["wall"])

    def test_attach(self):
        qemu = harness.script("package-arm64.sh", *QEMU)
        host = arm64_host.Arm64Host(self)
        kernel = pathlib.Path(harness.script("kernel-debian.sh", "6.12", "arm64"))
        self.make_guest(host.shared, kernel)
        (host.shared / "Image.gz").write_bytes(gzip.compress(kernel.read_bytes(), 1))
        counters = "".join(f"$bin/vprof counter count /tmp/guest.sock -e task-clock {tasks} --duration {COUNTED_SECONDS} --json >{name}.json &\n"
                           'counting="$counting $!"\n' for name, tasks in COUNTERS.items())
        parts = host.sections(JOB.format(bin=ARM64, counters=counters, kernel=kernel, period=PERIOD, memory=MEMORY_MIB, qemu=qemu, qemu_program=f"{qemu}/usr/bin/qemu-system-aarch64"), SECONDS)
        probe = json.loads(parts["doctor"])
        self.check_doctor(probe)
        guest, = json.loads(parts["list"])
        self.assertEqual((guest["vmm"], guest["vcpus"], guest["accelerator"], guest["kernel"]["release"]), ("vprof", 2, "kvm", probe["kernel"]["release"]))
        for name in "perf", "bpf", "qemu":
            self.assertEqual(parts[name].splitlines()[-1], "0", parts[name])
        self.check_modes(host.shared / "perf.data")
        places = [self.check_chains(host.shared / f"{name}.data") for name in ("bpf", "qemu")]
        print("kernels at", *map(hex, places), flush=True)
        self.assertNotEqual(*places)
        self.check_waits(json.loads(parts["stack"]), host.shared / "bpf.data")
        self.check_exits(json.loads(parts["stat"]))
        self.check_devices(host.shared)
        self.check_counters(host, parts["counters"])
        self.check_without_bpf(host, json.loads(parts["without_bpf"]))
        self.assertIn("the guest does not run", parts["other"])


if __name__ == "__main__":
    harness.main()
