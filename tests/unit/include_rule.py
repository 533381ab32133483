#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Which folder may include and link which, and other rules for the shape of the tree. One line for each breach."""
import functools
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("VPROF_SOURCE", pathlib.Path(__file__).resolve().parents[2]))

TOP_LEVEL = {"vmm", "guest-agent", "host-cli", "include", "tests", "CMakeLists.txt", "CMakePresets.json", "README.md",
             "LICENSE", "bootstrap.sh"}
# Files are cut where a concept ends, not where a count does; this many lines are more than one concept.
LINES_MAX = 800

LIB = {"lib/record", "lib/symbol", "lib/profile", "lib/client", "lib/agent", "lib/initramfs", "lib/parser", "lib/process", "lib/probe_name", "lib/script", "lib/code"}
# Systems that guests run: struct guest_os (vmm/guest/os.h). Nothing names one but the lists of systems in the engines' main.c.
SYSTEMS = {"linux"}
# Rooms of the command line, from the ground up, and which of them each may include besides itself and LIB.
ROOMS = {
    "ui": set(),
    "terminal": set(),
    "reading": {"ui"},
    "engine": {"ui"},
    "report": {"reading", "ui"},
    "compare": {"reading", "ui"},
    "annotate": {"reading", "ui"},
    "browse": {"annotate", "reading", "report", "terminal", "ui"},
    "export": {"reading", "ui"},
    "push": {"export", "reading", "ui"},
    "trace": {"engine", "ui"},
    "tasks": {"record", "engine", "reading", "ui"},
    "top": {"engine", "reading", "report", "terminal", "ui"},
    "record": {"engine", "reading", "report", "ui"},
    "run": {"record", "compare", "engine", "reading", "ui"},
    "attach": {"record", "engine", "reading", "run", "ui"},
    "daemon": {"record", "engine", "push", "reading", "ui"},
}
# Rooms of the VMM, the same.
KVM_ROOMS = {
    "host": {"pmu"},
    "boot": {"kvm/host"},
    "device": {"kvm/boot", "kvm/host"},
    "vcpu": {"exits", "kvm/device", "kvm/host", "pmu"},
}
# Folders below vmm/, and rooms, that a folder may include besides itself. Every folder may include include/vprof.
ALLOWED = {
    **{lib: LIB for lib in LIB},
    "parse": {"lib/parser", "lib/process", "lib/symbol"},
    "guest": LIB,
    "linux": LIB | {"guest"},
    "counter": LIB | {"guest"},
    "exits": LIB | {"guest"},
    "pmu": LIB | {"guest", "counter"},
    "stream": LIB | {"guest", "sample"},
    "sample": LIB | {"guest", "counter", "stream"},
    "probe": LIB | {"guest", "counter", "sample", "stream"},
    "control": LIB | {"guest", "counter", "probe", "sample", "stream"},
    "engine": LIB | {"guest", "counter", "probe", "sample", "stream", "control"},
    **{f"kvm/{room}": LIB | {"guest"} | others for room, others in KVM_ROOMS.items()},
    "kvm": LIB | {"guest", "exits", "pmu"} | {f"kvm/{room}" for room in KVM_ROOMS},
    "attach": LIB | {"guest", "counter", "exits"},
    "demo": set(),
    **{f"host-cli/{room}": LIB | {f"host-cli/{other}" for other in others} for room, others in ROOMS.items()},
    "host-cli/cmd": LIB | {f"host-cli/{room}" for room in ROOMS},
    "host-cli/examples": set(),
    "host-cli": LIB | {"host-cli/cmd", "host-cli/ui"},
}
# The one file of a program that puts its parts together.
ALLOWED_IN_MAIN = {"kvm": {"counter", "control", "engine"} | SYSTEMS, "attach": {"control", "engine"} | SYSTEMS}
# Static libraries are named after the last part of their folder, those of the VMM's rooms after both.
FOLDER_OF_TARGET = {folder.removeprefix("lib/").replace("/", "-"): folder for folder in ALLOWED
                    if not folder.startswith("host-cli")}

# What folders are called in include guards, where that is not their name.
GUARD_WORDS = {"vmm": "", "lib": "", "include": "", "vprof": "", "host-cli": "cli", "guest-agent": "agent", "tests": "test"}
SOURCES = (".c", ".h", ".S")

# Folders of code that is for one kind of processor. Nothing beside them includes their files, names a register, or has a
# processor in a name; comments may, where they say which one they explain.
PROCESSORS = ("x86", "arm64")
REGISTER = re.compile(r"""(?<![a-z0-9])(?:r[abcd]x|r[sd]i|r[sbi]p|r(?:[89]|1[0-5])|rflags|cr[0234]|gs_base|la57|cpl|pstate|ttbr[01]|tcr
    |tpidr|(?:sp|elr|spsr|vbar|sctlr)_el[01]|kvm_s?regs)(?![a-z0-9])""", re.VERBOSE | re.IGNORECASE)
