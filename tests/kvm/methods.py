#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Every method that query-schema names, on a live guest: its answer is as declared, and it fails with each class of error
that it has.
"""
import gzip

import harness
from answers import answer_errors
from engine import Client, Engine

COUNTER = 0  # the first that is free
KERNEL = "0xffffffff80100000"  # where vmm/demo has it
MAP_ADD = "24" + 15 * "00"  # a program of this one instruction

# (method, arguments) in an order in which all of them succeed. A method that is not here fails the test.
BEFORE = [
    ("query-status", {}), ("query-guest", {}), ("query-clients", {}), ("query-schema", {}), ("query-host", {}),
    ("query-configuration", {}), ("query-counters", {}), ("query-probes", {}), ("negotiate", {"protocol": 1}),
    ("control-take", {}), ("session-configure", {"ring-bytes": 65536, "trace": ["requests"]}),
    ("session-start", {"events": ["task-clock"], "frequency-hz": 200}), ("guest-start", {}),
]
RUNNING = [
    ("query-session", {}), ("session-flush", {}), ("samples-read", {"timeout-ms": 5000}), ("sample-add", {"ip": "0x100000"}),
    ("query-stats", {}), ("reset", {"what": "statistics"}), ("reset", {"what": "trace"}), ("rings", {}),
    ("marker-add", {"name": "x", "kind": "begin"}),
    ("trace-set", {"what": "phases", "state": "toggle"}), ("trace-read", {}),
    ("trace-write", {"text": "x\n" * 1500, "vcpu": 1, "stack": True}),
    ("query-vcpu-time", {"vcpu": 1}), ("vcpu-time-reset", {}),
    ("mapping-read", {"address": KERNEL}), ("mapping-read", {"address": KERNEL, "bytes": 16}),
    ("counter-allocate", {"event": "task-clock", "mode": "guest-counting"}),
    ("counter-write", {"counter": COUNTER, "value": 5}), ("counter-start", {"counter": COUNTER}),
    ("counter-read", {"counter": COUNTER}), ("counter-descriptors", {"counter": COUNTER}), ("counter-stop", {"counter": COUNTER}),
    ("counter-release", {"counter": COUNTER}), ("counter-disable", {"counter": COUNTER}),
    ("counter-enable", {"counter": COUNTER}),
    ("counter-allocate", {"event": "task-clock", "mode": "task-sampling"}),
    ("counter-set-period", {"counter": COUNTER, "frequency-hz": 100}),
    ("counter-attach", {"counter": COUNTER, "cr3": "0x1000"}), ("counter-detach", {"counter": COUNTER, "cr3": "0x1000"}),
    ("counter-rings", {"counter": COUNTER}), ("counter-release", {"counter": COUNTER}),
    ("probe-list", {"match": "function:tcp_*"}), ("probe-args", {"probe": "function:tcp_checksum"}),
    ("probe-add", {"probe": "function:tcp_checksum", "registers": ["rdi"], "stack": True}),
    ("probe-record", {"on": True}), ("probe-read", {"timeout-ms": 5000}), ("probe-record", {"on": False}),
    # MAP_ADD to the one entry of map 0.
    ("probe-map-add", {"kind": "count"}), ("probe-program", {"id": 1, "program": MAP_ADD}), ("probe-map-read", {"map": 0}),
    ("probe-map-clear", {"map": 0}),
    ("probe-record", {"on": True}), ("probe-rings", {}), ("probe-record", {"on": False}), ("probe-remove", {"id": 1}),
    ("session-stop", {}), ("reset", {"what": "session"}), ("reset", {"what": "configuration"}),
    ("control-release", {}), ("control-take", {}), ("guest-stop", {}), ("quit", {}),
]
# kernel-image is for an attached guest, or a packed kernel: test_packed_kernel. This kernel has neither modules nor tasks;
# tests/linux has guests that have some. An unwind table is written into memory that comes as a descriptor.
# unit/control_answers calls all six methods.
NEVER = {"file-read", "kernel-image", "module-symbols", "query-tasks", "unwind-table-new", "unwind-table-add"}

# (method, arguments, class) where the state is such that it fails; before the session, and while it runs.
EARLY_ERRORS = [
    ("query-stats", {}, "WrongState"), ("rings", {}, "WrongState"), ("session-stop", {}, "WrongState"),
    ("session-flush", {}, "WrongState"), ("samples-read", {}, "WrongState"), ("query-session", {}, "WrongState"),
    ("sample-add", {"ip": "0x100000"}, "WrongState"), ("kernel-image", {}, "Unsupported"),
    ("module-symbols", {"addresses": ["0x1000"]}, "Unsupported"), ("query-tasks", {}, "Unsupported"), ("file-read", {"build-id": "01"}, "Unsupported"),
    ("negotiate", {"protocol": 99}, "Unsupported"),
    ("session-configure", {"ring-bytes": 5000}, "InvalidArgument"),
    ("session-start", {"events": ["no-such-event"]}, "InvalidArgument"),
    ("session-start", {"events": ["timer"], "frequency-hz": 5, "period": 5}, "InvalidArgument"),
    ("session-start", {"events": ["timer"], "route": "monitor"}, "InvalidArgument"),
]
ERRORS = [
    ("guest-start", {}, "WrongState"), ("session-start", {}, "WrongState"), ("reset", {"what": "session"}, "WrongState"),
    ("samples-read", {"vcpu": 63}, "InvalidArgument"), ("samples-read", {"session": 99}, "WrongState"),
    ("samples-read", {"offset": 1 << 60}, "InvalidArgument"), ("sample-add", {"ip": 1, "vcpu": 63}, "InvalidArgument"),
    ("marker-add", {"name": "\x1b[2J", "kind": "end"}, "InvalidArgument"),
    ("trace-read", {"offset": 1 << 60}, "InvalidArgument"),
    ("query-vcpu-time", {"vcpu": 63}, "InvalidArgument"),
    ("mapping-read", {"address": "0x7fffffffffff"}, "WrongState"),
    ("mapping-read", {"address": "0x7fffffffffff", "bytes": 1}, "WrongState"),
    ("counter-allocate", {"event": "no-such-event", "mode": "guest-counting"}, "InvalidArgument"),
    ("counter-allocate", {"event": "task-clock:u", "mode": "guest-counting"}, "Unsupported"),
    ("counter-start", {"counter": 5}, "InvalidArgument"), ("counter-read", {"counter": 5}, "InvalidArgument"),
    ("counter-release", {"counter": 5}, "InvalidArgument"),
    ("probe-add", {"probe": "kprobe:x"}, "InvalidArgument"), ("probe-add", {"probe": "syscall:read"}, "Unsupported"),
    ("probe-add", {"probe": "function:no_such"}, "InvalidArgument"), ("probe-args", {"probe": "io"}, "InvalidArgument"),
    ("probe-remove", {"id": 99}, "InvalidArgument"), ("probe-record", {"on": True}, "WrongState"),
    ("probe-rings", {}, "WrongState"), ("probe-read", {}, "WrongState"), ("probe-map-read", {"map": 0}, "InvalidArgument"),
    ("probe-map-clear", {"map": 0}, "InvalidArgument"), ("probe-program", {"id": 99, "program": MAP_ADD}, "InvalidArgument"),
    ("probe-map-add", {"kind": "lhist"}, "InvalidArgument"),
]


class Methods(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def start_engine(self, kernel):
        self.engine = Engine(self, kernel, "--vcpus", 2, "--append", "seconds=60")
        self.schema = self.engine.execute("query-schema")
        self.methods = {method["name"]: method for method in self.schema["methods"]}
        self.classes = {error["name"] for error in self.schema["errors"]}

    def answered(self, method, arguments):
        """It succeeds, with the members that are declared, and descriptors only if these are."""
        descriptors = self.engine.descriptors
        answer = self.engine.execute(method, **arguments)
        self.assertEqual(answer_errors(self.schema, method, answer), [])
        if self.engine.descriptors > descriptors:
            self.assertIn("descriptors", self.methods[method])

    def refused_by(self, client, class_, method, arguments):
        error = client.ask(method, **arguments).get("error")
        self.assertIsNotNone(error, f"{method} {arguments} succeeds")
        self.assertEqual(error["class"], class_, f"{method} {arguments}: {error['desc']}")
        self.assertIn(class_, self.classes)

    def check_errors(self, errors):
        for method, arguments, class_ in errors:
            self.refused_by(self.engine, class_, method, arguments)

    def check_arguments(self):
        """Unknown ones, wrong ones, and none where one is needed."""
        for name, method in self.methods.items():
            self.refused_by(self.engine, "InvalidArgument", name, {"no-such-argument": 1})
            for argument in method["arguments"]:
                self.refused_by(self.engine, "InvalidArgument", name, {argument["name"]: {}})
            if any(not argument.get("optional") for argument in method["arguments"]):
                self.refused_by(self.engine, "InvalidArgument", name, {})
        self.refused_by(self.engine, "CommandNotFound", "no-such-method", {})

    def check_roles(self):
        """A client must negotiate first; one client controls, and others are told which; none controls without asking."""
        stranger = Client.connect(self.engine.path, negotiate=False)
        for name in self.methods.keys() - {"negotiate"}:
            self.refused_by(stranger, "NotNegotiated", name, {})
        other = Client.connect(self.engine.path)
        control = [name for name, method in self.methods.items() if method["role"] == "control"]
        self.assertGreater(len(control), 5)
        for name in control + ["control-take"]:
            self.refused_by(other, "Busy", name, {})
        self.engine.execute("control-release")
        for name in control:
            self.refused_by(other, "PermissionDenied", name, {})
        self.engine.execute("control-take")
        # What others hold is theirs.
        self.engine.execute("counter-allocate", event="task-clock", mode="guest-counting")
        self.refused_by(other, "PermissionDenied", "counter-release", {"counter": COUNTER})
        self.refused_by(self.engine, "Busy", "counter-disable", {"counter": COUNTER})
        self.engine.execute("counter-release", counter=COUNTER)
        stranger.close()
        other.close()

    def test_every_method(self):
        self.start_engine(harness.BIN / "demo-guest.elf")
        told = {method for method, _ in BEFORE + RUNNING} | NEVER
        self.assertEqual(told, self.methods.keys())
        self.check_arguments()
        self.check_roles()
        self.check_errors(EARLY_ERRORS)
        for method, arguments in BEFORE:
            self.answered(method, arguments)
        self.check_errors(ERRORS)
        for method, arguments in RUNNING:
            self.answered(method, arguments)
            if method == "guest-stop":
                self.check_errors([("session-start", {}, "WrongState"), ("guest-start", {}, "WrongState"),
                                   ("probe-record", {"on": True}, "WrongState")])
        # For each vCPU a ring and an eventfd: of the session, a counter and the probes; the counter's descriptors; and the mapped file.
        self.assertEqual(self.engine.descriptors, 3 * 2 * 2 + 2 + 1)
        self.assertEqual(self.engine.process.wait(timeout=20 * harness.SLOWNESS), 130)

    def test_packed_kernel(self):
        """What it has unpacked, clients need not unpack again, until the guest runs."""
        packed = self.folder / "packed"
        packed.write_bytes(gzip.compress((harness.BIN / "demo-guest.elf").read_bytes()))
        self.start_engine(packed)
        self.answered("kernel-image", {})
        self.assertEqual(self.engine.execute("kernel-image"), {"path": str(packed), "slide": "0x0"})
        self.assertEqual(self.engine.descriptors, 2)
        self.engine.execute("guest-start")
        self.check_errors([("kernel-image", {}, "Unsupported")])

        recording = self.folder / "recording"
        self.run_program(harness.VPROF, "run", "--kernel", packed, "--append", "seconds=1", "--no-report", "-o", recording)
        rows = self.report(recording)[1]
        self.assertIn("tcp_checksum", {row["symbol"] for row in rows})


if __name__ == "__main__":
    harness.main()
