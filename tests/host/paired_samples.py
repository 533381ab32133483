# SPDX-License-Identifier: BSD-2-Clause
"""Recordings in which an engine has taken each sample twice: by what KVM knows of the vCPU, and by what the guest's memory tells where
KVM keeps its registers in none (VPROF_TEST_WITHHOLD in the engine's environment)."""
import collections
import struct

WITHHOLD = {"VPROF_TEST_WITHHOLD": "1"}

RECORD_SAMPLE = 9
KERNEL, USER, MODES = 1, 2, 7  # of misc
CHAIN_END_SHIFT, CHAIN_ENDS, WHOLE, NO_STACK = 4, 7, 1, 6
CONTEXT_KERNEL, CONTEXT_USER = (1 << 64) - 128, (1 << 64) - 512
SAMPLE = struct.Struct("<QQiiQIIQQ")  # VPROF_SAMPLE_TYPE, and how long the chain is

Sample = collections.namedtuple("Sample", "mode, end, ip, pid, tid, kernel, user")


def pairs(data):
    """Of each moment of a vCPU, the two that were taken then."""
    at, size = struct.unpack_from("<QQ", data, 40)
    end, found = at + size, collections.defaultdict(list)
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        if kind == RECORD_SAMPLE:
            _, ip, pid, tid, time, cpu, _, _, n = SAMPLE.unpack_from(data, at + 8)
            chain = struct.unpack_from(f"<{n}Q", data, at + 8 + SAMPLE.size)
            cut = chain.index(CONTEXT_USER) if CONTEXT_USER in chain else n
            found[time, cpu].append(Sample(misc & MODES, misc >> CHAIN_END_SHIFT & CHAIN_ENDS, ip, pid, tid, chain[:cut],
                                           chain[cut:]))
        at += length
    return [pair for pair in found.values() if len(pair) == 2]


def known_chains(both):
    """Those in the kernel whose first sample leads to where user space entered it, or a thread began."""
    return [(truth, found) for truth, found in both if truth.mode == KERNEL and (truth.end == WHOLE or truth.user)]


def verdict(truth, found):
    if found.end == NO_STACK:
        return "refused"
    return "right" if truth.kernel == found.kernel else "wrong"


def known_user_chains(both):
    """Those in user mode whose first sample leads to the first function of a thread."""
    return [(truth, found) for truth, found in both if truth.mode == USER and truth.end == WHOLE]


def user_verdict(truth, found):
    """What is refused is walked by frame pointers, and does not count as whole."""
    if found.end != WHOLE:
        return "refused"
    return "right" if truth.user == found.user else "wrong"


def told(verdicts):
    total = sum(verdicts.values())
    return ", ".join(f"{verdicts[name] / total:.2%} {name}" for name in ("right", "refused", "wrong"))
