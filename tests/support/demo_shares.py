# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration guest's functions, and the shares of its time that they take."""
import math

SHARES = {"render_page": 0.50, "tcp_checksum": 0.30, "parse_request": 0.15, "copy_page": 0.05}
KERNEL = {"tcp_checksum", "copy_page"}


def binomial_interval(n, p, tail):
    """The smallest [low, high] with P(X < low) <= tail and P(X > high) <= tail for X ~ Binomial(n, p), exactly."""
    def probability(k):
        return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) +
                        (n - k) * math.log1p(-p))

    def first_above(ks):
        total = 0.0
        for k in ks:
            total += probability(k)
            if total > tail:
                return k
        return n
    return first_above(range(n + 1)), first_above(range(n, -1, -1))


def check(test, rows, tail):
    """The rows of a report have these shares, each within the interval that leaves out `tail` at either end, and the modes."""
    samples = {row["symbol"]: row["samples"] for row in rows if row["symbol"] in SHARES}
    n = sum(samples.values())
    for symbol, share in SHARES.items():
        low, high = binomial_interval(n, share, tail)
        found = f"{symbol}: {samples[symbol]} of {n}, {100 * samples[symbol] / n:.2f} %, expected {low}..{high}"
        print(found, flush=True)
        test.assertTrue(low <= samples[symbol] <= high, found)
    for row in rows:
        if row["symbol"] in SHARES:
            test.assertEqual(row["mode"], "kernel" if row["symbol"] in KERNEL else "user", row)


def stacks(nodes, above=()):
    """(names from the root, samples that end there) of a call tree."""
    for node in nodes:
        path = above + (node["symbol"],)
        if node["self-samples"]:
            yield path, node["self-samples"]
        yield from stacks(node["calls"], path)
