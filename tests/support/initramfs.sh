#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# initramfs.sh FILE [INIT [FILE...]]: writes an uncompressed initramfs with a static busybox, and with each FILE (kernel modules,
# static programs) in /bin. Its /init is the script INIT. The default prints which processors are online and which kernel runs,
# counts to 20,000, and ends the machine: by ACPI if there is ACPI, else by a reboot.
set -eu
busybox=$(command -v busybox) || { echo "initramfs: busybox is missing; install the package busybox-static" >&2; exit 77; }
command -v bsdtar >/dev/null || { echo "initramfs: bsdtar is missing; install the package libarchive-tools" >&2; exit 77; }
to=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev"
cp "$busybox" "$root/bin/busybox"
ln -s busybox "$root/bin/sh"
cat >"$root/init" <<'INIT'
#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
echo "init: processors $(busybox cat /sys/devices/system/cpu/online) online, Linux $(busybox uname -r)"
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
echo "init: counted to $i"
if [ -d /sys/firmware/acpi ]; then
	exec busybox poweroff -f
fi
exec busybox reboot -f
INIT
[ $# -lt 2 ] || cp "$2" "$root/init"
chmod +x "$root/init"
[ $# -lt 3 ] || { shift 2; cp "$@" "$root/bin"; }
bsdtar -cf "$to" --format newc --uid 0 --gid 0 -C "$root" bin dev init proc sys
