# SPDX-License-Identifier: BSD-2-Clause
"""ELF files, right and wrong, made field by field (System V ABI, chapter 4 and 5)."""
import dataclasses
import struct

ELFCLASS32, ELFCLASS64 = 1, 2
EM_386, EM_X86_64, EM_AARCH64 = 3, 62, 183
PT_LOAD, PT_NOTE = 1, 4
EHDR_BYTES, PHDR_BYTES = 64, 56
XEN_ELFNOTE_PHYS32_ENTRY = 18

SPIN = b"\xeb\xfe"  # jmp .


@dataclasses.dataclass
class Segment:
    address: int
    data: bytes = SPIN
    memory_bytes: int = 0
    kind: int = PT_LOAD


def pvh_note(entry):
    return struct.pack("<III4sQ", 4, 8, XEN_ELFNOTE_PHYS32_ENTRY, b"Xen", entry)


def elf64(segments, entry=0x100000, machine=EM_X86_64, pvh=True):
    """An executable with `segments`, and a PVH note for `entry`."""
    segments = ([Segment(0, pvh_note(entry), kind=PT_NOTE)] if pvh else []) + list(segments)
    offset = EHDR_BYTES + PHDR_BYTES * len(segments)
    headers, body = b"", b""
    for segment in segments:
        headers += struct.pack("<IIQQQQQQ", segment.kind, 7, offset + len(body), segment.address, segment.address,
                               len(segment.data), max(segment.memory_bytes, len(segment.data)), 1)
        body += segment.data
    ident = b"\x7fELF" + bytes([ELFCLASS64, 1, 1]) + bytes(9)
    ehdr = ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, entry, EHDR_BYTES, 0, 0, EHDR_BYTES, PHDR_BYTES,
                               len(segments), 64, 0, 0)
    return ehdr + headers + body


def elf32():
    """A 32-bit executable with one segment."""
    ident = b"\x7fELF" + bytes([ELFCLASS32, 1, 1]) + bytes(9)
    ehdr = ident + struct.pack("<HHIIIIIHHHHHH", 2, EM_386, 1, 0x100000, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    return ehdr + struct.pack("<IIIIIIII", PT_LOAD, 84, 0x100000, 0x100000, len(SPIN), len(SPIN), 7, 1) + SPIN
