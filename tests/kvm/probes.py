#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Probes on live guests: each event of a guest that makes a known number of them is told, once, with what it was."""
import json
import re

import harness
import json_schemas
from engine import Client, Engine
from harness import VPROF

ROUNDS = 100  # tests/guests/rounds
COUNTDOWN = 3
PATCHED_ROUNDS = 200  # tests/guests/patched
PUSH, INT3 = 0x55, 0xcc
STEP_ROUNDS = 3  # tests/guests/self_step
DR6_STEPPED = 0x4ff0  # its lower half: BS, and what is always 1
PORT, MMIO, MSR, MARK_PORT = 0x510, 0xd0001000, 0x174, 0x80


class ProbedGuest(Engine):
    """That collects the events of its probes."""

    def run_to_the_end(self):
        """Starts the guest; the events by probe until it has ended."""
        self.execute("guest-start")
        events = {}
        while not self.take(events) or not self.ended:
            self.ask("query-status")
        self.execute("probe-record", on=False)
        self.take(events)
        return events

    def take(self, events):
        """Adds what there is; whether there was nothing."""
        more, none = True, True
        while more:
            answer = self.execute("probe-read", **{"timeout-ms": 0 if self.ended else 20})
            more = answer["more"]
            for event in answer["events"]:
                none = False
                events.setdefault(event["probe"], []).append(event)
        return none


