#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# bpf_programs.sh PROGRAM SERIES FLAVOUR OBJECT...: PROGRAM with Debian's kernel.
set -eu
program=$1
kernel=$("$VPROF_SOURCE/tests/support/kernel-debian.sh" "$2" "$3") # 77 when it cannot be had
shift 3
exec "$program" "$kernel" "$@"
