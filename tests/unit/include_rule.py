#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who may include and link whom, and what else keeps the tree in shape. One line for each breach."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("VPROF_SOURCE", pathlib.Path(__file__).resolve().parents[2]))

TOP_LEVEL = {"vmm", "guest-agent", "host-cli", "include", "tests", "CMakeLists.txt", "CMakePresets.json", "README.md",
             "LICENSE", "bootstrap.sh"}
LINES_MAX = 600

LIB = {"lib/record", "lib/symbol", "lib/profile", "lib/client", "lib/agent", "lib/initramfs"}
# Folders below vmm/ that a folder may include besides itself. include/vprof is for everybody.
ALLOWED = {
    **{lib: LIB for lib in LIB},
    "guest": LIB,
    "counter": LIB | {"guest"},
    "pmu": LIB | {"guest", "counter"},
    "sample": LIB | {"guest", "counter"},
    "control": LIB | {"guest", "counter", "sample"},
    "kvm": LIB | {"guest", "pmu"},
    "attach": LIB | {"guest", "counter"},
    "demo": set(),
    "host-cli": LIB,
}
# The one file of a program that puts its parts together.
ALLOWED_IN_MAIN = {"kvm": {"counter", "sample", "control"}, "attach": {"sample", "control"}}
# Static libraries are named after the last part of their folder.
FOLDER_OF_TARGET = {folder.split("/")[-1]: folder for folder in ALLOWED if folder != "host-cli"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
TARGETS = re.compile(r"vprof_library\(\w+[^)]*?\bDEPS\s+([^)]*)\)|target_link_libraries\(([^)]*)\)")


def tracked(*patterns):
    # safe.directory: the checkout may belong to another user than the one who tests.
    command = ["git", "-c", "safe.directory=*", "-C", SOURCE, "ls-files", "-z", "--cached", "--others",
               "--exclude-standard", "--", *patterns]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(name) for name in sorted(set(listing.split("\0"))) if name and (SOURCE / name).exists()]


def folder_of(path):
    """'lib/record', 'kvm', 'host-cli', ...; None where no rule applies."""
    parts = path.parts
    if parts[0] == "host-cli":
        return "host-cli"
    if parts[0] != "vmm" or len(parts) < 3:
        return None
    return "/".join(parts[1:3]) if parts[1] == "lib" else parts[1]


def included_folder(name):
    """The folder below vmm/ that an include names; None when it is the including folder's own."""
    return folder_of(pathlib.Path("vmm") / name) if (SOURCE / "vmm" / name).exists() else None


def include_breaches(path):
    folder = folder_of(path)
    allowed = ALLOWED[folder] | {folder}
    if path.name == "main.c":
        allowed = allowed | ALLOWED_IN_MAIN.get(folder, set())
    for name in INCLUDE.findall((SOURCE / path).read_text()):
        target = included_folder(name)
        if target is not None and target not in allowed:
            yield f"{path}: includes {name}, but {folder} may include only {', '.join(sorted(allowed))}"


def link_breaches(path):
    folder = folder_of(path)
    allowed = ALLOWED[folder] | ALLOWED_IN_MAIN.get(folder, set()) | {folder}
    for groups in TARGETS.findall((SOURCE / path).read_text()):
        for word in " ".join(groups).split():
            target = FOLDER_OF_TARGET.get(word)
            if target is not None and target not in allowed:
                yield f"{path}: links {word}, but {folder} may link only {', '.join(sorted(allowed))}"


def shape_breaches(path):
    text = (SOURCE / path).read_text()
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield f"{path}: {lines} lines; split it"
    if path.suffix in (".c", ".h", ".S") and not text.startswith("// SPDX-License-Identifier: BSD-2-Clause\n"):
        yield f"{path}: the first line is not the licence's"


def breaches():
    for path in tracked("vmm", "host-cli"):
        folder = folder_of(path)
        if folder is None:
            continue
        if folder not in ALLOWED:
            yield f"{path}: {folder} has no include rule"
        elif path.suffix in (".c", ".h", ".S"):
            yield from include_breaches(path)
        elif path.name == "CMakeLists.txt":
            yield from link_breaches(path)
    for path in tracked("*.c", "*.h", "*.S", "*.py", "*.sh"):
        yield from shape_breaches(path)
    for name in sorted({path.parts[0] for path in tracked()}):
        if not name.startswith(".") and name not in TOP_LEVEL:
            yield f"{name}: the top level is fixed: {', '.join(sorted(TOP_LEVEL))}"


if not (SOURCE / ".git").exists():
    print("skipped: not a git checkout, so the list of source files is unknown")
    sys.exit(77)
found = list(breaches())
for breach in found:
    print(breach)
sys.exit(1 if found else 0)
