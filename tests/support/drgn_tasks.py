# SPDX-License-Identifier: BSD-2-Clause
"""drgn_tasks.py CORE VMLINUX VMCOREINFO: what drgn says of the tasks in a dump, as JSON: "tasks" {tid: [pid, comm, state, CPU time in ns,
functions of its kernel stack]}, and the seconds that drgn took to "open" it and to "look" at all of them."""
import json
import pathlib
import sys
import time

import drgn
import drgn.helpers.linux.pid
import drgn.helpers.linux.sched

# Frames in other processors' or this one's registers are not compared: the task runs.
RUNNING = "R"


def functions(program, task):
    """Names with inlined functions left out, as an unwinder without debug information has them."""
    return [frame.name for frame in program.stack_trace(task) if frame.name and not frame.is_inline]


def look(program):
    tasks = {}
    for task in drgn.helpers.linux.pid.for_each_task(program):
        state = drgn.helpers.linux.sched.task_state_to_char(task)
        on_cpu = bool(task.on_cpu)
        tasks[task.pid.value_()] = [task.tgid.value_(), task.comm.string_().decode(errors="replace"), state,
                                    task.se.sum_exec_runtime.value_(), None if on_cpu or state in "ZX" else functions(program, task)]
    return tasks


def main(core, vmlinux, vmcoreinfo):
    begin = time.perf_counter()
    program = drgn.Program(vmcoreinfo=pathlib.Path(vmcoreinfo).read_text())
    program.set_core_dump(core)
    program.load_debug_info([vmlinux])
    opened = time.perf_counter()
    tasks = look(program)
    seconds = time.perf_counter() - opened
    print(json.dumps({"tasks": tasks, "open": opened - begin, "look": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
