#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel_layouts.sh PROGRAM SERIES LAYOUT: of Debian's kernel of that series.
set -eu
kernel=$("$VPROF_SOURCE/tests/support/kernel-debian.sh" "$2") # 77 when it cannot be had
exec "$1" "$kernel" "$3"
