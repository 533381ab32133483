#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof annotate with code that an assembler makes for the recordings of make_recordings: a kernel and a program."""
import contextlib
import json
import pathlib
import subprocess
import time

import debuginfod
import harness
import web_server
from harness import BIN, VPROF

# clock.data has 16 samples in memcpy, in turn on its first four bytes; start_kernel is 0x100 below it.
KERNEL = """\
	.text
	.globl start_kernel, memcpy
	.type start_kernel, @function
	.type memcpy, @function
	.org 0x100
start_kernel:
	call memcpy
	ret
	.size start_kernel, . - start_kernel
	.org 0x200
memcpy:
	push %rbp
	mov %rsp, %rbp
	jmp start_kernel
	.byte 0x06
	ret
	.size memcpy, . - memcpy
"""
# mappings.data has two samples each at 0x1104 and 0x1108 of /usr/bin/bench in process 100.
PROGRAM = """\
	.text
	.globl checksum
	.type checksum, @function
	.org 0x100
checksum:
	xor %eax, %eax
	nop
	nop
	add $1, %rax
	ret
	.size checksum, . - checksum
"""
DATA_LINE = 15  # assemblers give no line to what is not an instruction
KERNEL_ID = "deadbeef" + 32 * "0"
PROGRAM_ID = "beef" + 36 * "0"

MEMCPY = """\
# function memcpy, kernel, [kernel]
# samples  16 of 100, 16.00% of task-clock
# code     {image}, 0xffffffff81000200, 11 bytes{lines}
#
#  Share    Samples    Offset  Instruction
{line12}  25.00%          4         0  pushq   %rbp
{line13}  75.00%         12         1  movq    %rsp, %rbp
{line14}                            4  jmp     0xffffffff81000100 <start_kernel>
{line15}                            9  .byte   0x06
{line16}                            a  retq
"""

ARM64 = """\
# function memcpy, kernel, [kernel]
# samples  8 of 10, 80.00% of cycles
# code     vmlinux.arm64, 0xffff800080000200, 32 bytes, no source lines
#
#  Share    Samples    Offset  Instruction
  12.50%          1         0  stp     x29, x30, [sp, #-0x10]!
  25.00%          2         4  mov     x29, sp
                            8  cbz     x2, #0xffff800080000210 <memcpy+0x10>
  12.50%          1         c  bl      #0xffff800080000100 <do_idle>
  12.50%          1        10  ldp     x29, x30, [sp], #0x10
                           14  tbnz    w0, #0, #0xffff800080000214 <memcpy+0x14>
  25.00%          2        18  ret
  12.50%          1        1c  .byte   0x00, 0x00, 0x00, 0x00
"""


