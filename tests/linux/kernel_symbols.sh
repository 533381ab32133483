#!/bin/sh
# kernel_symbols.sh PROGRAM: the symbols of the tiny kernel's bzImage against those of its vmlinux.
set -eu
vmlinux=$("$VPROF_SOURCE/tests/support/kernel-tiny.sh") # 77 when its source is not installed
exec "$1" "$(dirname "$vmlinux")/bzImage" "$vmlinux"
