#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Files made to take time or memory end with a result or a message, in 10 s of CPU time and 1 GiB of address space."""
import random
import resource
import shutil
import struct
import subprocess

import harness
from harness import VPROF

CPU_SECONDS = 10
MEMORY_BYTES = 1 << 30
TEXT = 0xffffffff81000000
KERNEL, USER = 1, 2  # PERF_RECORD_MISC_
CONTEXT_KERNEL = 2**64 - 128
MMAP, COMM, SAMPLE, COMPRESSED = 1, 3, 9, 81
CMDLINE, EVENTS, DESCRIPTION, SYMBOLS = 11, 12, 200, 201  # feature sections
SAMPLE_TYPE = 1 << 16 | 1 << 8 | 1 << 7 | 1 << 2 | 1 << 1 | 1  # VPROF_SAMPLE_TYPE
CALLCHAIN = 1 << 5
EXPORTS = "folded", "pprof", "speedscope", "firefox", "perf-script", "csv", "otlp", "svg", "kallsyms"
GREEDY_SYMBOLS, GREEDY_MEMORY_BYTES = 1500000, 192 << 20
CORPORA = harness.SOURCE / "tests" / "fuzz" / "corpus"


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(name):
    return name + bytes(8 - len(name) % 8)


def sample_id(tid, time_ns=1):
    return struct.pack("<IIQIIQ", tid, tid, time_ns, 0, 0, 1)


def sample(ip, time_ns, chain=(), tid=7, misc=KERNEL):
    return record(SAMPLE, misc, struct.pack(f"<QQIIQIIQQ{len(chain)}Q", 1, ip, tid, tid, time_ns, 0, 0, 1000, len(chain), *chain))


def comm(tid, name):
    return record(COMM, 0, struct.pack("<II", tid, tid) + text(name) + sample_id(tid))


def mapping(start, n, name):
    return record(MMAP, USER, struct.pack("<IIQQQ", 7, 7, start, n, 0) + text(name) + sample_id(7))


def symbols(entries, texts):
    return struct.pack("<IIQ", 1, len(entries), len(texts)) + b"".join(struct.pack("<QQII", *entry) for entry in entries) + texts


def recording(data, features=None, n_events=1):
    attr = bytearray(128)
    struct.pack_into("<IIQQQ", attr, 0, 1, 128, 1, 1000000, SAMPLE_TYPE | CALLCHAIN)
    struct.pack_into("<Q", attr, 40, 1 << 18)  # sample_id_all
    ids_at = 104 + 144 * n_events
    head = b"".join(attr + struct.pack("<QQ", ids_at + 8 * i, 8) for i in range(n_events)) + struct.pack(f"<{n_events}Q", *range(1, n_events + 1))
    features = features or {DESCRIPTION: b"{}"}
    bits, sections, at = [0] * 4, b"", 104 + len(head) + len(data) + 16 * len(features)
    for number, section in sorted(features.items()):
        bits[number // 64] |= 1 << number % 64
        sections += struct.pack("<QQ", at, len(section))
        at += len(section)
    return (b"PERFILE2" + struct.pack("<8Q", 104, 144, 104, 144 * n_events, 104 + len(head), len(data), 0, 0) + struct.pack("<4Q", *bits) +
            head + data + sections + b"".join(section for _, section in sorted(features.items())))


def marks(n, ends):
    kinds = ("begin", "end") if ends else ("begin", "begin")
    return ",".join(f'{{"name":"p{i // 2}","kind":"{kinds[i % 2]}","time-ns":{i}}}' for i in range(n)).encode()


def program(n_symbols):
    """An ELF program of one page of code, in which all symbols are."""
    names, sections = b"\0work\0.text\0.symtab\0.strtab\0", b""
    symbols_at = 0x1000 + 0x1000
    names_at = symbols_at + 24 * n_symbols
    for at, kind, flags, address, offset, size, link, entry in (
            (0, 0, 0, 0, 0, 0, 0, 0), (6, 1, 6, 0, 0, 0x1000, 0, 0), (12, 2, 0, 0, symbols_at, 24 * n_symbols, 3, 24),
            (20, 3, 0, 0, names_at, len(names) + 5 * n_symbols, 0, 0)):
        sections += struct.pack("<IIQQQQIIQQ", at, kind, flags, address, offset, size, link, 0, 1, entry)
    sections_at = names_at + len(names) + 5 * n_symbols
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0, 64, sections_at, 0, 64, 56, 1, 64, 4, 3)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000)
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 0x1000)
    return head.ljust(0x2000, b"\x90") + symbol * n_symbols + names + bytes(5 * n_symbols) + sections


