#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# root_image.sh FILE PROGRAM[:NAME...]: writes an ext4 image of a root file system: busybox, and each program with its
# shared libraries, under all of its names in /bin.
set -eu
busybox=$(command -v busybox) || { echo "root_image: busybox is missing; install the package busybox-static" >&2; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
command -v mke2fs >/dev/null || { echo "root_image: mke2fs is missing; install the package e2fsprogs" >&2; exit 77; }
image=$1
shift
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/run" "$root/tmp" "$root/etc"
echo "a root on a disk" >"$root/etc/motd"
cp "$busybox" "$root/bin/busybox"
for name in sh cat ls mount; do
	ln -s busybox "$root/bin/$name"
done
for program in "$@"; do
	file=${program%%:*}
	ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$root${library%/*}"
		cp -L "$library" "$root$library"
	done
	for name in $(echo "$program" | tr : ' '); do
		cp "$file" "$root/bin/${name##*/}"
	done
done
rm -f "$image"
truncate -s "$(($(du -sm "$root" | cut -f1) + 32))M" "$image"
mke2fs -q -t ext4 -d "$root" "$image"
