#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel_needs.sh PROGRAM SERIES FLAVOUR: whether PROGRAM prints of Debian's kernel what expected/SERIES-FLAVOUR.txt has.
set -eu
here=$(dirname "$0")
kernel=$("$VPROF_SOURCE/tests/support/kernel-debian.sh" "$2" "$3") # 77 when it cannot be had
echo "$kernel"
"$1" "$kernel" | sed "s|$kernel|KERNEL|g" | diff -u "$here/expected/$2-$3.txt" -
