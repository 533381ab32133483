#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# unpacked-kernel.sh [SERIES [FLAVOUR]]: prints the path of the ELF that is packed in the vmlinuz of kernel-debian.sh, and kept beside it.
# Each program that reads a vmlinuz unpacks it, which takes seconds where the processor is emulated.
set -eu
vmlinuz=$("$(dirname "$0")/kernel-debian.sh" "$@")
elf=${vmlinuz%/boot/*}/vmlinux
if [ ! -e "$elf" ]; then
	command -v bsdcat >/dev/null || { echo "unpacked-kernel: bsdcat is missing; install the package libarchive-tools" >&2; exit 77; }
	field() { od -An -t"$1" -j "$2" -N "${1#u}" "$vmlinuz" | tr -d ' '; }
	# Linux, Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length. Behind what is packed is its size.
	at=$((($(field u1 497) + 1) * 512 + $(field u4 584)))
	part=$(mktemp "$elf.XXXXXX")
	trap 'rm -f "$part"' EXIT
	tail -c "+$((at + 1))" "$vmlinuz" | head -c "$(($(field u4 588) - 4))" | bsdcat >"$part"
	mv "$part" "$elf"
fi
echo "$elf"