class Limits(harness.ProgramTest):
    def limited(self, *arguments, statuses=(0, 1, 2, 3), memory=MEMORY_BYTES):
        """Its messages: it must have ended by itself, and said why if it failed."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        done = subprocess.run([VPROF, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, preexec_fn=limit, timeout=120 * harness.SLOWNESS, check=False)
        message = done.stderr.decode()
        self.assertIn(done.returncode, statuses, f"{arguments}: {message}")
        self.assertTrue(done.returncode == 0 or "vprof: " in message, arguments)
        return message

    def write(self, data, name="made.data"):
        (self.folder / name).write_bytes(data)
        return name

    def read(self, data, *exports, calls=True):
        """By the readers that keep most of a recording; the messages of a report."""
        name = self.write(data)
        for kind in exports:
            self.limited("export", "-t", kind, "-i", name, "-o", "out", statuses=(0, 1))
        return self.limited("report", "-i", name, "--sort", "comm,sym", *["-g"] * calls, statuses=(0, 1))

    def test_calls(self):
        """As many different chains as fit, which are beyond the limit, and one that is as deep as may be."""
        chains = b"".join(sample(TEXT + i, i, [CONTEXT_KERNEL] + [TEXT + 16 * ((i * 7919 + j * 31) % 100000) for j in range(127)], tid=i)
                          for i in range(17000))
        said = self.read(recording(chains), "svg", "speedscope", "firefox", "pprof")
        self.assertRegex(said, "more than 2097152 places in call chains: [0-9]+ samples count at one of their callers")
        self.read(recording(b"".join(sample(TEXT + i, i, [CONTEXT_KERNEL] + [TEXT + 16 * ((i + j) % 4000) for j in range(1000)])
                                     for i in range(100))), *EXPORTS)

    def test_tasks(self):
        tasks = b"".join(comm(i, b"task%d" % i) + sample(TEXT + i, i, [CONTEXT_KERNEL, TEXT + i], tid=i) for i in range(30000))
        self.read(recording(tasks), "svg", "firefox", "otlp")
        self.read(recording(b"".join(comm(7, b"x" * 65000) + sample(TEXT + i, i) for i in range(100))), *EXPORTS)

    def test_symbol_tables(self):
        """A program with more symbols than vprof-parse has memory for, and one with a single symbol: both are reported, the first without its names."""
        (self.folder / "root").mkdir()
        for name, n_symbols in ("greedy", GREEDY_SYMBOLS), ("small", 1):
            (self.folder / "root" / name).write_bytes(program(n_symbols))
        maps = mapping(0x10000, 0x1000, b"/greedy") + mapping(0x20000, 0x1000, b"/small")
        name = self.write(recording(maps + sample(0x10010, 1, misc=USER) + sample(0x20010, 2, misc=USER)))
        self.assertIn("the symbol table of root/greedy cannot be read: vprof-parse has reached its limit of memory",
                      self.limited("report", "-i", name, "--symfs", "root", statuses=(0,), memory=GREEDY_MEMORY_BYTES))
        report = self.run_program(VPROF, "report", "-i", name, "--symfs", "root", "--sort", "sym", cwd=self.folder)[0]
        self.assertIn("work", report)

    def test_anything(self):
        noise = random.Random(1)
        self.read(recording(b"".join(sample(noise.getrandbits(64), noise.getrandbits(64), [noise.getrandbits(64) for _ in range(100)],
                                            tid=noise.getrandbits(31)) for _ in range(500))), *EXPORTS)

    def test_mappings(self):
        """Of which each hides a part of the one before."""
        maps = b"".join(mapping(i << 12, 1 << 40, b"/f%d" % i) for i in range(10000))
        self.read(recording(maps + b"".join(sample(i << 12, i, misc=USER) for i in range(5000))), "csv")

    def test_events(self):
        self.read(recording(b"".join(sample(TEXT + i, i) for i in range(100)), n_events=1024), "pprof")
        self.assertIn("20000 events, and at most 1024 are read", self.read(recording(b"", n_events=20000)))

    def test_packed(self):
        harness.need(shutil.which("zstd"), "zstd is missing; install the package zstd")
        packed = subprocess.run(["zstd", "-19", "-c", "--no-check"], input=sample(TEXT, 1, [CONTEXT_KERNEL, TEXT]) * 1000000, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=True).stdout
        data = b"".join(record(COMPRESSED, 0, packed[i:i + 65000]) for i in range(0, len(packed), 65000))
        self.assertIn("it unpacks to more than 256 times its size", self.read(recording(data), "csv"))

    def test_sections(self):
        """Lists of a million names, a name of 50 MB, and a table whose symbols share one."""
        one = sample(TEXT, 1)
        for features in ({EVENTS: struct.pack("<II", 1000000, 0) + struct.pack("<II4s", 0, 4, b"ab") * 1000000},
                         {CMDLINE: struct.pack("<I", 1000000) + struct.pack("<I4s", 4, b"ab") * 1000000},
                         {SYMBOLS: symbols([(TEXT + 16 * i, 16, 1, 1) for i in range(1000)], b"\0" + b"y" * 50000000 + b"\0")},
                         {SYMBOLS: symbols([(TEXT + i, 1, 1, 1) for i in range(200000)], b"\0" + b"y" * 4095 + b"\0")}):
            self.read(recording(one, features), "folded")

    def test_descriptions(self):
        for json, message in ((b"[[]" + b",[]" * 10000000 + b"]", "more than 4194304 values"), (b"[" * 100000 + b"]" * 100000, "is damaged"),
                              (b"[[]" + b",[]" * 1000000 + b"]", ""), (b'["' + b"x" * 20000000 + b'"]', "")):
            self.assertIn(message, self.read(recording(sample(TEXT, 1), {DESCRIPTION: b'{"version":1,"x":' + json + b"}"})))
        for ends in True, False:
            data = recording(b"".join(sample(TEXT, i) for i in range(10000)), {DESCRIPTION: b'{"version":1,"marks":[' + marks(100000, ends) + b"]}"})
            self.read(data, "folded")
            self.limited("report", "-i", "made.data", "--json")

    def test_measurements(self):
        start = b'{"format": "vprof-measurements", "version": 1, "unit": "ns", "repetitions": 2, "conditions": {}, "metrics": ['
        for json, message in ((start + b"[]," * 10000000, "more than 4194304 values"), (b"[" * 100000, "parsing depth"), (start + b"1," * 1000000 + b"1]}", ""),
                              (b" " * (300 << 20), "too large"), (b"", ""), (bytes(1000), "")):
            self.write(json, "made.json")
            for command in ["gate", "-b", "made.json", "made.json"], ["diff", "made.json", "made.json"]:
                self.assertIn(message, self.limited(*command, statuses=(1, 2, 3)))

    def test_size_of_files(self):
        """A limit of what may be written is told as what it is."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        self.write(recording(b"".join(sample(TEXT + i, i) for i in range(1000))))
        with open(self.folder / "out", "wb") as out:
            for command, stdout in (["export", "-t", "csv", "-i", "made.data", "-o", "other"], None), (["script", "-i", "made.data"], out):
                done = subprocess.run([VPROF, *command], cwd=self.folder, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=limit, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr.decode(), "cannot write .*: File too large")

    def test_corpora(self):
        """What the fuzz targets begin with, as files."""
        self.write(recording(sample(TEXT, 1)))
        for corpus in "recording", "image", "kallsyms", "dwarf", "unpack", "cfi":
            for file in (CORPORA / corpus).iterdir():
                commands = [["report", "-g", "-i", file], ["script", "-i", file]] if corpus == "recording" else [["report", "-i", "made.data", "-f", "-k", file]]
                for command in commands:
                    self.limited(*command, statuses=(0, 1))


if __name__ == "__main__":
    harness.main()