class Annotate(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("capstone"), "vprof was built without capstone")
        harness.need_program("cc", "gcc")
        self.has_lines = harness.built_with("libdw")
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)

    def assemble(self, name, source, build_id, address, debug="-g", more=()):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        (self.folder / "code.s").write_text(source)
        subprocess.run(["cc", debug, "-nostdlib", "-static", "-no-pie", f"-Wl,-Ttext={address}", "-Wl,-z,max-page-size=0x1000",
                        f"-Wl,--build-id=0x{build_id}", "-Wl,-e,0", "-o", file, "code.s", *more], cwd=self.folder, check=True)
        return file

    def annotate(self, *arguments):
        return self.run_program(VPROF, "annotate", *arguments, cwd=self.folder)[0]

    def lines(self):
        """What stands above the instructions of memcpy: line 12 of the source on."""
        source = KERNEL.splitlines()
        path = self.folder / "code.s"
        return {f"line{n}": f"  {path}:{n}  {source[n - 1].strip()}\n" if self.has_lines and n != DATA_LINE else ""
                for n in range(12, 17)}

    def test_kernel(self):
        self.assemble("vmlinux", KERNEL, KERNEL_ID, "0xffffffff81000000")
        out = self.annotate("-i", "clock.data", "--kernel", "vmlinux", "memcpy")
        self.assertEqual(out, MEMCPY.format(image="vmlinux", lines="" if self.has_lines else ", no source lines", **self.lines()))

    def test_arm64(self):
        """The guest's instructions, on a host of either architecture."""
        self.assertEqual(self.annotate("-i", "arm64.data", "--kernel", "vmlinux.arm64", "memcpy"), ARM64)
        self.assertEqual(self.annotate("-i", "arm64.data", "--kernel", "vmlinux.arm64", "--intel", "memcpy"), ARM64)

    def test_without_debug_information(self):
        self.assemble("vmlinux", KERNEL, KERNEL_ID, "0xffffffff81000000", debug="-g0")
        out = self.annotate("-i", "clock.data", "--kernel", "vmlinux", "memcpy")
        self.assertEqual(out, MEMCPY.format(image="vmlinux", lines=", no source lines", **{f"line{n}": "" for n in range(12, 17)}))

    def test_compressed_debug_information(self):
        """libelf unpacks it where the file is, and writes to the file's header."""
        harness.need(self.has_lines, "vprof was built without libdw")
        # Sections that would not get smaller stay as they are.
        self.assemble("vmlinux", KERNEL + 3000 * "\tnop\n", KERNEL_ID, "0xffffffff81000000", more=["-gz=zlib"])
        sections = subprocess.run(["readelf", "-S", "-W", "vmlinux"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        self.assertRegex(sections, r"\.debug_line .* C ")
        out = self.annotate("-i", "clock.data", "--kernel", "vmlinux", "memcpy")
        self.assertEqual(out, MEMCPY.format(image="vmlinux", lines="", **self.lines()))

    def test_kernel_that_ran_elsewhere(self):
        self.assemble("vmlinux", KERNEL, KERNEL_ID, "0xffffffff82000000")
        out = self.annotate("-i", "clock.data", "--kernel", "vmlinux", "memcpy")
        self.assertIn("# code     vmlinux, 0xffffffff82000200, 11 bytes", out)
        self.assertIn("  75.00%         12         1  movq    %rsp, %rbp\n", out)

    def test_kernel_that_kaslr_moved(self):
        """Two functions of that name: the one that ran is found by how far the kernel was from where it was linked."""
        twice = KERNEL.replace("\t.text\n", "\t.text\n\t.globl _text\n_text:\n", 1).replace(", memcpy", "", 1)
        other = "\t.section .text.other, \"ax\"\n\t.type memcpy, @function\nmemcpy:\n\tret\n\t.size memcpy, 1\n"
        (self.folder / "other.s").write_text(other)
        self.assemble("vmlinux", twice, KERNEL_ID, "0xffffffff81000000", more=["other.s"])
        out = self.annotate("-i", "moved.data", "--kernel", "vmlinux", "memcpy")
        self.assertIn("# code     vmlinux, 0xffffffff81000200, 11 bytes", out)
        self.assertIn("  75.00%         12         1  movq    %rsp, %rbp\n", out)

    def test_intel(self):
        self.assemble("vmlinux", KERNEL, KERNEL_ID, "0xffffffff81000000")
        self.assertIn("mov     rbp, rsp\n", self.annotate("-i", "clock.data", "--kernel", "vmlinux", "--intel", "memcpy"))

    def test_json(self):
        self.assemble("vmlinux", KERNEL, KERNEL_ID, "0xffffffff81000000")
        document = json.loads(self.annotate("-i", "clock.data", "--kernel", "vmlinux", "--json", "memcpy"))
        self.assertEqual([document[key] for key in ("format", "version", "symbol", "mode", "samples", "all-samples", "address", "bytes")],
                         ["vprof-annotate", 1, "memcpy", "kernel", 16, 100, "0xffffffff81000200", 11])
        self.assertEqual([(i["offset"], i["samples"], i["target"]) for i in document["instructions"]],
                         [(0, 4, None), (1, 12, None), (4, 0, "start_kernel"), (9, 0, None), (10, 0, None)])
        self.assertEqual(document["period"], sum(i["period"] for i in document["instructions"]))

    def test_program(self):
        self.assemble("root/usr/bin/bench", PROGRAM, PROGRAM_ID, "0x401000")
        out = self.annotate("-i", "mappings.data", "--symfs", "root", "checksum")
        self.assertIn("# function checksum, user, /usr/bin/bench\n# samples  4 of 12, 33.33% of task-clock\n"
                      "# code     root/usr/bin/bench, 0x401100, 9 bytes", out)
        self.assertIn("  50.00%          2         4  addq    $1, %rax\n", out)
        self.assertIn("  50.00%          2         8  retq\n", out)

    def test_copies(self):
        """A function is found under the name of its copy, unless there is one of the name itself."""
        first = "\t.type {0}, @function\n{0}:\n\t.skip 8, 0x90\n\t.size {0}, 8\n\t.org 0x100\n"

        def annotate(above, symbol):
            source = PROGRAM.replace("checksum", "checksum.part.0").replace("\t.org 0x100\n", first.format(above), 1)
            self.assemble("root/usr/bin/bench", source, PROGRAM_ID, "0x401000")
            return self.annotate("-i", "mappings.data", "--symfs", "root", symbol)

        out = annotate("main", "checksum")
        self.assertIn("# function checksum.part.0, user, /usr/bin/bench\n# samples  4 of 12, 33.33% of task-clock\n", out)
        self.assertIn("  50.00%          2         4  addq    $1, %rax\n", out)
        self.assertNotIn("# others", out)
        out = annotate("checksum.constprop.1", "checksum")
        self.assertIn("# function checksum.part.0, user, /usr/bin/bench\n# samples  4 of 12", out)
        self.assertIn("# others   1 more of the function's copies, with fewer samples; `vprof report` has their names\n", out)
        self.assertIn("# function checksum, user, /usr/bin/bench\n# samples  2 of 12", annotate("checksum", "checksum"))
        # main.main of Go is another function than main.
        self.refused(VPROF, "annotate", "-i", "mappings.data", "--symfs", "root", "check", cwd=self.folder, message="no sample fell into")
        annotate("main.main", "checksum")
        self.refused(VPROF, "annotate", "-i", "mappings.data", "--symfs", "root", "main", cwd=self.folder, message="no sample fell into")

    def test_debuginfod(self):
        """A program of which this host has no copy comes from a server, for its names and for its code."""
        harness.need(harness.built_with("libdebuginfod"), "vprof was built without libdebuginfod")
        self.assemble("served", PROGRAM.replace("checksum", "checksum_served"), PROGRAM_ID, "0x401000")
        served = f"/buildid/{PROGRAM_ID}/executable"
        asked, environment = debuginfod.serve(self, {served: (self.folder / "served").read_bytes()})
        command = VPROF, "report", "-i", "mappings.data", "--sort", "sym", "--debuginfod"
        out = self.run_program(*command, cwd=self.folder, env=environment)[0]
        self.assertRegex(out, r"(?m)^ *33.33% +4 +checksum_served$")
        self.assertEqual(asked[:2], [f"/buildid/{PROGRAM_ID}/debuginfo", served])
        out = self.run_program(VPROF, "annotate", "-i", "mappings.data", "--debuginfod", "checksum_served", cwd=self.folder,
                               env=environment)[0]
        self.assertIn("# code     what debuginfod has, 0x401100, 9 bytes", out)
        # It is asked for once, and a server without it is no failure.
        self.assertEqual(asked.count(served), 1)
        _, environment = debuginfod.serve(self, {}, cache="empty")
        out = self.run_program(*command, cwd=self.folder, env=environment)[0]
        self.assertRegex(out, r"(?m)^ *33.33% +4 +checksum$")

    def test_debuginfod_without_end(self):
        """A server that says it has more than is read, or sends on and on, for as long as the user has said, is a server without the file."""
        harness.need(harness.built_with("libdebuginfod"), "vprof was built without libdebuginfod")
        sent = []

        def respond(handler):
            handler.send_response(200)
            if handler.path.endswith("/debuginfo"):
                handler.send_header("Content-Length", str(1 << 40))
            handler.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(300):
                    handler.wfile.write(bytes(4096))
                    sent.append(handler.path)
                    time.sleep(0.1)

        environment = debuginfod.environment(self, web_server.serve(self, respond)) | {"DEBUGINFOD_MAXTIME": "2"}
        # libdebuginfod 0.188 loses a buffer of dprintf for each file that is given up.
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
        begin = time.monotonic()
        out = self.run_program(VPROF, "report", "-i", "mappings.data", "--sort", "sym", "--debuginfod", cwd=self.folder, env=environment)[0]
        self.assertLess(time.monotonic() - begin, 15 * harness.SLOWNESS)
        self.assertRegex(out, r"(?m)^ *33.33% +4 +checksum$")
        self.assertLess(sum(path.endswith("/debuginfo") for path in sent), 15)

    def test_another_build_is_refused(self):
        self.assemble("vmlinux", KERNEL, 40 * "1", "0xffffffff81000000")
        self.assemble("root/usr/bin/bench", PROGRAM, 40 * "2", "0x401000")
        self.refused(VPROF, "annotate", "-i", "clock.data", "--kernel", "vmlinux", "memcpy", cwd=self.folder,
                     message=f"vmlinux is not the kernel that ran: its build-id is {40 * '1'}, the recording's {KERNEL_ID}; .*--force")
        self.refused(VPROF, "annotate", "-i", "mappings.data", "--symfs", "root", "checksum", cwd=self.folder,
                     message=f"no copy of /usr/bin/bench, where checksum is: .* its build-id is {40 * '2'}, the guest's {PROGRAM_ID}")
        out, err = self.run_program(VPROF, "annotate", "-i", "clock.data", "--kernel", "vmlinux", "--force", "memcpy", cwd=self.folder)
        self.assertIn("pushq   %rbp", out)
        self.assertIn("warning: vmlinux is not the kernel that ran", err)

    def test_code_that_is_not_there(self):
        self.assemble("vmlinux", KERNEL.replace("memcpy", "memmove"), KERNEL_ID, "0xffffffff81000000")
        self.refused(VPROF, "annotate", "-i", "clock.data", "--kernel", "vmlinux", "ext4_lookup", cwd=self.folder,
                     message="the code of ext4_lookup, of ext4, is not in vmlinux")
        pathlib.Path(self.folder / "vmlinux").write_bytes(b"\x7fELF" + 100 * b"\xff")
        self.refused(VPROF, "annotate", "-i", "clock.data", "--kernel", "vmlinux", "memcpy", cwd=self.folder, message="vmlinux")


if __name__ == "__main__":
    harness.main()