NAMED = re.compile(r"\w*(?:x86|arm64|aarch64)\w*", re.IGNORECASE)
# Names that stand for a processor as a whole, where one is chosen: values of other programs, and the tables of what it has; KVM's exits.
# Values of ours are not compared: each names its row of a table.
CHOICE = re.compile(r"(?!(?:ARCH|GUEST)_(?:X86|ARM64))[A-Z_]+_(?:X86(?:_64)?|ARM64)|(?:processor|cfi|code)_(?:x86|x86_64|arm64)|KVM_EXIT_X86_\w+")
ROW = re.compile(r"\[ARCH_\w+\]\s*=")
EXPLAINS = re.compile(r"x86|SDM|arm64|AArch64|Arm ARM|AAPCS64", re.IGNORECASE)
LEXEMES = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<code>[^/"']+|.)""",
                     re.DOTALL)
# Files beside them that have to know more, and why.
KNOWING = {
    "vmm/guest/registers.h": "the registers of both, for the folders",
    "vmm/guest/processor.h": "which tables there are",
    "vmm/linux/processor.h": "which tables there are",
    "vmm/linux/search_linux_priv.h": "which tables there are",
    "vmm/kvm/device/serial_16550.c": "RDI of a UART is no register of a processor's",
    "vmm/lib/record/arch.c": "which processor this build is for",
    "vmm/lib/record/arch.h": "which there are",
}

# What belongs to a system stays in its folder: names that its headers declare, and names of its kernel's structures, in code and
# texts. Each exception has a reason.
DECLARED = re.compile(r"^#define (\w+)|\b((?:struct|enum) \w+)(?= ?[{;])|\b([a-z]\w+)\((?!\*)[^;{]*\)(?:;|\n\{)|^\t([A-Z][A-Z0-9_]+)\b(?=[ ,=])", re.MULTILINE)
OF_KERNELS = re.compile(r"""\b(?:task_struct|mm_struct|vm_area_struct|signal_struct|thread_struct|css_set|kernfs_node|address_space|super_block
    |xa_node|maple_tree|bin_attribute|module_notes_attrs|mod_kallsyms|mutex_waiter|rwsem_waiter|inactive_task_frame|pcpu_hot|init_task
    |__per_cpu_offset|hardirq_stack_ptr|__switch_to|__set_task_comm|try_to_wake_up|page_offset_base|vmemmap_base)\b""", re.VERBOSE)
OUTSIDE = {
    "vmm/attach/bpf": "programs that the host's Linux runs",
    "vmm/exits/bpf": "programs that the host's Linux runs",
    "vmm/guest/dwarf_types.c": "the structures of all systems, which debug information is asked about at once",
    "vmm/probe/probe_values.c": "fields of probes are named as bpftrace names them",
}
# Builds that precompile GLib's headers compile what uses them without an include.
GLIB = re.compile(r"\b(?:(?:MIN|MAX|CLAMP)\(|(?:g_[a-z]\w*|G_[A-Z]\w*|G[A-Z][a-z]\w*|G[A-Z]+_(?:TO|FROM)_\w+|"
                  r"g(?:boolean|u?char|s?size|u?int(?:8|16|32|64)?|u?long|float|double|(?:const)?pointer))\b)")
GLIB_HEADER = re.compile(r"^\s*#\s*include\s*<(?:glib\.h|glib-unix\.h|glib/[^>]+)>", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
TARGETS = re.compile(r"vprof_library\(\w+[^)]*?\bDEPS\s+([^)]*)\)|target_link_libraries\(([^)]*)\)")


def tracked(*patterns):
    # safe.directory: the checkout may belong to another user than the one who tests.
    command = ["git", "-c", "safe.directory=*", "-C", SOURCE, "ls-files", "-z", "--cached", "--others",
               "--exclude-standard", "--", *patterns]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(name) for name in sorted(set(listing.split("\0"))) if name and (SOURCE / name).exists()]


def folder_of(path):
    """'lib/record', 'kvm', 'kvm/vcpu', 'host-cli/ui', ...; None where no rule applies. A folder for one processor is part of the one above."""
    parts = tuple(part for part in path.parts if part not in PROCESSORS)
    if parts[0] == "host-cli":
        return "/".join(parts[:2]) if path.suffix in SOURCES and len(parts) > 2 else "host-cli"
    if parts[0] != "vmm" or len(parts) < 3:
        return None
    return "/".join(parts[1:3]) if parts[1] == "lib" or (parts[1] == "kvm" and len(parts) > 3) else parts[1]


def included_folder(folder, name):
    """The folder that an include of a file in this folder names; None where it is in none of the project's."""
    for root in ("host-cli", "vmm") if folder.startswith("host-cli") else ("vmm",):
        if (SOURCE / root / name).exists():
            return folder_of(pathlib.Path(root) / name)
    return None


