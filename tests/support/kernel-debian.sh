#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel-debian.sh [6.1|6.12 [cloud|amd64|rt|arm64]]: prints the path of the vmlinuz of Debian's newest kernel of that series and flavour,
# 6.1's cloud kernel without arguments, as its package installs it. The package is downloaded on the first call and kept unpacked in
# the user's cache folder, where it is found again without a network.
set -eu
. "$(dirname "$0")/unpack.sh"
series=${1:-6.1}
case $series in
6.1 | 6.12) ;;
*) echo "usage: kernel-debian.sh [6.1|6.12 [cloud|amd64|rt|arm64]]" >&2; exit 2 ;;
esac
architecture=
case ${2:-cloud} in
cloud) flavour=-cloud-amd64 ;;
amd64) flavour=-amd64 ;;
rt) flavour=-rt-amd64 ;;
arm64) flavour=-arm64 architecture=:arm64 ;;
*) echo "usage: kernel-debian.sh [6.1|6.12 [cloud|amd64|rt|arm64]]" >&2; exit 2 ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels
# 6.1.0-56 and 6.12.117+deb12: nothing that is a flavour is part of a version.
packages="^linux-image-$series\\.[0-9]+[-+]?[.+a-z0-9]*(-[0-9]+)?$flavour-unsigned\$"

vmlinuz() {
	find "$cache/$1/boot" -name 'vmlinuz-*' 2>/dev/null | head -n 1
}

# Once a day, and never without a network: on an emulated host the search takes 20 seconds. What it found is in the file.
asked=$cache/asked-$series$flavour
newest= found=
if [ -n "$(find "$asked" -mtime -1 2>/dev/null)" ]; then
	read -r found <"$asked" || true
	if [ -e "$found" ]; then
		echo "$found"
		exit
	fi
else
	newest=$(apt-cache search --names-only "$packages" 2>/dev/null | cut -d ' ' -f 1 | sort -V | tail -n 1)
fi
if [ -n "$newest" ] && [ -z "$(vmlinuz "$newest")" ]; then
	echo "kernel-debian: fetching $newest" >&2
	unpack "$cache/$newest" "$newest$architecture" || true
fi
for name in "$newest" $(find "$cache" -maxdepth 1 -name "linux-image-$series.*" -printf '%f\n' 2>/dev/null | grep -E "$packages" | sort -rV); do
	[ -n "$name" ] && [ -n "$(vmlinuz "$name")" ] || continue
	found=$(vmlinuz "$name")
	[ "$name" != "$newest" ] || echo "$found" >"$asked"
	echo "$found"
	exit
done
echo "kernel-debian: no linux-image-$series$flavour package in the cache, and none can be fetched" >&2
exit 77
