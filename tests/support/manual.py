# SPDX-License-Identifier: BSD-2-Clause
"""What the manual promises, as tests take it from there."""
import re

from harness import SOURCE

WIDTH = 22  # of a name in the table of vprof-equivalents(7)
LINUX = "tracepoint:", "t:", "kprobe:vfs_open", "uprobe:", "uretprobe:", "usdt:"


def scripts():
    """(what of bpftrace, the script) of each line of the table in vprof-equivalents(7)."""
    text = (SOURCE / "host-cli" / "man" / "vprof-equivalents.7").read_text()
    table = re.search(r"^\.Sh BPFTRACE$.*?^\.Bd -literal$\n(.*?)^\.Ed$", text, re.M | re.S)[1]
    return [(line[:WIDTH].strip(), line[WIDTH:].replace("\\e", "\\")) for line in table.splitlines()]


def is_for_linux(script):
    return script.startswith(LINUX)