def include_breaches(path):
    folder = folder_of(path)
    allowed = ALLOWED[folder] | {folder}
    if path.name == "main.c":
        allowed = allowed | ALLOWED_IN_MAIN.get(folder, set())
    for name in INCLUDE.findall((SOURCE / path).read_text()):
        target = included_folder(folder, name)
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


def processor_words(text):
    for found in LEXEMES.finditer(text):
        if found["code"]:
            yield from REGISTER.findall(found["code"])
            yield from (word for word in NAMED.findall(ROW.sub("", found["code"])) if not CHOICE.fullmatch(word))
        elif found["comment"] and not EXPLAINS.search(found["comment"]):
            yield from REGISTER.findall(found["comment"])
    yield from (name for name in INCLUDE.findall(text) if set(name.split("/")) & set(PROCESSORS))


def processor_breaches(path):
    if str(path) in KNOWING or set(path.parts) & set(PROCESSORS):
        return
    if NAMED.search(path.stem):
        yield f"{path}: it is of one processor: it belongs to {' or '.join(PROCESSORS)}"
    for word in sorted(set(processor_words((SOURCE / path).read_text()))):
        yield f"{path}: {word} is of one processor: it belongs to {' or '.join(PROCESSORS)}"


@functools.cache
def system_words(system):
    """What the headers of a system declare, and those of the machine do not."""
    def declared(folder):
        texts = ["".join(found["code"] or " " for found in LEXEMES.finditer((SOURCE / path).read_text()))
                 for path in tracked(f"vmm/{folder}/*.h")]
        return {next(filter(None, groups)) for text in texts for groups in DECLARED.findall(text)}
    return declared(system) - declared("guest")


def system_breaches(path):
    if path.parts[1] in SYSTEMS or any(str(path) == place or str(path).startswith(place + "/") for place in OUTSIDE):
        return
    words, structures = set(), set()
    for found in LEXEMES.finditer((SOURCE / path).read_text()):
        words.update(re.findall(r"(?:\b(?:struct|enum) )?\w+", found["code"] or ""))
        structures.update(OF_KERNELS.findall(found["code"] or found["text"] or ""))
    for system in sorted(SYSTEMS):
        named = {f"os_{system}", f"search_{system}"} if path.name == "main.c" else set()
        for word in sorted((words & system_words(system)) - named):
            yield f"{path}: {word} is declared by vmm/{system}, which only the lists of systems in main.c name"
    for word in sorted(structures):
        yield f"{path}: {word} is of a system's kernel: it belongs to vmm/{' or vmm/'.join(sorted(SYSTEMS))}"


def guard(path):
    """The include guard of a header, by its path: VPROF_KVM_VCPU_VCPU_RUN_H."""
    folders = [GUARD_WORDS.get(folder, folder) for folder in path.parts[:-1]]
    return "_".join(filter(None, ["vprof", *folders, path.stem, "h"])).upper()


@functools.cache
def has_glib(path):
    """Whether it includes GLib's headers, itself or by others."""
    text = (SOURCE / path).read_text()
    if GLIB_HEADER.search(text):
        return True
    for name in INCLUDE.findall(text):
        folders = (path.parent, *map(pathlib.Path, ("vmm", "host-cli", "include", "guest-agent", "tests", "tests/support")))
        header = next((folder / name for folder in folders if (SOURCE / folder / name).exists()), None)
        if header and header != path and has_glib(header):
            return True
    return False


def glib_breaches(path):
    code = "".join(found["code"] or " " for found in LEXEMES.finditer((SOURCE / path).read_text()))
    if (word := GLIB.search(code)) and not has_glib(path):
        yield f"{path}: uses {word[0]}, but does not include <glib.h>"


def shape_breaches(path):
    text = (SOURCE / path).read_text()
    lines = text.count("\n")
    if lines > LINES_MAX:
        yield f"{path}: {lines} lines; split it"
    if path.suffix in SOURCES and not text.startswith("// SPDX-License-Identifier: BSD-2-Clause\n"):
        yield f"{path}: the first line is not the licence's"
    if path.suffix == ".h" and f"#ifndef {guard(path)}\n#define {guard(path)}\n" not in text:
        yield f"{path}: its include guard is not {guard(path)}"


def breaches():
    for path in tracked("vmm", "host-cli"):
        folder = folder_of(path)
        if folder is None:
            continue
        if folder not in ALLOWED:
            yield f"{path}: {folder} has no include rule"
        elif path.suffix in SOURCES:
            yield from include_breaches(path)
            yield from processor_breaches(path)
            if path.parts[0] == "vmm":
                yield from system_breaches(path)
        elif path.name == "CMakeLists.txt":
            yield from link_breaches(path)
    for path in tracked("*.c", "*.h", "*.S", "*.py", "*.sh"):
        yield from shape_breaches(path)
        if path.suffix in (".c", ".h"):
            yield from glib_breaches(path)
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
