#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# initrd.sh VMLINUZ FILE [MODULE...]: writes the initramfs of a stock host whose kernel's package is unpacked where VMLINUZ is: a static
# busybox, the script init, and the modules that mount its root and make it a KVM host, with each further MODULE.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
vmlinuz=$1 to=$2
shift 2
need() {
	command -v "$1" || { echo "initrd: $1 is missing; install the package $2" >&2; exit 77; }
}
busybox=$(need busybox busybox-static)
need bsdtar libarchive-tools >/dev/null
need modprobe kmod >/dev/null
package=${vmlinuz%/boot/*}
version=${vmlinuz##*/vmlinuz-}
[ -r "$package/lib/modules/$version/modules.dep" ] || depmod -b "$package" "$version"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/dev" "$root/lower" "$root/lib/modules/$version" "$root/proc" "$root/root" "$root/rw" "$root/sys"
cp "$busybox" "$root/bin/busybox"
cp "$here/init" "$root/init"
modprobe -d "$package" -S "$version" --show-depends -a virtio_pci 9pnet_virtio 9p overlay kvm-amd vhost_vsock "$@" |
	sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u >"$root/modules"
while read -r module; do
	case $module in
	*.xz) xz -dc "$module" >"$root/lib/modules/$version/$(basename "$module" .xz)" ;;
	*) cp "$module" "$root/lib/modules/$version" ;;
	esac
done <"$root/modules"
cp "$package/lib/modules/$version"/modules.builtin* "$root/lib/modules/$version"
depmod -b "$root" "$version"
bsdtar -cf "$to" --format newc --uid 0 --gid 0 -C "$root" bin dev init lib lower proc root rw sys
