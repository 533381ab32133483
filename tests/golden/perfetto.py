#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Traces for Perfetto, as protoc decodes them by its names and numbers: every number leads somewhere, and what is in them is what the
recording has."""
import pathlib
import subprocess

import golden
import harness
import protobuf
from harness import VPROF

PROTO = pathlib.Path(__file__).parents[2] / "host-cli/export/proto"
MS = 10**6
BEGIN = 5000 * MS  # of the recordings
RUNNABLE, RUNNING, SLEEPING, DISK_SLEEP = 2, 3, 4, 5
SLICE_BEGIN, COUNTER = 1, 4


class Trace:
    """What a reader makes of the packets."""

    def __init__(self, test, packets):
        self.texts, self.modules, self.mappings, self.frames, self.stacks, self.tracks = {}, {}, {}, {}, {}, {}
        self.samples, self.states, self.slices, self.wakers, self.counters = [], [], [], {}, {}
        opened = {}
        test.assertEqual([packet["sequence_flags"] for packet in packets], [[1]] + [[2]] * (len(packets) - 1))
        test.assertEqual({packet["trusted_packet_sequence_id"][0] for packet in packets}, {1})
        self.counts = packets[0]["trace_packet_defaults"][0]["perf_sample_defaults"][0]["timebase"][0]["name"][0]
        for packet in packets[1:]:
            if "interned_data" in packet:
                self.intern(packet["interned_data"][0])
                continue
            if "track_descriptor" in packet:
                (track,) = packet["track_descriptor"]
                test.assertIn(track.get("parent_uuid", [None])[0], (None, *self.tracks))
                self.tracks[track["uuid"][0]] = track
                test.assertNotIn("timestamp", packet)
                continue
            (time,) = packet["timestamp"]
            if "perf_sample" in packet:
                (sample,) = packet["perf_sample"]
                self.samples.append((time, sample.get("tid", [None])[0], sample["timebase_count"][0], self.stack(sample["callstack_iid"][0])))
            elif "generic_kernel_task_state_event" in packet:
                (state,) = packet["generic_kernel_task_state_event"]
                self.states.append((time, state["cpu"][0], state["tid"][0], state["comm"][0], state["state"][0]))
            else:
                (event,) = packet["track_event"]
                (track,) = event["track_uuid"]
                if event["type"] == [COUNTER]:
                    self.counters.setdefault(self.name(track), []).append((time, event["counter_value"][0]))
                elif event["type"] == [SLICE_BEGIN]:
                    test.assertNotIn(track, opened)
                    for note in event.get("debug_annotations", []):
                        test.assertEqual(note["name"], ["waker"])
                        self.wakers[self.name(track), time] = note["string_value"][0]
                    opened[track] = time, event["name"][0], self.stack(event["callstack_iid"][0]) if "callstack_iid" in event else None
                else:
                    begin, name, stack = opened.pop(track)
                    test.assertLessEqual(begin, time)
                    self.slices.append((self.name(track), begin, time, name, stack))
        test.assertEqual(opened, {})

    def intern(self, data):
        for field, table in ("function_names", self.texts), ("mapping_paths", self.modules):
            for text in data.get(field, []):
                table[text["iid"][0]] = text["str"][0]
        for mapping in data.get("mappings", []):
            self.mappings[mapping["iid"][0]] = self.modules[mapping["path_string_ids"][0]]
        for frame in data.get("frames", []):
            self.frames[frame["iid"][0]] = self.texts[frame["function_name_id"][0]], self.mappings[frame["mapping_id"][0]]
        for stack in data.get("callstacks", []):
            self.stacks[stack["iid"][0]] = [self.frames[iid] for iid in stack["frame_ids"]]

    def stack(self, iid):
        return [name for name, _ in self.stacks[iid]]

    def name(self, uuid):
        track = self.tracks[uuid]
        return track["name"][0] if "name" in track else track["thread"][0]["thread_name"][0]


class Perfetto(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_program("protoc", "protobuf-compiler")
        golden.prepare(self.folder)

    def trace(self, recording, *options):
        self.run_program(VPROF, "export", "--to", "perfetto", "-i", recording, "-o", "trace", *options, cwd=self.folder)
        descriptions = self.folder / "descriptions"
        subprocess.run(["protoc", f"-I{PROTO}", "-o", descriptions, PROTO / "perfetto.proto"], check=True)
        data = protobuf.decode(descriptions, "perfetto.Trace", self.folder / "trace")
        self.assertEqual(protobuf.unknown_fields(data), set())
        return Trace(self, data["packet"])

    def test_waits(self):
        """Tasks run between their waits, of which one is in two parts."""
        trace = self.trace("locks.data")
        self.assertEqual(trace.counts, "task-clock")
        mutex = ["ext4_dio_write_iter", "mutex_lock", "__mutex_lock.constprop.0"]
        self.assertEqual([one for one in trace.slices if one[0] == "reader"], [
            ("reader", BEGIN + 1 * MS, BEGIN + 31 * MS, "disk-sleep: __mutex_lock.constprop.0", mutex),
            ("reader", BEGIN + 43 * MS, BEGIN + 48 * MS, "runnable: __mutex_lock.constprop.0", mutex),
            ("reader", BEGIN + 75 * MS, BEGIN + 95 * MS, "sleeping: futex_wait_queue",
             ["worker", "pthread_mutex_lock", "entry_SYSCALL_64", "do_syscall_64", "futex_wait", "futex_wait_queue"])])
        self.assertEqual(trace.wakers, {("reader", BEGIN + 1 * MS): "writer", ("writer", BEGIN + 32 * MS): "reader",
                                        ("writer", BEGIN + 49 * MS): "[interrupt]", ("reader", BEGIN + 75 * MS): "writer"})
        self.assertEqual(sorted(state for state in trace.states if state[2] == 100), [
            (BEGIN + at * MS, 0, 100, "reader", state)
            for at, state in ((1, DISK_SLEEP), (31, RUNNING), (43, RUNNABLE), (48, RUNNING), (75, SLEEPING), (95, RUNNING))])
        self.assertEqual([(time, tid) for time, tid, *_ in trace.samples],
                         [(BEGIN + at * MS, tid) for at, tid in ((1, 100), (32, 101), (43, 100), (49, 101), (75, 100), (96, 101))])
        self.assertEqual([count for _, _, count, _ in trace.samples], [n * MS for n in range(1, 7)])
        self.assertEqual({tuple(stack) for *_, stack in trace.samples}, {("worker",)})
        self.assertIn(("vCPU 0, by samples", BEGIN, BEGIN + 1 * MS, "reader", None), trace.slices)
        self.assertIn("phase 0x40", {track for track, *_ in trace.slices})
        self.assertIn(("pthread_mutex_lock", "/bin/bench"), trace.frames.values())

    def test_looks(self):
        """Looks have no times at which a task began to run, and so there are none."""
        trace = self.trace("waits.data")
        self.assertEqual(trace.states, [])
        self.assertIn("parked: memcpy", {name for *_, name, _ in trace.slices})

    def test_switches(self):
        lines = self.run_program(VPROF, "script", "-i", "switches.data", "--switch-events", cwd=self.folder)[0].splitlines()
        trace = self.trace("switches.data")
        self.assertEqual({state for *_, state in trace.states}, {RUNNING})
        self.assertEqual([(cpu, tid) for _, cpu, tid, *_ in trace.states], [(1, int(line.split()[4])) for line in lines if " in " in line])

    def test_counters(self):
        """Other events than the profile's are numbers that go up, on each vCPU."""
        tables = {table["event"]: table for table in self.report(self.folder / "events.data")[0]["tables"]}
        first, *others = tables
        trace = self.trace("events.data")
        for event in others:
            ends = [points[-1][1] for name, points in trace.counters.items() if name.rpartition(",")[0] == event]
            self.assertEqual(sum(ends), tables[event]["period"])
        self.assertEqual({name.rpartition(",")[0] for name in trace.counters}, set(others))
        for points in trace.counters.values():
            self.assertEqual(points, sorted(points))
        self.assertGreater(len(others), 0)
        self.assertEqual(self.trace("locks.data").counters, {})

    def test_every_recording(self):
        """Those with other events, modes and names are traces, too, with as many samples."""
        for recording in "events.data", "calls.data", "cgroups.data", "hostile.data", "host.data", "names.data", "phases.data", "idle.data":
            with self.subTest(recording):
                first = self.report(self.folder / recording)[0]["tables"]
                trace = self.trace(recording)
                self.assertEqual(len(trace.samples), first[0]["samples"] if first else 0)


if __name__ == "__main__":
    harness.main()
