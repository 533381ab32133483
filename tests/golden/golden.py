#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what vprof prints with the text in expected/.

Each line of cases.txt is a name and the arguments of vprof. With --update the texts are written anew instead; read the
difference before you commit it.
"""
import difflib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BIN = pathlib.Path(os.environ["VPROF_BIN"])


def cases():
    for line in (HERE / "cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *arguments = shlex.split(line)
            yield name, arguments


def measurements(folder, name, hash_percent=100, repetitions=8, unit="1/s", functions=None, **conditions):
    """Repetitions of 200 ms, by NOISE longer or shorter, in which hash_blocks takes a half."""
    noise = [0, 1, -1, 2, -2, 0.5, -0.5, 1.5][:repetitions]
    functions = functions or {"hash_blocks": hash_percent, "sort_blocks": 60, "copy_blocks": 39.5, "tick": 0.5}
    values = {function: [1e6 * part * (1 + n / 1000) for n in noise] for function, part in functions.items()}
    total = [sum(one) for one in zip(*values.values())]
    document = {
        "format": "vprof-measurements", "version": 1, "unit": "ns", "repetitions": repetitions,
        "conditions": {"event": "task-clock", "rate": {"frequency-hz": 999}, "vcpus": 1, **conditions},
        "metrics": [{"name": name, "unit": "ns", "values": total} for name in ("total", "guest")] +
                   [{"name": "requests", "unit": unit, "values": [2e11 / one for one in total]}],
        "functions": [{"name": function.partition("@")[0], "module": function.partition("@")[2] or "[kernel]", "mode": "kernel",
                       "values": list} for function, list in values.items()],
    }
    (folder / name).write_text(json.dumps(document))


# Two builds: one name is another, one function is in another module, two are another's, three are in one of them only.
BEFORE = {"hash_blocks": 50, "sort_blocks": 60, "copy_blocks": 40, "compare_keys": 12, "crc32@libz": 9, "lookup": 7, "gamma": 5}
AFTER = {"__hash_blocks": 52, "sort_blocks": 70, "copy_blocks": 31, "copy_tail.constprop.0": 9, "crc32@[kernel]": 9, "lookup_slow": 20,
         "delta": 5}


def counted(folder, name, hash_turns):
    """Two repetitions of which every instruction was counted."""
    functions = {"hash_blocks": hash_turns, "sort_blocks": 801}
    document = {
        "format": "vprof-measurements", "version": 1, "unit": "instructions", "repetitions": 2,
        "conditions": {"event": "steps", "rate": {"period": 1}, "vcpus": 1},
        "metrics": [{"name": "guest", "unit": "instructions", "values": [sum(functions.values())] * 2},
                    {"name": "wall", "unit": "ns", "values": [2e6, 3e6]}],
        "functions": [{"name": function, "module": "[kernel]", "mode": "kernel", "values": [count] * 2}
                      for function, count in functions.items()],
    }
    (folder / name).write_text(json.dumps(document))


def prepare(folder):
    counted(folder, "counted.json", 2001)
    counted(folder, "counted_more.json", 2101)
    measurements(folder, "base.json")
    measurements(folder, "same.json", hash_percent=100.05)
    measurements(folder, "slow.json", hash_percent=110)
    measurements(folder, "before.json", functions=BEFORE)
    measurements(folder, "after.json", functions=AFTER)
    measurements(folder, "few.json", hash_percent=110, repetitions=3)
    measurements(folder, "undecided.json", hash_percent=116, repetitions=4)
    measurements(folder, "slower.json", hash_percent=120)
    measurements(folder, "unit.json", unit="1/min")
    measurements(folder, "other.json", rate={"frequency-hz": 100})
    measurements(folder, "machine.json", cpu="another processor")
    for run in range(1, 13):
        (folder / "runs").mkdir(exist_ok=True)
        measurements(folder, f"runs/run-{run}.json", hash_percent=100 + 0.1 * (run * 7 % 5) + (10 if run > 8 else 0))
    (folder / "wickets").mkdir()
    for run in range(1, 13):
        document = (folder / f"runs/run-{run}.json").read_text().replace("requests", "wickets").replace("1/s", "")
        (folder / f"wickets/{run}.json").write_text(document)
    (folder / "no-runs").mkdir()
    (folder / "waiting").mkdir()
    (folder / "two-machines").mkdir()
    measurements(folder, "two-machines/1.json", cpu="one")
    measurements(folder, "two-machines/2.json", cpu="two")
    (folder / "damaged.json").write_text((folder / "base.json").read_text().replace("[", "[-1, ", 1))
    subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
    shutil.copy(folder / "waits.data", folder / "waiting")
    (folder / "mixed").mkdir()
    for name in ("repeats.data", "phases.data"):
        shutil.copy(folder / name, folder / "mixed")
    whole = (folder / "clock.data").read_bytes()
    (folder / "half.data").write_bytes(whole[:3000])
    (folder / "header.data").write_bytes(whole[:50])
    (folder / "text.data").write_text("this is no recording\n" * 100)


def output(folder, arguments):
    """Standard output, then standard error with a mark, then the status if it is not 0."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    done = subprocess.run([BIN / "vprof", *arguments], cwd=folder, env=environment, capture_output=True)
    text = f"$ vprof {shlex.join(arguments)}\n" + done.stdout.decode("utf-8", "backslashreplace")
    text += "".join(f"stderr: {line}\n" for line in done.stderr.decode("utf-8", "backslashreplace").splitlines())
    return text + (f"status: {done.returncode}\n" if done.returncode else "")


def compare(name, text):
    file = HERE / "expected" / f"{name}.txt"
    if "--update" in sys.argv:
        file.write_text(text)
        return True
    expected = file.read_text() if file.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), text.splitlines(True), str(file), "printed"))
    return expected == text


def main():
    with tempfile.TemporaryDirectory(prefix="vprof-golden-") as path:
        folder = pathlib.Path(path)
        prepare(folder)
        same = [compare(name, output(folder, arguments)) for name, arguments in cases()]
    stray = {file.stem for file in (HERE / "expected").iterdir()} - {name for name, _ in cases()}
    for name in sorted(stray):
        print(f"expected/{name}.txt belongs to no case")
    print(f"{sum(same)} of {len(same)} as expected")
    return 0 if all(same) and not stray else 1


if __name__ == "__main__":
    sys.exit(main())