class ProbesTest(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def demo(self, vcpus):
        engine = ProbedGuest(self, harness.BIN / "demo-guest.elf", "--vcpus", vcpus, "--append", "seconds=120")
        engine.execute("guest-start")
        return engine


class Probes(ProbesTest):
    def test_every_event_of_a_known_guest(self):
        engine = ProbedGuest(self, harness.guest("rounds"))
        functions = () if harness.host_lacks("breakpoint") else (
            "function:round_port", "function:countdown", "function:round_msr")
        ids = {probe: engine.execute("probe-add", probe=probe, registers=["rdi", "rip"])["id"]
               for probe in (*functions, f"io:{PORT:#x}-{PORT + 1:#x}", f"io:{PORT:#x}:in", f"mmio:{MMIO:#x}-{MMIO + 7:#x}",
                             f"msr:{MSR:#x}:write", "marker:*", "exit:wrmsr", "exit:debug", "interval:ms:100")}
        error = engine.ask("probe-add", probe="syscall:read")["error"]
        self.assertIn("only Linux has system calls", error["desc"])
        by_name = engine.execute("probe-add", probe="marker:ph*")["id"]
        engine.execute("probe-record", on=True)
        self.assertEqual(engine.ask("probe-add", probe="io:*")["error"]["class"], "WrongState")
        marks = [engine.execute("marker-add", name=name, kind=kind)["number"]
                 for name, kind in (("phase", "begin"), ("other", "begin"), ("phase", "end"))]
        events = engine.run_to_the_end()

        def of(probe):
            return [[int(value, 16) for value in event["values"]] for event in events.get(ids[probe], [])]

        if functions:
            self.assertEqual([values[0] for values in of("function:round_port")], list(range(ROUNDS)))
            self.assertEqual([values[0] for values in of("function:round_msr")], list(range(ROUNDS)))
            self.assertEqual([values[-2] for values in of("function:countdown")], [3, 2, 1] * ROUNDS)
        ports = [values[:4] for values in of(f"io:{PORT:#x}-{PORT + 1:#x}")]
        self.assertEqual(ports, [access for i in range(ROUNDS) for access in ([PORT, i, 1, 1], [PORT + 1, 0xff, 1, 0])])
        self.assertEqual(of(f"io:{PORT:#x}:in"), [])  # it reads the next one
        mmio = [values[:4] for values in of(f"mmio:{MMIO:#x}-{MMIO + 7:#x}")]
        self.assertEqual(mmio, [access for i in range(ROUNDS)
                                for access in ([MMIO, i, 4, 1], [MMIO + 4, 0xffffffff, 4, 0])])
        self.assertEqual([values[:4] for values in of(f"msr:{MSR:#x}:write")], [[MSR, i, 8, 1] for i in range(ROUNDS)])
        # Those of clients came before the guest's start, by 1 and 2; the guest's own are by 0.
        marker = [values[:2] for values in of("marker:*")]
        self.assertEqual(marker, [[marks[0], 1], [marks[1], 1], [marks[2], 2]] + [[i, 0] for i in range(ROUNDS)])
        self.assertEqual([[int(value, 16) for value in event["values"]][:2] for event in events[by_name]],
                         [[marks[0], 1], [marks[2], 2]])
        self.assertGreaterEqual(len(of("exit:wrmsr")), ROUNDS)
        hits = 2 * ROUNDS + COUNTDOWN * ROUNDS if functions else 0
        self.assertEqual(len(of("exit:debug")), 2 * hits)  # each and the step over it
        state = engine.execute("query-probes")
        statistics = state["statistics"]
        self.assertEqual((statistics["dropevt"], statistics["event"]),
                         (0, sum(len(list_) for list_ in events.values())))
        self.assertEqual(statistics["readevt"], statistics["event"])
        harness.need_feature("breakpoint")

    def test_a_guest_that_steps_itself(self):
        """Debug exceptions of the guest's own are its own, with DR6 as the processor sets it, although each leaves the guest first."""
        engine = ProbedGuest(self, harness.guest("self_step"))
        probe = None if harness.host_lacks("breakpoint") else engine.execute("probe-add", probe="function:probed")
        marker = engine.execute("probe-add", probe="marker:*")
        engine.execute("probe-record", on=True)
        events = engine.run_to_the_end()
        if probe:
            self.assertEqual(len(events[probe["id"]]), STEP_ROUNDS)
        self.assertEqual([int(event["values"][0], 16) for event in events[marker["id"]]], STEP_ROUNDS * [DR6_STEPPED >> 8, DR6_STEPPED & 0xff])
        harness.need_feature("breakpoint")

    def test_without_msr_probes_the_guest_has_its_msrs_to_itself(self):
        engine = ProbedGuest(self, harness.guest("rounds"))
        first = engine.execute("probe-add", probe=f"msr:{MSR:#x}")["id"]
        exits = engine.execute("probe-add", probe="exit:wrmsr")["id"]
        engine.execute("probe-remove", id=first)
        engine.execute("probe-record", on=True)
        events = engine.run_to_the_end()
        self.assertEqual([event for event in events.get(exits, []) if int(event["values"][1], 16) == MSR], [])

    def test_five_functions_are_one_too_many_for_the_processor(self):
        engine = ProbedGuest(self, harness.guest("rounds"))
        for name in ("port", "mmio", "msr", "mark"):
            engine.execute("probe-add", probe=f"function:round_{name}")
        error = engine.ask("probe-add", probe="function:countdown", breakpoint="processor")["error"]
        self.assertEqual(error["class"], "Busy")
        self.assertIn("taken by function:round_port, function:round_mmio, function:round_msr, function:round_mark",
                      error["desc"])
        error = engine.ask("probe-add", probe="function:no_such_function")["error"]
        self.assertEqual(error["class"], "InvalidArgument")

    def test_what_cannot_be_patched(self):
        engine = ProbedGuest(self, harness.guest("patched"))
        error = engine.ask("probe-add", probe="function:0xffffffff81000000", breakpoint="patch")["error"]
        self.assertIn("not in the guest's kernel, and the guest has no code mapped there now", error["desc"])
        symbols = self.run_program("nm", harness.guest("patched"))[0]
        tables = int(re.search(r"([0-9a-f]+) \w pml4\b", symbols).group(1), 16)
        for address, why in ((tables, "not in its code"), (1 << 62, "no canonical address")):
            self.assertIn(why, engine.ask("probe-add", probe=f"function:{address:#x}")["error"]["desc"])
        self.assertEqual(engine.ask("probe-add", probe="function:function_push", breakpoint="both")["error"]["class"],
                         "InvalidArgument")

    def test_a_mapping_is_handed_over(self):
        engine = ProbedGuest(self, harness.guest("rounds"))
        answer = engine.execute("mapping-read", address="0x100000")
        self.assertEqual(answer["path"], str(harness.guest("rounds")))
        self.assertLessEqual(int(answer["start"], 16), 0x100000)
        error = engine.ask("mapping-read", address="0x7fffffffffff")["error"]
        self.assertIn("in no file", error["desc"])
        engine.execute("guest-start")

    def test_what_trace_and_probe_refuse(self):
        engine = self.demo(1)
        self.refused(VPROF, "trace", engine.path, "-e", "function:nothing", status=2, message='no function "nothing"')
        self.refused(VPROF, "trace", engine.path, "-e", "io:*", "--count-by", "arg0", message='no probe has a field "arg0"')
        self.refused(VPROF, "trace", engine.path, "-e", "io:*", "--hist", "comm", message="--hist comm: this is no number; count it with")
        self.refused(VPROF, "trace", engine.path, "-e", "io:*", "--count-by", "stack,vcpu,pid,tid,ip,comm,time",
                     message="8 fields make up its key, with those of filters .* there can be 7")
        self.refused(VPROF, "trace", engine.path, "-e", "io:*", "--count-by", "stack,kstack",
                     message="--count-by stack, kstack: its key is too long; it has room for two call chains")
        self.refused(VPROF, "trace", engine.path, "-e", "io:*", "-e", "io:0-65535", message="there is a probe io")
        for probe, option in ("io:*", "--cgroup"), ("io:0 { @ = count(); }", "--comm"):
            self.refused(VPROF, "trace", engine.path, "-e", probe, option, "/a", message=f"{option} .* for probes of programs.* and there is none")
        self.refused(VPROF, "probe", "args", "kprobe:x", "-E", engine.path, status=2, message="the providers are profile")
        out, _ = self.run_program(VPROF, "probe", "list", "function:*_page", "-E", engine.path)
        self.assertEqual(out.split(), ["function:render_page", "function:copy_page"])
        for arguments in ("list",), ("list", "exit:*"), ("args", "function:copy_page"):
            out, _ = self.run_program(VPROF, "probe", *arguments, "-E", engine.path, "--json")
            json_schemas.check(self, "probe", json.loads(out))

    def test_profile_ticks_on_every_vcpu(self):
        engine = self.demo(2)
        out, _ = self.run_program(VPROF, "trace", engine.path, "-e", "profile:hz:50", "-n", 100, "-j")
        *events, last = [json_schemas.check(self, "trace", json.loads(line)) for line in out.splitlines()]
        times = [[event["time-ns"] for event in events if event["vcpu"] == vcpu] for vcpu in (0, 1)]
        # Every tick is both vCPUs', and one that falls into a host quirk's page is counted instead. Late ticks are skipped.
        statistics = last["end"]["statistics"]
        self.assertLessEqual(abs(len(times[0]) - len(times[1])), statistics["quirk"] + 1)
        for vcpu in times:
            periods = (vcpu[-1] - vcpu[0]) / 1e9 * 50
            self.assertLessEqual(len(vcpu) - 1, periods + 1)
            self.assertGreaterEqual(len(vcpu) + statistics["skiptick"] + statistics["quirk"], periods * 0.95 - 1)


class Patches(ProbesTest):
    def setUp(self):
        super().setUp()
        harness.need_feature("breakpoint", "patch")

    def test_patches_of_a_known_guest(self):
        """Seven functions at once on two vCPUs that check each result: none is missed, none told twice."""
        engine = ProbedGuest(self, harness.guest("patched"), "--vcpus", 2)
        functions = [f"function:function_{name}" for name in ("push", "load", "call", "jump", "flags", "port", "counted")]
        probes = {name: engine.execute("probe-add", probe=name, stack=True) for name in functions}
        probes["function:rewritten"] = engine.execute("probe-add", probe="function:rewritten", breakpoint="patch")
        self.assertEqual([probe["breakpoint"] for probe in probes.values()], 4 * ["processor"] + 4 * ["patch"])
        bytes_ = engine.execute("probe-add", probe="marker:*")
        self.assertIsNone(bytes_["breakpoint"])
        engine.execute("probe-record", on=True)
        events = engine.run_to_the_end()
        for name in functions:
            for vcpu in (0, 1):
                of = [event for event in events[probes[name]["id"]] if event["vcpu"] == vcpu]
                arguments = [int(event["values"][0], 16) for event in of]
                if name == "function:function_counted":
                    self.assertEqual(len(arguments), PATCHED_ROUNDS, name)
                else:
                    self.assertEqual(arguments, list(range(PATCHED_ROUNDS)), name)
                self.assertEqual({event["stack"][0] for event in of}, {event["ip"] for event in of})
        # The guest wrote over it after half of the calls.
        rewritten = [int(event["values"][0], 16) for event in events[probes["function:rewritten"]["id"]]]
        self.assertEqual(rewritten, list(range(PATCHED_ROUNDS // 2)))
        state = engine.execute("query-probes")
        self.assertEqual([probe["name"] for probe in state["probes"] if not probe["intact"]], ["function:rewritten"])
        # function_push has a breakpoint of the processor's: its byte is as it was.
        self.assertEqual([int(event["values"][0], 16) for event in events[bytes_["id"]]], [PUSH, PUSH])

    def test_a_patch_is_put_back(self):
        engine = ProbedGuest(self, harness.guest("patched"), "--vcpus", 2)
        push = engine.execute("probe-add", probe="function:function_push", breakpoint="patch")
        jump = engine.execute("probe-add", probe="function:function_jump", breakpoint="patch")
        # Who waits at the same place shares what the first has taken.
        other = Client.connect(engine.path)
        self.assertEqual(other.execute("probe-add", probe="function:function_jump", breakpoint="processor")["breakpoint"],
                         "patch")
        other.close()
        engine.execute("probe-remove", id=push["id"])
        marker = engine.execute("probe-add", probe="marker:*")
        engine.execute("probe-record", on=True)
        events = engine.run_to_the_end()
        self.assertEqual([int(event["values"][0], 16) for event in events[marker["id"]]], [PUSH, PUSH])
        self.assertEqual(len(events[jump["id"]]), 2 * PATCHED_ROUNDS)
        self.assertNotIn(push["id"], events)

    def test_a_patched_byte_is_seen_by_the_guest(self):
        engine = ProbedGuest(self, harness.guest("patched"), "--vcpus", 2)
        engine.execute("probe-add", probe="function:function_push", breakpoint="patch")
        marker = engine.execute("probe-add", probe="marker:*")
        engine.execute("probe-record", on=True)
        events = engine.run_to_the_end()
        self.assertEqual([int(event["values"][0], 16) for event in events[marker["id"]]], [INT3, INT3])

    def test_trace_of_the_demonstration(self):
        engine = self.demo(2)
        # In and out of a guest that runs, by each means.
        for means in ("processor", "patch"):
            self.trace_tcp_checksum(engine, means)
        out, err = self.run_program(VPROF, "trace", engine.path, "--count-by", "probe", "-n", 50,
                                    *[word for name in ("tcp_checksum", "copy_page", "console_print", "system_call",
                                                        "syscall_entry", "kernel_main")
                                      for word in ("-e", f"function:{name}")])
        self.assertIn("2 of them are an INT3 in the guest's code", err)
        self.assertIn("function:tcp_checksum", out)

        out, _ = self.run_program(VPROF, "trace", engine.path, "-e", "function:tcp_checksum", "-e", "function:copy_page",
                                  "--count-by", "func", "--hist", "vcpu", "--count-by", "probe,vcpu,reason", "--hist", "arg0",
                                  "-n", 400, "-j", "--filter", "vcpu=1", "-e", "exit:intr", "--filter", "probe=function:*")
        end = json_schemas.check(self, "trace", json.loads(out))["end"]
        self.assertEqual([table["fields"] for table in end["counts"]], ["func", "probe, vcpu, reason"])
        counts, by_probe = ({row["key"]: row["count"] for row in table["rows"]} for table in end["counts"])
        self.assertEqual((sum(counts.values()), end["shown"]), (400, 400))
        # Of what is filtered out, nothing is recorded; the one event is that of the end.
        self.assertEqual((end["statistics"]["event"], end["statistics"]["map-full"]), (1, 0))
        self.assertGreater(end["statistics"]["hit"], 400)
        self.assertEqual(by_probe, {f"function:{name}, 1, -": n for name, n in counts.items()})
        # 30 % of the time against 5 %, in slices of equal length.
        self.assertGreater(counts["tcp_checksum"], 3 * counts["copy_page"])
        self.assertEqual(end["hists"][0], {"field": "vcpu", "buckets": [{"from": "0x1", "count": 400}]})
        self.assertEqual((end["hists"][1]["field"], sum(bucket["count"] for bucket in end["hists"][1]["buckets"])), ("arg0", 400))

        # By names, which only this side knows, and by registers; and what has no room.
        out, _ = self.run_program(VPROF, "trace", engine.path, "-e", "exit:*", "-e", "function:tcp_checksum", "--filter", "func=tcp_c*",
                                  "--filter", "reason=[di]*", "-n", 3, "-j")
        events = [json.loads(line) for line in out.splitlines()][:-1]
        self.assertEqual({event["probe"] for event in events}, {"exit:*"})
        self.assertEqual({event["func"].split("+")[0] for event in events}, {"tcp_checksum"})
        out, err = self.run_program(VPROF, "trace", engine.path, "-e", "function:tcp_checksum", "--registers", "rip,rsp", "--filter",
                                    "rsp>0", "--count-by", "rip", "--filter", "stack=*system_call*", "--count-by", "time", "-n", 20,
                                    "--map-keys", 2)
        self.assertRegex(out, r"^ +COUNT  rip\n +\d+  0x[0-9a-f]+\n +COUNT  time\n( +1  \d+\n){2}$")
        self.assertRegex(err, r"[1-9]\d* are left out of a count, since there are too many combinations of values; give --map-keys")

    def trace_tcp_checksum(self, engine, means):
        out, err = self.run_program(VPROF, "trace", engine.path, "-e", "function:tcp_checksum", "-g", "-n", 400, "--breakpoints",
                                    means)
        lines = re.findall(r"^ +\d+\.\d{6} +([01]) +0 - +function:tcp_checksum arg0=0x[0-9a-f]+ .*\n"
                           r" +tcp_checksum\n +system_call\+0x[0-9a-f]+\n +syscall_entry\+0x[0-9a-f]+$", out, re.M)
        self.assertEqual(len(lines), 400, out)
        self.assertEqual(set(lines), {"0", "1"})
        self.assertRegex(err, r"events, 400 shown; 0 dropped")


if __name__ == "__main__":
    harness.main()
