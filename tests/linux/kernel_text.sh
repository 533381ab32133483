#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel_text.sh PROGRAM: the code of the tiny kernel and of Debian's.
set -eu
for kernel in "tiny.sh" "debian.sh 6.1" "debian.sh 6.12"; do
	path=$("$VPROF_SOURCE"/tests/support/kernel-$kernel) # 77 when it cannot be had
	echo "$path"
	"$1" "$path"
done
