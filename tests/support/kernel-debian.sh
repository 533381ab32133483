#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints the path of the vmlinuz of Debian's newest 6.1 cloud kernel, as its package installs it. The package is
# downloaded on the first call and kept unpacked in the user's cache folder, where it is found again without a network.
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vprof/kernels

vmlinuz() {
	find "$cache/$1/boot" -name 'vmlinuz-*' 2>/dev/null | head -n 1
}

newest=$(apt-cache search --names-only '^linux-image-6\.1\.[0-9.]+-[0-9]+-cloud-amd64-unsigned$' 2>/dev/null |
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
for name in "$newest" $(find "$cache" -maxdepth 1 -name 'linux-image-*' -printf '%f\n' 2>/dev/null | sort -rV); do
	[ -z "$name" ] || [ -z "$(vmlinuz "$name")" ] || { vmlinuz "$name"; exit; }
done
echo "kernel-debian: no linux-image-6.1-cloud package in the cache, and none can be fetched" >&2
exit 77
