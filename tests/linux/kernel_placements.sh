#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel_placements.sh PROGRAM: 20,000 probes of Debian's kernels, without a guest.
set -eu
for series in 6.1 6.12; do
	path=$("$VPROF_SOURCE"/tests/support/kernel-debian.sh $series) # 77 when it cannot be had
	echo "$path"
	"$1" "$path"
done
