#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# kernel-debian.sh [6.1|6.12]: prints the path of the vmlinuz of Debian's newest cloud kernel of that series, 6.1 without an
# argument, as its package installs it. The package is downloaded on the first call and kept unpacked in the user's cache
# folder, where it is found again without a network.
set -eu
series=${1:-6.1}
case $series in
6.1 | 6.12) ;;
*) echo "usage: kernel-debian.sh [6.1|6.12]" >&2; exit 2 ;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels

vmlinuz() {
	find "$cache/$1/boot" -name 'vmlinuz-*' 2>/dev/null | head -n 1
}

newest=$(apt-cache search --names-only "^linux-image-$series\\.[0-9]+[-+][-+.a-z0-9]*cloud-amd64-unsigned\$" 2>/dev/null |
	cut -d ' ' -f 1 | sort -V | tail -n 1)
if [ -n "$newest" ] && [ -z "$(vmlinuz "$newest")" ]; then
	echo "kernel-debian: fetching $newest" >&2
	mkdir -p "$cache"
	unpacked=$(mktemp -d "$cache/fetch.XXXXXX")
	trap 'rm -rf "$unpacked"' EXIT
	trap 'exit 130' INT TERM
	if (cd "$unpacked" && apt-get download -q "$newest" >&2 && dpkg -x ./*.deb root); then
		mv "$unpacked/root" "$cache/$newest"
	fi
fi
for name in "$newest" $(find "$cache" -maxdepth 1 -name "linux-image-$series.*" -printf '%f\n' 2>/dev/null | sort -rV); do
	[ -z "$name" ] || [ -z "$(vmlinuz "$name")" ] || { vmlinuz "$name"; exit; }
done
echo "kernel-debian: no linux-image-$series-cloud package in the cache, and none can be fetched" >&2
exit 77
