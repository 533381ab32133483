#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`vprof ps` and `vprof stack`, of an engine with the answers below."""
import json
import pathlib
import subprocess
import unittest

import harness
from fake_engine import FakeEngine
from harness import BIN, VPROF

KERNEL, USER = "0xffffffffffffff80", "0xfffffffffffffe00"  # PERF_CONTEXT_*
START, COPY, MODULE = "0xffffffff81000110", "0xffffffff81000210", "0xffffffffc0001000"


def task(pid, tid, comm, state="S", *chain, **more):
    return {"pid": pid, "tid": tid, "comm": comm, "state": state, "cpu": None, "cpu-ns": 61_230_000_000, "kernel-thread": False,
            "cgroup": "/a", "wait-channel": None, "chain-end": "whole", "chain": chain, **more}


TASKS = [
    task(1, 1, "init", "S", KERNEL, COPY, START, **{"wait-channel": START}),
    task(2, 2, "kthreadd", "I", KERNEL, COPY, **{"kernel-thread": True, "cgroup": None}),
    task(3, 3, "disk\x1b[2J", "D", KERNEL, COPY, MODULE, **{"wait-channel": MODULE, "chain-end": "bad-frame"}),
    task(4, 4, "spin", "R", USER, "0x401000", **{"cpu": 1}),
    task(4, 5, "worker", "S", KERNEL, COPY, START, **{"wait-channel": START}),
    task(6, 6, "gone", "Z"),
    task(0, 0, "swapper/0", "R", KERNEL, START, **{"cpu": 0}),
]
PS = """    PID     TID S CPU         TIME WCHAN                    COMM              CGROUP
      1       1 S   -      1:01.23 start_kernel             init              /a
      2       2 I   -      1:01.23 -                        [kthreadd]        -
      3       3 D   -      1:01.23 virtqueue_kick           disk?[2J          /a
      4       4 R   1      1:01.23 -                        spin              /a
      4       5 S   -      1:01.23 start_kernel             worker            /a
      6       6 Z   -      1:01.23 -                        gone              /a
"""
STACK = """running on CPU 1: spin 4
    0x401000 [user]

idle on CPU 0: swapper/0 0
    start_kernel

1 D: disk?[2J 3
    memcpy
    virtqueue_kick [virtio_ring]
    ... (bad-frame)

2 S: init 1, worker 5
    memcpy
    start_kernel

1 I: kthreadd 2
    memcpy

1 Z: gone 6
    it has ended
"""


def look(arguments):
    """Four tasks in an answer."""
    chosen = [task for task in TASKS if arguments.get("pid") in (None, task["pid"]) and arguments.get("comm", "spin") in ("spin", task["comm"])]
    start = arguments.get("from", 0)
    assert start == 0 or arguments["look"] == 3
    return {"look": 3, "tasks": chosen[start:start + 4], "total": len(chosen), "next": start + 4 if len(chosen) > start + 4 else None,
            "list": "whole", "unwinder": "orc", "torn": 0, "late": 0, "unseen": 0}


def modules(arguments):
    # The address before the one that is returned to.
    return {"symbols": [{"address": address, "module": "virtio_ring", "symbol": "virtqueue_kick", "offset": 16, "bytes": 64}
                        for address in arguments["addresses"] if address == hex(int(MODULE, 16) - 1)]}


def start(folder, **other):
    """The engine, at engine.sock in the folder, which gets its kernel."""
    subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
    guest = {"name": "web01", "kind": "kvm", "vcpus": 2, "kernel": str(pathlib.Path(folder, "kernel.elf"))}
    return FakeEngine(pathlib.Path(folder, "engine.sock"),
                      {"query-guest": guest, "query-tasks": look, "module-symbols": modules, **other})


class Tasks(harness.ProgramTest):
    def begin(self, **other):
        self.addCleanup(start(self.folder, **other).end)

    def vprof(self, *arguments, **options):
        return self.run_program(VPROF, *arguments, cwd=self.folder, **options)

    def test_text(self):
        self.begin()
        self.assertEqual(self.vprof("ps", "./engine.sock"), (PS, ""))
        self.assertEqual(self.vprof("stack", "./engine.sock"), (STACK, ""))

    def test_one(self):
        self.begin()
        out, _ = self.vprof("ps", "./engine.sock", "4")
        self.assertEqual(out.splitlines(), [PS.splitlines()[line] for line in (0, 4, 5)])
        self.refused(VPROF, "stack", "./engine.sock", "77", message='the guest has no task "77"', cwd=self.folder)
        self.refused(VPROF, "stack", "./engine.sock", "none", message='the guest has no task "none"', cwd=self.folder)

    def test_json(self):
        self.begin()
        rows = json.loads(self.vprof("ps", "--json", "./engine.sock")[0])["tasks"]
        self.assertEqual([row["tid"] for row in rows], [1, 2, 3, 4, 5, 6, 0])
        self.assertEqual(rows[2]["wait-channel"], {"ip": hex(int(MODULE, 16) - 1), "symbol": "virtqueue_kick", "module": "[virtio_ring]"})
        stacks = json.loads(self.vprof("stack", "--json", "./engine.sock")[0])["stacks"]
        self.assertEqual([(stack["count"], stack["tasks"][0]["tid"], len(stack["frames"])) for stack in stacks],
                         [(1, 4, 1), (1, 0, 1), (1, 3, 2), (2, 1, 2), (1, 2, 1), (1, 6, 0)])
        self.assertEqual(stacks[0]["frames"], [{"ip": "0x401000", "symbol": None, "module": "[user]"}])

    def test_what_is_missing_is_said(self):
        for changed, text in (({"list": "broken"}, "list of tasks is damaged"), ({"list": "limit"}, "the first 7 are shown"),
                              ({"torn": 2}, "2 tasks ran while"), ({"late": 3}, "3 tasks have no call chain: reading all"),
                              ({"unseen": 1}, "1 tasks run on a vCPU and have no call chain: ")):
            with self.subTest(text):
                engine = start(self.folder, **{"query-tasks": lambda arguments, more=changed: {**look(arguments), **more}})
                out, err = self.vprof("stack", "./engine.sock")
                engine.end()
                self.assertEqual(out, STACK)
                self.assertIn(text, err)

    def test_no_look(self):
        self.begin(**{"query-tasks": None})
        self.refused(VPROF, "ps", "./engine.sock", message="there is no method query-tasks", cwd=self.folder)

    def test_no_names(self):
        self.begin(**{"query-guest": {"name": "web01", "kind": "qemu", "vcpus": 1, "kernel": None}})
        out, err = self.vprof("stack", "./engine.sock", "1")
        self.assertIn("    0xffffffff81000210\n", out)
        self.assertIn("functions have no names: its kernel is not known", err)


if __name__ == "__main__":
    harness.main()
