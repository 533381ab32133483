#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what vprof prints with the text in expected/.

Each line of cases.txt is a name and the arguments of vprof. With --update the texts are written anew instead; read the
difference before you commit it.
"""
import difflib
import os
import pathlib
import shlex
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


def prepare(folder):
    subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
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
